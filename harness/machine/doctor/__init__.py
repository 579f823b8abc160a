"""What `harness doctor` checks. A check is one function. It returns a value, its level, and advice."""
