"""All checks together, on systems made of files."""

import os

import psutil
import pytest

from harness.machine.doctor.check import CheckResult
from harness.machine.doctor.clock import Gaps, Noise, Timer
from harness.machine.doctor.counters import Counters, CpuPlace, Period
from harness.machine.doctor.diagnosis import Diagnosis, measure_noise
from harness.machine.topology import Cpu, Topology
from tests.machine.conftest import Tree
from tests.machine.doctor.clocks import Clock

SECONDS = 2.0


@pytest.fixture
def here() -> tuple[int, ...]:
    """A CPU that this process can be pinned to."""
    return (max(os.sched_getaffinity(0)),)


def heard_on(tree: Tree, place: CpuPlace, said: list[str], after: dict[str, str] | None = None) -> list[CheckResult]:
    """What is found in some seconds of a clock; `after` are the files once the work has begun."""
    clock = Clock(5e-7)
    before = os.sched_getaffinity(0)

    def work(size: int) -> None:
        if any("repeatedly" in line for line in said):
            tree(after or {})
        clock.work(size)

    found = measure_noise(place, SECONDS, said.append, now=clock, own=lambda: clock.now, work=work).checks
    assert os.sched_getaffinity(0) == before
    return found


def test_a_system_that_shows_nothing_is_unknown_and_never_good(
    tree: Tree, here: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree({"proc/1/comm": "init"})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
    place = CpuPlace(here, frozenset(here), Topology({}, known=False, virtual=None), root)
    levels = {finding.name: finding.level.value for finding in heard_on(tree, place, [])}
    measured = ("noise", "drift", "interruptions")
    assert {name: levels.pop(name) for name in measured} == dict.fromkeys(measured, "good")
    assert set(levels.values()) == {"unknown"}


def test_what_is_done_and_for_how_long_is_said(tree: Tree, here: tuple[int, ...]) -> None:
    said: list[str] = []
    heard_on(tree, CpuPlace(here, frozenset(here), Topology({}), tree({})), said)
    assert [line for line in said if "1.5 s" in line or "0.5 s" in line] == said[1:]


def test_other_work_is_what_the_doctor_did_not_do(tree: Tree, here: tuple[int, ...]) -> None:
    (cpu,) = here
    sibling = cpu + 1
    ticks = round(SECONDS * os.sysconf("SC_CLK_TCK"))

    def stat(own: int, beside: int) -> dict[str, str]:
        return {
            "proc/stat": f"cpu{cpu} {own} 0 0 0 0 0 0 0 0 0\ncpu{sibling} {beside} 0 0 {ticks - beside} 0 0 0 0 0 0\n"
        }

    topology = Topology({n: Cpu(n, frozenset({cpu, sibling})) for n in (cpu, sibling)})
    place = CpuPlace(here, frozenset({cpu, sibling}), topology, tree(stat(0, 0)))
    (found,) = [f for f in heard_on(tree, place, [], stat(ticks, ticks // 2)) if f.name == "other load"]
    assert found.level == "bad"
    assert found.facts["others"] == pytest.approx(0.5, abs=0.02)
    assert found.facts["here"] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("score", "pinned", "words"),
    [
        (
            0.42,
            True,
            "Quiet: the same 50 ms of work, timed repeatedly, varies by 0.42 % on CPU 1, alone on its physical "
            "core. Differences of a few percent can be measured here.",
        ),
        (
            1.5,
            False,
            "Usable: the same 50 ms of work, timed repeatedly, varies by 1.5 % on the machine's 2 CPUs. To",
        ),
        (31.0, True, "Noisy: the same 50 ms of work, timed repeatedly, varies by 31 % on"),
    ],
)
def test_the_headline_is_the_score_in_words(score: float, pinned: bool, words: str) -> None:
    both = Topology({n: Cpu(n, frozenset({n})) for n in (0, 1)})
    nothing = Counters(0.0, 0.0, {}, {}, {}, None)
    period = Period(CpuPlace((1,) if pinned else (0, 1), frozenset({0, 1}), both), nothing, nothing, None)
    noise = Noise(score, score, 1.0, 1.0, 0.0, 0.0, 0.05, 100)
    heard = Diagnosis(period, noise, Gaps(1.0, ()), Timer("tsc", 1e-8, 1e-8))
    assert heard.headline(pinned=pinned).startswith(words)
