"""Hostile scripts in local environments."""

import pytest

from tests.backends.conftest import local, prepared, requirement
from tests.hostile.checks import SCRIPTS, check

__all__ = ["local", "prepared", "requirement"]


#: What takes more than a second.
SLOW = ("folders_in_folders", "stops_itself")
CASES = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else []) for path in SCRIPTS]


@pytest.mark.parametrize("script", CASES)
def test_its_record_says_what_it_must(local, requirement, script):
    check(local, requirement, script)
