"""Forty patches of small packages, judged by `harness matrix --json`: true, null, and cheating ones."""
