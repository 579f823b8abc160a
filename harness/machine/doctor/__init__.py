"""What `harness doctor` checks. A check is one function: what it measured, how bad that is, and the words for it."""
