"""Which engines give containers priority; what it does is seen in real containers (tests/docker)."""

from types import SimpleNamespace
from typing import Any

from harness.backends.docker.priority import SHARES, Priority, find_priority
from harness.model.backend import BackendFacts


def make_engine(*, rootless: bool = False, **info: Any) -> Any:
    facts = BackendFacts("docker", rootless=rootless)
    return SimpleNamespace(info={"NCPU": 4, **info}, facts=facts, is_podman="BuildahVersion" in info)


def test_engines_that_are_known_to_give_priority_are_asked_for_it():
    assert find_priority(make_engine(CgroupDriver="cgroupfs"), [3]) == Priority("/", (3,))
    assert find_priority(make_engine(CgroupDriver="systemd"), [3]) == Priority("-.slice", (3,))
    for engine, cpus in (
        (make_engine(), [3]),
        (make_engine(CgroupDriver="none"), [3]),
        (make_engine(CgroupDriver="systemd", rootless=True), [3]),
        (make_engine(CgroupDriver="systemd", BuildahVersion="1.41.4"), [3]),
        (make_engine(CgroupDriver="cgroupfs"), [0, 1, 2, 3]),
    ):
        assert find_priority(engine, cpus) is None, (engine, cpus)


def test_a_container_has_the_weight_on_the_measured_cpus_alone():
    priority = Priority("/", (2, 3))
    assert [priority.get_shares(cpus) for cpus in ((3,), (2, 3))] == [SHARES, SHARES]
    assert [priority.get_shares(cpus) for cpus in ((1,), (1, 2), (), None)] == [None] * 4
