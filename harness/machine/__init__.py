"""This machine: its folders, interpreters, facts, CPUs and locks."""
