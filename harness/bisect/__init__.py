"""Search for the release or the wheel in which something became slower."""
