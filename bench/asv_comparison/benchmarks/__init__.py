"""What asv runs. Imported in the measured environments, so it is Python 3.7 and knows nothing of `harness`."""
