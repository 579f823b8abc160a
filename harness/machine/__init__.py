"""Facts about and control of this machine: CPUs, GPUs, interpreters, folders, locks and identity."""
