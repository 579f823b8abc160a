"""What a test needs and this machine has not: the one place where a test is skipped."""

import os
from typing import NoReturn

import pytest

ENGINE, BROWSER = "HARNESS_REQUIRE_ENGINE", "HARNESS_REQUIRE_BROWSER"


def lacking(reason: str, required: str = ENGINE) -> NoReturn:
    """Skip the test, or fail it where the variable `required` is 1, as in CI: there nothing is skipped."""
    if os.environ.get(required) == "1":
        pytest.fail(f"{required} is 1, and: {reason}")
    pytest.skip(reason)
