"""The checks of `harness doctor`. Each check is a function that returns a value, its level, and advice."""
