"""The data model as frozen dataclasses. It does no I/O, and imports no other package of harness."""
