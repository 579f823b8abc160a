"""This machine's GPUs, through NVIDIA's management library."""
