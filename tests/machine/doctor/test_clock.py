"""What a clock alone tells of a CPU: noise, drift, interruptions, and what the clock itself is."""

import json
import math
from itertools import accumulate, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.doctor import clock as doctor
from harness.machine.doctor.clock import (
    Gaps,
    Noise,
    Timer,
    calibrate,
    measure_gaps,
    read_timer,
    summarize_noise,
    time_blocks,
)
from tests.machine.doctor.checks import read_checks
from tests.machine.doctor.clocks import DoctorClock


def test_work_is_calibrated_to_50_ms_whatever_disturbs_a_part_of_it():
    clock = DoctorClock()
    assert calibrate(clock, clock.work) == pytest.approx(50_000, rel=1e-3)
    disturbed = DoctorClock(blocks=[0.001, 0.1])
    assert calibrate(disturbed, disturbed.work) == pytest.approx(50_000, rel=1e-3)


def test_blocks_follow_one_another_for_as_long_as_asked_and_are_enough_to_scatter():
    clock = DoctorClock()
    assert time_blocks(1.0, 50_000, clock, clock.work) == pytest.approx([0.05] * 20, rel=1e-4)
    assert len(time_blocks(1e-9, 50_000, clock, clock.work)) == 3


def test_a_summary_has_the_scatter_of_the_logarithms_the_drift_and_the_longest_blocks():
    noise = summarize_noise([0.05 * math.exp(sign * 0.02) for sign in (-1, 1, 1, -1) * 50])
    assert noise.score_percent == pytest.approx(2.0, rel=0.01)
    assert noise.cv_percent == pytest.approx(2.0, rel=0.01)
    assert noise.drift_percent == pytest.approx(0.0, abs=0.1)
    assert noise.median_seconds == pytest.approx(0.05, rel=0.01)
    assert noise.blocks == 200
    rising = summarize_noise([0.05 * math.exp(0.04 * i / 99 + (-1) ** i * 1e-4) for i in range(100)])
    assert rising.drift_percent == pytest.approx(4.0, rel=0.01)
    assert rising.drift_errors > 4
    # one long block is no hundredth
    few, more = (summarize_noise([1.0] * (100 - count) + [3.0] * count) for count in (1, 2))
    assert (few.longest, few.p99, more.p99) == (3.0, 1.0, 3.0)


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=50))
def test_no_times_break_the_summary(blocks):
    noise = summarize_noise(blocks)
    assert noise.score_percent >= 0
    assert noise.longest >= noise.p99 > 0
    assert doctor.check_noise(noise).value
    assert json.dumps(doctor.check_drift(noise).facts, allow_nan=False)


def test_the_score_has_a_level(snapshot):
    def check(score, blocks=150):
        return doctor.check_noise(Noise(score, score, 1.2, 3.0, 0.0, 0.0, 0.05, blocks))

    checks = {"good": [check(0.0), check(0.99), check(0.5, 99), check(0.5, 100)], "warn": [check(1.0)]}
    assert read_checks({**checks, "bad": [check(3.0)]}) == snapshot


def test_a_drift_counts_where_it_is_large_and_no_scatter(snapshot):
    def check(percent, errors, blocks):
        return doctor.check_drift(Noise(0.5, 0.5, 1.0, 1.0, percent, errors, 0.05, blocks))

    checks = {
        "good": [check(0.9, 10.0, 300), check(5.0, 3.9, 300), check(-5.0, -10.0, 10)],
        "warn": [check(-2.0, -10.0, 300), check(2.0, doctor.DRIFT_ERRORS, doctor.DRIFT_BLOCKS)],
        "bad": [check(5.0, math.inf, 300)],
    }
    assert read_checks(checks) == snapshot


def test_pauses_between_readings_are_kept_where_they_are_long():
    pauses = {10: 0.005, 20: 0.00005, 30: 0.001}
    times = accumulate(1e-5 + pauses.get(number, 0.0) for number in count(1))
    gaps = measure_gaps(0.1, times.__next__)
    assert gaps.pauses == pytest.approx((0.00501, 0.00101))
    assert gaps.seconds == pytest.approx(0.1, rel=0.01)


def test_the_share_that_is_lost_decides(snapshot):
    checks = [doctor.check_interruptions(Gaps(2.0, pauses)) for pauses in ((), (0.001,), (0.005,), (0.02,))]
    quiet, good, warn, bad = checks
    assert read_checks({"good": [quiet, good], "warn": [warn], "bad": [bad]}) == snapshot
    assert quiet.facts == {"per_second": 0.0, "lost_percent": 0.0, "longest_seconds": 0.0}
    assert warn.facts == {"per_second": 0.5, "lost_percent": pytest.approx(0.25), "longest_seconds": 0.005}


def test_the_timer_is_read_and_timed(tree):
    source = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    timer = read_timer(tree({source: "tsc\n"}), DoctorClock(1e-7), calls=1000)
    assert timer.source == "tsc"
    assert timer.cost == pytest.approx(1e-7, rel=0.01)
    assert timer.resolution == pytest.approx(1e-7)


def test_a_slow_or_coarse_timer_is_not_good(snapshot):
    timers = {
        "good": [Timer("tsc", 5e-8, 3e-8)],
        "warn": [Timer("hpet", 5e-7, 1e-7), Timer("something", 2e-6, 1e-6)],
        "bad": [Timer("jiffies", 5e-8, 4e-3)],
        "unknown": [Timer(None, 5e-8, 3e-8)],
    }
    checks = {level: [doctor.check_timer(timer) for timer in timers[level]] for level in timers}
    assert read_checks(checks) == snapshot
    slow = {level: {check.facts["slow"] for check in results} for level, results in checks.items()}
    assert slow == {"good": {False}, "warn": {True}, "bad": {True}, "unknown": {False}}
