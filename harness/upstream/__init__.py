"""Upstream issues: their claims, measured again."""
