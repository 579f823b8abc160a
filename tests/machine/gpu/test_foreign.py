"""Processes that are not the launch's own."""

from pathlib import Path

import pytest

from harness.machine.gpu import foreign

OURS, OTHER = "a" * 64, "b" * 64
HOMES = {1: "", 2: "", 11: OURS, 12: OURS, 21: OTHER, 22: OTHER}


@pytest.mark.parametrize(
    ("before", "now", "count"),
    [
        (set(), set(), 0),
        (set(), {11, 12}, 0),
        ({1}, {11}, 0),
        ({1}, {1, 11}, 1),
        ({21}, {21, 11}, 1),
        (set(), {1, 2, 11}, 2),
        (set(), {11, 12, 21, 22}, 1),
        (set(), {99}, 0),
        ({99}, {99}, 1),
    ],
)
def test_those_that_were_there_are_others_and_so_are_those_outside_the_launchs_container(
    before: set[int], now: set[int], count: int
) -> None:
    assert foreign.count(before, now, HOMES.get) == count


@pytest.mark.parametrize(
    ("cgroup", "home"),
    [
        (f"0::/system.slice/docker-{OURS}.scope\n", OURS),
        (f"12:cpuset:/docker/{OURS}\n11:memory:/docker/{OURS}\n", OURS),
        ("0::/user.slice/user-1000.slice/session-2.scope\n", ""),
        (None, None),
    ],
)
def test_a_process_is_in_the_container_that_its_control_group_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgroup: str | None, home: str | None
) -> None:
    namespace = tmp_path / "proc/self/ns/pid"
    namespace.parent.mkdir(parents=True)
    namespace.touch()
    monkeypatch.setattr(foreign, "_FIRST_NAMESPACE", namespace.stat().st_ino)
    if cgroup is not None:
        (tmp_path / "proc/7").mkdir()
        (tmp_path / "proc/7/cgroup").write_text(cgroup)
    assert foreign.container_of(7, tmp_path) == home


def test_in_a_container_the_hosts_numbers_mean_nothing(tmp_path: Path) -> None:
    for name in ("proc/self/ns/pid", "proc/7/cgroup"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    assert foreign.container_of(7, tmp_path) is None
