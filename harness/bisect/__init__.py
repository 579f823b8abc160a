"""Search for the release, or the wheel of one package, in which something became slower."""
