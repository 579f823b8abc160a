"""GPUs of this machine, read through NVIDIA's management library."""
