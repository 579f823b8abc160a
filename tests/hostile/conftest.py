"""The command in a project of its own, into which hostile scripts are put."""

from tests.cli.conftest import _environments, harness, write_scenario
from tests.docker.conftest import pytest_runtest_makereport

__all__ = ["_environments", "harness", "pytest_runtest_makereport", "write_scenario"]
