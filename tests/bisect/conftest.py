"""Searches work in the same small project as the tests of the command line."""

from tests.cli.conftest import _environments, harness, write_scenario

__all__ = ["_environments", "harness", "write_scenario"]
