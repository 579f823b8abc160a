"""Walks a plan through a backend: rounds, progress, interruption."""
