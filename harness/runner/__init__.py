"""Execution of a plan with a backend: rounds, budget, stop rules, and continuing after an interruption."""
