"""Hostile scripts in local environments."""

from pathlib import Path

import pytest

from harness.model.backend import Backend
from harness.model.environment import Requirement
from tests.backends.conftest import local, made, requirement
from tests.hostile.checks import SCRIPTS, check

__all__ = ["local", "made", "requirement"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_its_record_says_what_it_must(local: Backend, requirement: Requirement, script: Path) -> None:
    check(local, requirement, script)
