"""Hostile scripts in containers."""

import pytest

from tests.docker.conftest import built, docker, engine, need_bases, requirement, shared_folder
from tests.hostile.checks import SCRIPTS, check

__all__ = ["built", "docker", "engine", "need_bases", "requirement", "shared_folder"]

pytestmark = pytest.mark.docker


def test_the_record_of_each_script_says_what_it_must(docker, requirement):
    for script in SCRIPTS:
        check(docker, requirement, script)
