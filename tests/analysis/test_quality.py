"""The quality of a measurement, from facts that don't depend on the measured differences."""

import math

import pytest

from harness.analysis.control import Control
from harness.analysis.interference import NoisyRound, RunInterference
from harness.analysis.quality import Grade, assess
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from tests.factories import RESOURCES, cells, rounds, run

MARGIN = math.log(1.03)
TIMES = dict.fromkeys(cells(), 0.01)
UNREPEATED = NoisyRound("group", 1, "why", repeated=False)
REPEATED = NoisyRound("group", 1, "why", repeated=True)


def make_control(low, high, rounds=4):
    return Control(Estimate(math.sqrt(low * high), rounds, Interval(low, high)), 1)


def make_interference(*, noisy=(), taken=(), stopped=(), is_known=True):
    return RunInterference(is_known, 4, noisy, 100, taken, stopped)


@pytest.mark.parametrize(
    ("facts", "grade"),
    [
        ({}, Grade.GOOD),
        # the control rules out a bias as large as the margin, or not
        ({"control": make_control(0.98, 1.029)}, Grade.GOOD),
        ({"control": make_control(0.98, 1.031)}, Grade.FAIR),
        ({"control": make_control(0.96, 1.01)}, Grade.FAIR),
        ({"control": make_control(0.7, 1.1)}, Grade.POOR),
        ({"control": make_control(0.9, 1.3)}, Grade.POOR),
        # an interval after two rounds says nothing about the machine
        ({"control": make_control(0.5, 2.0, rounds=2)}, Grade.FAIR),
        ({"control": make_control(1.04, 1.05)}, Grade.POOR),
        ({"control": Control(Estimate(1.2, 1), 1)}, Grade.FAIR),
        ({"control": None}, Grade.FAIR),
        ({"control": None, "compares": False}, Grade.GOOD),
        ({"rounds": [2, 5]}, Grade.FAIR),
        # one launch of a hundred, half of them, and more than half
        ({"interference": make_interference(taken=[0.9])}, Grade.FAIR),
        ({"interference": make_interference(taken=[0.9] * 49)}, Grade.FAIR),
        ({"interference": make_interference(taken=[0.3] * 51)}, Grade.POOR),
        ({"interference": make_interference(taken=[0.2] * 100)}, Grade.FAIR),
        ({"interference": make_interference(taken=[0.3] * 30, stopped=[0.3] * 30)}, Grade.POOR),
        ({"interference": make_interference(noisy=[REPEATED])}, Grade.GOOD),
        ({"interference": make_interference(noisy=[REPEATED, UNREPEATED])}, Grade.FAIR),
        ({"interference": make_interference(is_known=False)}, Grade.FAIR),
    ],
)
def test_the_grade_follows_from_the_facts(facts, grade):
    known = {"rounds": [4], "control": make_control(0.99, 1.01), "interference": make_interference(), "compares": True}
    quality = assess(**{**known, **facts}, margin=MARGIN)
    assert quality is not None
    assert quality.grade is grade


def test_a_run_without_times_has_no_quality_and_another_run_that_of_its_launches():
    assert Results(run(), []).quality is None

    def measure(**changes):
        launches = rounds(TIMES, spread=0.001, controls={cells()[0]: 0.01}, resources={**RESOURCES, **changes})
        return Results(run(TIMES, controlled=True), launches)

    calm, disturbed = measure(), measure(steady_cpu_seconds=0.4)
    assert (calm.quality.grade, disturbed.quality.grade) == (Grade.GOOD, Grade.POOR)
    assert (calm.is_poor, disturbed.is_poor) == (False, True)
    assert "poor" in repr(disturbed)
