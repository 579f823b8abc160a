"""Stored launches to numbers: pure functions, no I/O, no formatting."""
