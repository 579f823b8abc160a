"""Upstream issues: claims measured again, and since when they hold."""
