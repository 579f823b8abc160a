"""Pairs of environments: measured side by side in one run, until the difference is clear."""
