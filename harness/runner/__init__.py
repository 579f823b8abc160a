"""Executes a plan with a backend: rounds, budget, progress, interruption."""
