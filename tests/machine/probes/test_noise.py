import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.probes.noise import Noise, calibrate, findings, grade, listen, summary, work
from tests.machine.probes.clocks import Clock


def test_work_is_calibrated_to_50_ms_whatever_disturbs_a_part_of_it() -> None:
    clock = Clock()
    assert calibrate(clock, clock.work) == pytest.approx(50_000, rel=1e-3)
    disturbed = Clock(blocks=[0.001, 0.1])
    assert calibrate(disturbed, disturbed.work) == pytest.approx(50_000, rel=1e-3)


def test_blocks_follow_one_another_for_as_long_as_asked() -> None:
    clock = Clock()
    assert listen(1.0, 50_000, clock, clock.work) == pytest.approx([0.05] * 20, rel=1e-4)


def test_there_are_always_enough_blocks_to_scatter() -> None:
    clock = Clock()
    assert len(listen(1e-9, 50_000, clock, clock.work)) == 3


def test_work_of_one_size_is_the_same_work() -> None:
    assert work(1000) == work(1000) != work(1001)


def test_the_score_is_the_scatter_of_the_logarithms_in_percent() -> None:
    found = summary([0.05 * math.exp(sign * 0.02) for sign in (-1, 1, 1, -1) * 50])
    assert found.score_percent == pytest.approx(2.0, rel=0.01)
    assert found.cv_percent == pytest.approx(2.0, rel=0.01)
    assert found.drift_percent == pytest.approx(0.0, abs=0.1)
    assert found.median_seconds == pytest.approx(0.05, rel=0.01)
    assert found.blocks == 200


def test_one_long_block_shows_in_the_longest_and_a_hundredth_in_p99() -> None:
    assert summary([1.0] * 99 + [3.0]).longest == 3.0
    assert summary([1.0] * 99 + [3.0]).p99 == 1.0
    assert summary([1.0] * 98 + [3.0] * 2).p99 == 3.0


def test_drift_is_what_a_line_rises_by() -> None:
    found = summary([0.05 * math.exp(0.04 * i / 99 + (-1) ** i * 1e-4) for i in range(100)])
    assert found.drift_percent == pytest.approx(4.0, rel=0.01)
    assert found.drift_errors > 4


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=50))
def test_no_times_break_the_summary(blocks: list[float]) -> None:
    found = summary(blocks)
    assert found.score_percent >= 0
    assert found.longest >= found.p99 > 0
    assert len(findings(found)) == 2


@pytest.mark.parametrize(("score", "name"), [(0.0, "quiet"), (0.99, "quiet"), (1.0, "usable"), (3.0, "noisy")])
def test_the_grade_of_a_score(score: float, name: str) -> None:
    assert grade(score) == name


@pytest.mark.parametrize(
    ("percent", "errors", "blocks", "level"),
    [
        (0.9, 10.0, 300, "good"),
        (-2.0, -10.0, 300, "warn"),
        (5.0, 3.9, 300, "good"),
        (5.0, math.inf, 300, "bad"),
        (5.0, 10.0, 10, "good"),
    ],
)
def test_a_drift_counts_where_it_is_large_and_no_scatter(
    percent: float, errors: float, blocks: int, level: str
) -> None:
    noise, drift = findings(Noise(0.5, 0.5, 1.0, 1.0, percent, errors, 0.05, blocks))
    assert noise.level == "good"
    assert drift.level == level
    assert drift.facts["errors"] != math.inf
