"""Launches in local virtual environments, each in a fresh process, if there is no Docker Engine."""
