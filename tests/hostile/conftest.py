"""The command in a project of its own, into which hostile scripts are put."""

from tests.cli.conftest import _environments, harness, write_scenario

__all__ = ["_environments", "harness", "write_scenario"]
