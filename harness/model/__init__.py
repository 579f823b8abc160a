"""The data model, as frozen dataclasses. It does no I/O, and doesn't import other packages of harness."""
