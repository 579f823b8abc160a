"""What a clock alone tells of a CPU: noise, drift, interruptions, and what the clock itself is."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.doctor import clock as doctor
from harness.machine.doctor.clock import (
    Gaps,
    Noise,
    Timer,
    calibrate,
    do_work,
    measure_gaps,
    read_timer,
    summarize_noise,
    time_blocks,
)
from tests.machine.conftest import Tree
from tests.machine.doctor.clocks import Clock, pausing


def test_work_is_calibrated_to_50_ms_whatever_disturbs_a_part_of_it() -> None:
    clock = Clock()
    assert calibrate(clock, clock.work) == pytest.approx(50_000, rel=1e-3)
    disturbed = Clock(blocks=[0.001, 0.1])
    assert calibrate(disturbed, disturbed.work) == pytest.approx(50_000, rel=1e-3)


def test_blocks_follow_one_another_for_as_long_as_asked() -> None:
    clock = Clock()
    assert time_blocks(1.0, 50_000, clock, clock.work) == pytest.approx([0.05] * 20, rel=1e-4)


def test_there_are_always_enough_blocks_to_scatter() -> None:
    clock = Clock()
    assert len(time_blocks(1e-9, 50_000, clock, clock.work)) == 3


def test_work_of_one_size_is_the_same_work() -> None:
    assert do_work(1000) == do_work(1000) != do_work(1001)


def test_the_score_is_the_scatter_of_the_logarithms_in_percent() -> None:
    found = summarize_noise([0.05 * math.exp(sign * 0.02) for sign in (-1, 1, 1, -1) * 50])
    assert found.score_percent == pytest.approx(2.0, rel=0.01)
    assert found.cv_percent == pytest.approx(2.0, rel=0.01)
    assert found.drift_percent == pytest.approx(0.0, abs=0.1)
    assert found.median_seconds == pytest.approx(0.05, rel=0.01)
    assert found.blocks == 200


def test_one_long_block_shows_in_the_longest_and_a_hundredth_in_p99() -> None:
    assert summarize_noise([1.0] * 99 + [3.0]).longest == 3.0
    assert summarize_noise([1.0] * 99 + [3.0]).p99 == 1.0
    assert summarize_noise([1.0] * 98 + [3.0] * 2).p99 == 3.0


def test_drift_is_what_a_line_rises_by() -> None:
    found = summarize_noise([0.05 * math.exp(0.04 * i / 99 + (-1) ** i * 1e-4) for i in range(100)])
    assert found.drift_percent == pytest.approx(4.0, rel=0.01)
    assert found.drift_errors > 4


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=50))
def test_no_times_break_the_summary(blocks: list[float]) -> None:
    found = summarize_noise(blocks)
    assert found.score_percent >= 0
    assert found.longest >= found.p99 > 0
    assert doctor.check_noise(found).value
    assert json.dumps(doctor.check_drift(found).facts, allow_nan=False)


@pytest.mark.parametrize(("score", "level"), [(0.0, "good"), (0.99, "good"), (1.0, "warn"), (3.0, "bad")])
def test_the_score_is_said_with_the_blocks_that_it_is_of(score: float, level: str) -> None:
    check = doctor.check_noise(Noise(score, score, 1.2, 3.0, 0.0, 0.0, 0.05, 150))
    assert check.level == level
    assert check.value == (
        f"varies by {score:.2g} % over 150 blocks of 50 ms; 1 % of the blocks take at least 1.2× as long as the "
        "median; "
        "the longest block takes 3×"
    )
    assert "median" not in doctor.check_noise(Noise(score, score, 1.2, 3.0, 0.0, 0.0, 0.05, 99)).value
    assert bool(check.advice) == bool(check.command) == (level != "good")


@pytest.mark.parametrize(
    ("percent", "errors", "blocks", "level", "value"),
    [
        (0.9, 10.0, 300, "good", "0.9 % slower from the first block to the last block"),
        (-2.0, -10.0, 300, "warn", "2 % faster from the first block to the last block"),
        (5.0, math.inf, 300, "bad", "5 % slower from the first block to the last block"),
        (5.0, 3.9, 300, "good", "none beyond the noise (+5 %)"),
        (-5.0, -10.0, 10, "good", "none beyond the noise (-5 %)"),
    ],
)
def test_a_drift_counts_where_it_is_large_and_no_scatter(
    percent: float, errors: float, blocks: int, level: str, value: str
) -> None:
    check = doctor.check_drift(Noise(0.5, 0.5, 1.0, 1.0, percent, errors, 0.05, blocks))
    assert (check.level, check.value) == (level, value)
    assert ("changed its frequency" in check.advice) == (level != "good")


def test_pauses_between_readings_are_kept_where_they_are_long() -> None:
    found = measure_gaps(0.1, pausing({10: 0.005, 20: 0.00005, 30: 0.001}, step=1e-5))
    assert found.pauses == pytest.approx((0.00501, 0.00101))
    assert found.seconds == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(
    ("lost", "level", "value"),
    [
        (0.0, "good", "none of 0.1 ms or longer"),
        (
            0.001,
            "good",
            "0.5 interruptions of 0.1 ms or longer per second; together they take 0.05 % of the time, and the longest "
            "took 1 ms",
        ),
        (
            0.005,
            "warn",
            "0.5 interruptions of 0.1 ms or longer per second; together they take 0.25 % of the time, and the longest "
            "took 5 ms",
        ),
        (
            0.02,
            "bad",
            "0.5 interruptions of 0.1 ms or longer per second; together they take 1 % of the time, and the longest "
            "took 20 ms",
        ),
    ],
)
def test_the_share_that_is_lost_decides(lost: float, level: str, value: str) -> None:
    check = doctor.check_interruptions(Gaps(2.0, (lost,) if lost else ()))
    assert (check.level, check.value) == (level, value)
    assert check.facts == {
        "per_second": 0.5 if lost else 0.0,
        "lost_percent": pytest.approx(50 * lost),
        "longest_seconds": lost,
    }
    assert check.advice.startswith("Other work interrupts" if level in ("warn", "bad") else "")


def test_the_timer_is_read_and_timed(tree: Tree) -> None:
    source = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    found = read_timer(tree({source: "tsc\n"}), Clock(1e-7), calls=1000)
    assert found.source == "tsc"
    assert found.cost == pytest.approx(1e-7, rel=0.01)
    assert found.resolution == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("timer", "level"),
    [
        (Timer("tsc", 5e-8, 3e-8), "good"),
        (Timer("hpet", 5e-7, 1e-7), "warn"),
        (Timer("something", 2e-6, 1e-6), "warn"),
        (Timer("jiffies", 5e-8, 4e-3), "bad"),
        (Timer(None, 5e-8, 3e-8), "unknown"),
    ],
)
def test_a_slow_or_coarse_timer_is_not_good(timer: Timer, level: str) -> None:
    check = doctor.check_timer(timer)
    assert check.level == level
    assert check.value.startswith(
        timer.source or "clock source: this system doesn't report it; one reading takes 50 ns"
    )
    assert ("dmesg" in check.command) == check.facts["slow"] == (level in ("warn", "bad"))
