"""A run's folder: append, resume, read."""
