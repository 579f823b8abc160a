import pytest

from harness.machine.probes import sharing
from harness.machine.topology import Cpu, Topology


def machine(*cores: tuple[int, ...], known: bool = True, virtual: bool | None = False) -> Topology:
    return Topology({n: Cpu(n, frozenset(core)) for core in cores for n in core}, known, virtual)


@pytest.mark.parametrize(
    ("topology", "cpus", "allowed", "level"),
    [
        (machine((0,), (1,)), [1], [0, 1], "good"),
        (machine((0, 2), (1, 3)), [3], [0, 1, 2, 3], "good"),
        (machine((0, 1)), [1], [0, 1], "warn"),
        (machine((0, 2), (1, 3)), [3], [0, 2, 3], "warn"),
        (machine((0, 2), (1, 3)), [1, 3], [0, 1, 2, 3], "warn"),
        (machine((0, 1), virtual=True), [1], [0, 1], "warn"),
        (machine((0,), (1,), virtual=True), [1], [0, 1], "unknown"),
        (machine((0,), (1,), virtual=None), [1], [0, 1], "unknown"),
        (machine((0,), (1,), known=False), [1], [0, 1], "unknown"),
    ],
)
def test_a_core_of_ones_own_is_good_where_it_is_known(
    topology: Topology, cpus: list[int], allowed: list[int], level: str
) -> None:
    assert sharing.smt(cpus, allowed, topology)[0].level == level


@pytest.mark.parametrize(("virtual", "level"), [(True, "warn"), (False, "good"), (None, "unknown")])
def test_a_virtual_machine_is_a_warning(virtual: bool | None, level: str) -> None:
    assert sharing.virtual(machine((0,), virtual=virtual))[0].level == level
