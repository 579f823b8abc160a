import pytest

from harness.machine.probes import quota
from tests.machine.conftest import Tree

V2 = {"proc/self/cgroup": "0::/user.slice/app\n", "sys/fs/cgroup/cgroup.controllers": "cpu\n"}
V1 = {"proc/self/cgroup": "5:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n0::/\n", "sys/fs/cgroup/cpu,cpuacct/tasks": "1\n"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (V2, (True, None)),
        (V2 | {"sys/fs/cgroup/user.slice/app/cpu.max": "max 100000\n"}, (True, None)),
        (V2 | {"sys/fs/cgroup/user.slice/app/cpu.max": "150000 100000\n"}, (True, 1.5)),
        (
            V2
            | {
                "sys/fs/cgroup/user.slice/cpu.max": "50000 100000",
                "sys/fs/cgroup/user.slice/app/cpu.max": "max 100000",
            },
            (True, 0.5),
        ),
        (V2 | {"sys/fs/cgroup/user.slice/cpu.max": "50000"}, (True, 0.5)),
        (V2 | {"sys/fs/cgroup/user.slice/cpu.max": "what"}, (True, None)),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000"}, (True, 2.0)),
        (V1, (True, None)),
        (
            V1
            | {
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000",
            },
            (True, None),
        ),
        (
            V1
            | {
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            (True, 0.5),
        ),
        (
            V1 | {"sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us": "1", "sys/fs/cgroup/cpuset/x/cpu.cfs_period_us": "1"},
            (True, None),
        ),
        ({}, (False, None)),
        ({"proc/self/cgroup": "0::/\n"}, (False, None)),
    ],
)
def test_the_quota_is_the_smallest_of_the_group_and_those_above_it(
    tree: Tree, files: dict[str, str], found: tuple[bool, float | None]
) -> None:
    assert quota.read(tree(files)) == found


@pytest.mark.parametrize(
    ("found", "limit", "level"),
    [(True, None, "good"), (True, 2.5, "good"), (True, 2.0, "warn"), (True, 1.0, "bad"), (False, None, "unknown")],
)
def test_a_quota_must_leave_room_beside_what_is_measured(found: bool, limit: float | None, level: str) -> None:
    assert quota.findings(found, limit, cpus=2)[0].level == level
