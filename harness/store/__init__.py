"""The folder of a run: reading, writing and checking its files."""
