"""Statistics of stored launches: pure functions, without I/O and without formatting."""
