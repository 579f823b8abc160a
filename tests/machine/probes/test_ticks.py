import pytest

from harness.machine.probes import ticks
from harness.machine.probes.ticks import Ticks
from tests.machine.conftest import Tree

STAT = """cpu  30 0 30 300 0 0 0 5 10 0
cpu0 10 1 10 100 5 2 3 4 10 0
cpu1 20 0 20 200 0 0 0 1 0 0
intr 1 2 3
"""


def test_ticks_are_read_for_each_cpu(tree: Tree) -> None:
    found = ticks.read(tree({"proc/stat": STAT}))
    assert found == {0: Ticks(total=135, busy=26, stolen=4), 1: Ticks(total=241, busy=40, stolen=1)}


@pytest.mark.parametrize("files", [{}, {"proc/stat": ""}, {"proc/stat": "cpu0 1 2\n\n"}])
def test_what_cannot_be_read_is_nothing(tree: Tree, files: dict[str, str]) -> None:
    assert ticks.read(tree(files)) == {}


def test_busy_is_counted_for_the_cpus_that_are_asked_for() -> None:
    before, after = {0: Ticks(100, 10, 0), 1: Ticks(100, 10, 0)}, {0: Ticks(200, 30, 0), 1: Ticks(200, 15, 0)}
    assert ticks.busy(before, after, [0]) == 20
    assert ticks.busy(before, after, [0, 1]) == 25
    assert ticks.busy(before, after, [2]) is None


@pytest.mark.parametrize(
    ("stolen", "virtual", "level"),
    [
        (0, False, "good"),
        (0, None, "unknown"),
        (0, True, "unknown"),
        (1, True, "good"),
        (5, True, "warn"),
        (9, False, "warn"),
        (20, True, "bad"),
    ],
)
def test_steal_is_unknown_where_it_was_never_reported(stolen: int, virtual: bool | None, level: str) -> None:
    (found,) = ticks.steal({0: Ticks(0, 0, 0)}, {0: Ticks(1000, 0, stolen)}, [0], virtual)
    assert found.level == level
    assert found.facts["percent"] == stolen / 10


def test_steal_that_cannot_be_read_is_unknown() -> None:
    same = {0: Ticks(1000, 0, 0)}
    assert ticks.steal({}, {}, [0], False)[0].level == "unknown"
    assert ticks.steal(same, same, [0], False)[0].level == "unknown"
    assert ticks.steal(same, same, [], False)[0].level == "unknown"
