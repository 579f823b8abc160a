"""What runs said of the same cells, night after night: an index of stored runs, and what is asked of it."""
