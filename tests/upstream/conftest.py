"""What is upstream works in the same small project as the command line's tests, with a scenario of two issues."""

import pytest

from tests.cli.conftest import CLAIMS, Harness, _environments, harness, write_scenario
from tests.environments.conftest import interpreters, package_index

__all__ = ["_environments", "claiming", "harness", "interpreters", "package_index", "write_scenario"]


@pytest.fixture
def claiming(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    (harness.root / "scenarios" / "upstream").mkdir()
    (harness.root / "scenarios" / "upstream" / "sums.py").write_text(CLAIMS)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    return harness
