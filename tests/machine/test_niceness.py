import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.machine import niceness


class Kernel:
    """What the kernel has of this thread: its nice value, and the lowest that it allows."""

    nice, lowest = 0, niceness.LOWEST

    def setpriority(self, _: int, __: int, value: int) -> None:
        if value < self.lowest:
            raise PermissionError
        self.nice = value


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    made = Kernel()
    monkeypatch.setattr(os, "getpriority", lambda *_: made.nice)
    monkeypatch.setattr(os, "setpriority", made.setpriority)
    monkeypatch.setattr(niceness, "_AUTOGROUP_FILE", tmp_path / "autogroup")
    yield made
    assert made.nice in {0, 10}


def test_the_nice_value_is_lowered_if_that_is_allowed(kernel: Kernel) -> None:
    assert niceness.can_lower()
    kernel.lowest = 0
    assert not niceness.can_lower()


def test_the_value_that_the_user_chose_stays(kernel: Kernel) -> None:
    kernel.nice = 10
    assert not niceness.can_lower()


@pytest.mark.parametrize(("told", "can"), [("1\n", False), ("0\n", True)])
def test_it_stays_if_it_counts_within_a_session_only(kernel: Kernel, tmp_path: Path, told: str, *, can: bool) -> None:
    (tmp_path / "autogroup").write_text(told)
    assert niceness.can_lower() is can


def test_the_value_before_comes_back(kernel: Kernel) -> None:
    with niceness.run_at_nice_value(-5):
        assert kernel.nice == -5
    assert kernel.nice == 0
