"""The history: an index of stored runs with the results of the same cells over time, and queries on it."""
