"""A session works in the same small project as the command line's tests."""

from tests.cli.conftest import _environments, harness, write_scenario

__all__ = ["_environments", "harness", "write_scenario"]
