"""A session works in the same small project as the command line's tests."""

import pytest

from tests.cli.conftest import Harness, InstantLaunches, _environments, harness, instant, write_scenario

__all__ = ["InstantLaunches", "_environments", "harness", "instant", "write_scenario"]


@pytest.fixture
def in_project(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the small project."""
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
