"""Upstream issues: runs that check their claims, and bundles of files for an issue."""
