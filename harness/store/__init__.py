"""Reads and writes the folder of a run."""
