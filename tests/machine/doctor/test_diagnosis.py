import os

import psutil
import pytest

from harness.machine.doctor.check import CheckResult
from harness.machine.doctor.clock import Gaps, Noise, Timer
from harness.machine.doctor.counters import Counters, CpuPlace, Period
from harness.machine.doctor.diagnosis import Diagnosis, measure_noise
from harness.machine.topology import Cpu, Topology
from tests.machine.conftest import Tree
from tests.machine.doctor.clocks import DoctorClock

SECONDS = 2.0


@pytest.fixture
def here():
    """A CPU that this process can be pinned to."""
    return (max(os.sched_getaffinity(0)),)


def measure(tree: Tree, place: CpuPlace, lines: list[str], after: dict[str, str] | None = None) -> list[CheckResult]:
    """What some seconds of a clock show; `after` are the files once the work has begun."""
    clock = DoctorClock(5e-7)
    before = os.sched_getaffinity(0)

    def work(size: int) -> None:
        if any("repeatedly" in line for line in lines):
            tree(after or {})
        clock.work(size)

    checks = measure_noise(place, SECONDS, lines.append, now=clock, own=lambda: clock.now, work=work).checks
    assert os.sched_getaffinity(0) == before
    return checks


def test_a_system_that_shows_nothing_is_unknown_and_never_good(tree, here, monkeypatch):
    root = tree({"proc/1/comm": "init"})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
    place = CpuPlace(here, frozenset(here), Topology({}, known=False, virtual=None), root)
    lines: list[str] = []
    levels = {check.name: check.level.value for check in measure(tree, place, lines)}
    measured = ("noise", "drift", "interruptions")
    assert {name: levels.pop(name) for name in measured} == dict.fromkeys(measured, "good")
    assert set(levels.values()) == {"unknown"}
    # how long each part takes is announced
    assert [line for line in lines if "1.5 s" in line or "0.5 s" in line] == lines[1:]


def test_other_work_is_what_the_doctor_did_not_do(tree, here):
    (cpu,) = here
    sibling = cpu + 1
    ticks = round(SECONDS * os.sysconf("SC_CLK_TCK"))

    def stat(ours, beside):
        return {
            "proc/stat": f"cpu{cpu} {ours} 0 0 0 0 0 0 0 0 0\ncpu{sibling} {beside} 0 0 {ticks - beside} 0 0 0 0 0 0\n"
        }

    topology = Topology({n: Cpu(n, frozenset({cpu, sibling})) for n in (cpu, sibling)})
    place = CpuPlace(here, frozenset({cpu, sibling}), topology, tree(stat(0, 0)))
    checks = measure(tree, place, [], stat(ticks, ticks // 2))
    (load,) = [check for check in checks if check.name == "other load"]
    assert load.level == "bad"
    assert load.facts["others"] == pytest.approx(0.5, abs=0.02)
    assert load.facts["here"] == pytest.approx(0.5, abs=0.02)


def test_the_headline_is_the_score_in_words(snapshot):
    both = Topology({n: Cpu(n, frozenset({n})) for n in (0, 1)})
    nothing = Counters(0.0, 0.0, {}, {}, {}, None)

    def headline(score, *cpus):
        period = Period(CpuPlace(cpus, frozenset({0, 1}), both), nothing, nothing, None)
        noise = Noise(score, score, 1.0, 1.0, 0.0, 0.0, 0.05, 100)
        return Diagnosis(period, noise, Gaps(1.0, ()), Timer("tsc", 1e-8, 1e-8)).headline(pinned=len(cpus) == 1)

    assert [headline(0.42, 1), headline(1.5, 0, 1), headline(31.0, 1)] == snapshot
