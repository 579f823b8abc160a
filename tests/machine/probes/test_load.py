import pytest

from harness.machine.probes.load import Use, average, findings
from tests.machine.conftest import Tree


def test_the_load_average_is_the_last_minutes_or_none(tree: Tree) -> None:
    assert average(tree({"proc/loadavg": "0.10 0.65 0.49 1/112 30495\n"})) == 0.1
    assert average(tree({"proc/loadavg": "\n"})) is None


@pytest.mark.parametrize(
    ("machine", "here", "level"),
    [
        (1.0, 1.0, "good"),
        (0.9, 0.9, "good"),
        (1.05, 1.03, "warn"),
        (1.2, 1.0, "warn"),
        (1.06, 1.06, "bad"),
        (3.1, 1.0, "bad"),
        (None, None, "unknown"),
        (1.0, None, "unknown"),
    ],
)
def test_others_use_weighs_more_where_launches_run(machine: float | None, here: float | None, level: str) -> None:
    (found,) = findings(Use(machine, here, own=1.0), 4, 0.5, [])
    assert found.level == level
    assert found.facts["others"] is None or found.facts["others"] >= 0


@pytest.mark.parametrize(("machine", "unseen"), [(1.05, False), (1.9, False), (2.1, True), (None, False)])
def test_load_that_no_named_process_explains_is_said_to_be_unseen(machine: float | None, unseen: bool) -> None:
    (found,) = findings(Use(machine, machine, own=1.0), 4, None, [{"pid": 1, "name": "a", "percent": 50.0}])
    assert found.facts["mostly_unseen"] is unseen
