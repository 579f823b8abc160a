"""What a test needs and this machine has not: the one place where a test is skipped."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from harness.machine.interpreters import Search, find_python
from harness.model.errors import UnavailableError

ENGINE, BROWSER, ALL = "HARNESS_REQUIRE_ENGINE", "HARNESS_REQUIRE_BROWSER", "HARNESS_REQUIRE_ALL"


def lacking(reason: str, required: str = ENGINE) -> NoReturn:
    """Skip the test, or fail it where the variable `required` is 1, as in CI: there nothing is skipped."""
    if os.environ.get(required) == "1":
        pytest.fail(f"{required} is 1, and: {reason}")
    pytest.skip(reason)


def campaign() -> bool:
    """Whether all faults are tried, for hours (`make campaign`), where CI tries some."""
    return os.environ.get("HARNESS_CAMPAIGN") == "1"


def for_a_campaign(*cases: object) -> list[object]:
    """Return cases for a parametrized test, which `make campaign` tries and CI doesn't: each a value, or a tuple."""
    return [pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.campaign) for case in cases]


def python(version: str, searches: Sequence[Search] | None = None) -> Path:
    """The interpreter of a version."""
    try:
        return find_python(version, searches)
    except UnavailableError as error:
        lacking(error.message, ALL)
