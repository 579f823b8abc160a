"""More than one machine: a plan in shards, runs that are merged, and what executes them elsewhere."""
