"""Launches in local virtual environments, a fresh process each: where there is no engine."""
