"""The benchmarks that asv runs. The measured environments import them, so they use Python 3.7 and not `harness`."""
