"""Which engines give containers priority; what it does is seen in real containers (tests/docker)."""

from harness.backends.docker.priority import SHARES, Priority, find_priority
from tests.backends.docker.test_gpus import make_engine


def test_engines_that_are_known_to_give_priority_are_asked_for_it():
    assert find_priority(make_engine({"NCPU": 4, "CgroupDriver": "cgroupfs"}), [3]) == Priority("/", (3,))
    assert find_priority(make_engine({"NCPU": 4, "CgroupDriver": "systemd"}), [3]) == Priority("-.slice", (3,))
    for engine, cpus in (
        (make_engine({"NCPU": 4}), [3]),
        (make_engine({"NCPU": 4, "CgroupDriver": "none"}), [3]),
        (make_engine({"NCPU": 4, "CgroupDriver": "systemd"}, rootless=True), [3]),
        (make_engine({"NCPU": 4, "CgroupDriver": "systemd", "BuildahVersion": "1.41.4"}), [3]),
        (make_engine({"NCPU": 4, "CgroupDriver": "cgroupfs"}), [0, 1, 2, 3]),
    ):
        assert find_priority(engine, cpus) is None, (engine, cpus)


def test_a_container_has_the_weight_on_the_measured_cpus_alone():
    priority = Priority("/", (2, 3))
    assert [priority.get_shares(cpus) for cpus in ((3,), (2, 3))] == [SHARES, SHARES]
    assert [priority.get_shares(cpus) for cpus in ((1,), (1, 2), (), None)] == [None] * 4
