"""Hostile scripts in containers."""

from pathlib import Path

import pytest

from harness.model.backend import Backend
from harness.model.environment import Requirement
from tests.docker.conftest import docker, engine, made, requirement
from tests.hostile.checks import SCRIPTS, check

__all__ = ["docker", "engine", "made", "requirement"]

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_its_record_says_what_it_must(docker: Backend, requirement: Requirement, script: Path) -> None:
    check(docker, requirement, script)
