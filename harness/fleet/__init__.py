"""Runs on several machines, or in several slots: shards of a plan, their execution, and merging of runs."""
