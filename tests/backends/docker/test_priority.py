"""Which engines give containers priority; what it does is seen in real containers (tests/docker)."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.docker.priority import SHARES, Priority, find_priority
from harness.model.backend import BackendFacts


def engine(*, rootless: bool = False, **info: Any) -> Any:
    facts = BackendFacts("docker", rootless=rootless)
    return SimpleNamespace(info={"NCPU": 4, **info}, facts=facts, is_podman="BuildahVersion" in info)


@pytest.mark.parametrize(("driver", "parent"), [("cgroupfs", "/"), ("systemd", "-.slice")])
def test_each_driver_has_its_name_for_the_root(driver: str, parent: str) -> None:
    assert find_priority(engine(CgroupDriver=driver), [3]) == Priority(parent, (3,))


@pytest.mark.parametrize(
    ("found", "cpus"),
    [
        (engine(), [3]),
        (engine(CgroupDriver="none"), [3]),
        (engine(CgroupDriver="systemd", rootless=True), [3]),
        (engine(CgroupDriver="systemd", BuildahVersion="1.41.4"), [3]),
        (engine(CgroupDriver="cgroupfs"), [0, 1, 2, 3]),
    ],
    ids=["no driver", "no control groups", "rootless", "Podman", "all CPUs"],
)
def test_an_engine_that_is_not_known_to_give_any_is_asked_for_none(found: Any, cpus: list[int]) -> None:
    assert find_priority(found, cpus) is None


def test_a_container_has_the_weight_on_the_measured_cpus_alone() -> None:
    priority = Priority("/", (2, 3))
    assert [priority.get_shares(cpus) for cpus in ((3,), (2, 3))] == [SHARES, SHARES]
    assert [priority.get_shares(cpus) for cpus in ((1,), (1, 2), (), None)] == [None] * 4
