"""Folders, interpreters, properties, CPUs and locks of this machine."""
