"""Nightly runs of past days, measured one after the other, and what harness and the rules of other tools report."""
