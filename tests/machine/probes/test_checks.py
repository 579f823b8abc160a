"""All checks together, on systems made of files."""

import os

import pytest

from harness.machine.probes import checks
from harness.machine.probes.finding import Finding
from harness.machine.probes.listening import Clocks, Place, hertz, listen
from harness.machine.topology import Cpu, Topology
from tests.machine.conftest import Tree
from tests.machine.probes.clocks import Clock

SECONDS = 2.0


@pytest.fixture
def here() -> tuple[int, ...]:
    """A CPU that this process can be pinned to."""
    return (max(os.sched_getaffinity(0)),)


def heard_on(tree: Tree, place: Place, said: list[str], after: dict[str, str] | None = None) -> list[Finding]:
    """What is found in some seconds of a clock; `after` are the files once the work has begun."""
    clock = Clock(5e-7)
    before = os.sched_getaffinity(0)

    def work(size: int) -> None:
        if any("again" in line for line in said):
            tree(after or {})
        clock.work(size)

    clocks = Clocks(now=clock, own=lambda: clock.now)
    found = checks.findings(listen(place, SECONDS, said.append, clocks, work))
    assert os.sched_getaffinity(0) == before
    return found


def test_a_system_that_shows_nothing_is_unknown_and_never_good(tree: Tree, here: tuple[int, ...]) -> None:
    place = Place(here, frozenset(here), Topology({}, known=False, virtual=None), tree({}))
    levels = {finding.name: finding.level.value for finding in heard_on(tree, place, [])}
    measured = ("noise", "drift", "interruptions")
    assert {name: levels.pop(name) for name in measured} == dict.fromkeys(measured, "good")
    assert set(levels.values()) == {"unknown"}


def test_what_is_done_and_for_how_long_is_said(tree: Tree, here: tuple[int, ...]) -> None:
    said: list[str] = []
    heard_on(tree, Place(here, frozenset(here), Topology({}), tree({})), said)
    assert [line for line in said if "1.5 s" in line or "0.5 s" in line] == said[1:]


def test_other_work_is_what_the_doctor_did_not_do(tree: Tree, here: tuple[int, ...]) -> None:
    (cpu,) = here
    sibling = cpu + 1
    ticks = round(SECONDS * hertz())

    def stat(own: int, beside: int) -> dict[str, str]:
        return {
            "proc/stat": f"cpu{cpu} {own} 0 0 0 0 0 0 0 0 0\ncpu{sibling} {beside} 0 0 {ticks - beside} 0 0 0 0 0 0\n"
        }

    topology = Topology({n: Cpu(n, frozenset({cpu, sibling})) for n in (cpu, sibling)})
    place = Place(here, frozenset({cpu, sibling}), topology, tree(stat(0, 0)))
    (found,) = [f for f in heard_on(tree, place, [], stat(ticks, ticks // 2)) if f.name == "other load"]
    assert found.level == "bad"
    assert found.facts["others"] == pytest.approx(0.5, abs=0.02)
    assert found.facts["here"] == pytest.approx(0.5, abs=0.02)
