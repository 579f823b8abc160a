"""The score of noise on a simulated clock, and the use of the CPU by other processes."""

import os

import psutil
import pytest

from harness.machine.doctor.counters import Counters, CpuPlace, Period
from harness.machine.doctor.noise import FEWEST_BLOCKS, Diagnosis, calibrate, measure_noise
from harness.machine.topology import Cpu, Topology
from tests.machine.conftest import Tree
from tests.machine.doctor.clocks import DoctorClock

SECONDS = 2.0


@pytest.fixture
def here():
    """Return a CPU that this process can be pinned to."""
    return (max(os.sched_getaffinity(0)),)


def measure(place: CpuPlace, clock: DoctorClock, seconds: float = SECONDS) -> Diagnosis:
    before = os.sched_getaffinity(0)
    diagnosis = measure_noise(place, seconds, now=clock, own=lambda: clock.now, work=clock.work)
    assert os.sched_getaffinity(0) == before
    return diagnosis


def test_work_is_calibrated_to_50_ms_whatever_disturbs_a_part_of_it():
    clock = DoctorClock()
    assert calibrate(clock, clock.work) == pytest.approx(50_000, rel=1e-3)
    disturbed = DoctorClock(blocks=[0.001, 0.1])
    assert calibrate(disturbed, disturbed.work) == pytest.approx(50_000, rel=1e-3)


def test_a_system_that_shows_nothing_is_unknown_and_never_good(tree, here, monkeypatch):
    root = tree({"proc/1/comm": "init"})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
    place = CpuPlace(here, frozenset(here), Topology({}, known=False, virtual=None), root)
    diagnosis = measure(place, DoctorClock(5e-7))
    assert diagnosis.grade == "quiet"
    assert {check.level for check in diagnosis.checks} == {"unknown"}


def test_the_score_is_the_variability_of_the_blocks(tree, here):
    place = CpuPlace(here, frozenset(here), Topology({}), tree({}))
    warm_up = [0.05] * 9
    noisy = measure(place, DoctorClock(blocks=[*warm_up, *(0.049, 0.051) * 50]), 5.0)
    assert noisy.score_percent == pytest.approx(2.0, rel=0.02)
    assert (noisy.level, noisy.grade) == ("warn", "usable")
    # a deviation needs two blocks, however short the time is
    assert measure(place, DoctorClock(blocks=[*warm_up, 0.05, 0.06]), 1e-9).score_percent > 10.0
    assert FEWEST_BLOCKS == 2


class LoadedClock(DoctorClock):
    """A clock that replaces the files of its machine during the measured work."""

    def __init__(self, tree: Tree, files: dict[str, str]) -> None:
        super().__init__(5e-7)
        self._tree, self._files = tree, files

    def work(self, size: int) -> None:
        if self.now > SECONDS / 2:
            self._tree(self._files)
        super().work(size)


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
    checks = measure(place, LoadedClock(tree, stat(ticks, ticks // 2))).checks
    (load,) = [check for check in checks if check.name == "other load"]
    assert load.level == "bad"
    assert load.value.startswith("other processes use 0.50 of 2 CPUs, including 0.50 where launches run")


def test_the_headline_is_the_score_in_words(snapshot):
    both = Topology({n: Cpu(n, frozenset({n})) for n in (0, 1)})
    nothing = Counters(0.0, 0.0, {}, {})

    def headline(score, *cpus):
        period = Period(CpuPlace(cpus, frozenset({0, 1}), both), nothing, nothing)
        return Diagnosis(score, period).headline(pinned=len(cpus) == 1)

    assert [headline(0.42, 1), headline(1.5, 0, 1), headline(31.0, 1)] == snapshot
