"""Functions that inspect and control this machine: CPUs, GPUs, interpreters, folders, locks and identity."""
