"""Scenarios with their headers, suites, plain scripts and notebooks."""
