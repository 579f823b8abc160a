import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.statistics import Estimate, Interval
from harness.report.charts import axes

logs = st.floats(-600.0, 600.0)
halves = st.floats(0.0, 700.0)


def estimate(log: float, half: float | None = None) -> Estimate:
    if half is None:
        return Estimate(math.exp(log), 1)
    return Estimate(math.exp(log), 5, Interval(math.exp(max(-700.0, log - half)), math.exp(min(700.0, log + half))))


@pytest.mark.slow
@given(st.lists(st.tuples(logs, st.none() | halves), min_size=1, max_size=6))
def test_every_value_is_on_the_axis_and_every_bar_within_it(parts):
    estimates = [estimate(log, half) for log, half in parts]
    domain = axes.choose_domain(estimates, around=(1.0,))
    assert 0.0 < domain.low < domain.high < math.inf
    assert 1.0 in domain
    for one in estimates:
        assert one.value in domain
        if one.interval:
            bar = axes.clip_interval(one.interval, domain)
            assert domain.low <= bar.low <= bar.high <= domain.high
            assert all(cap in domain for cap in bar.caps)


def test_one_endless_interval_does_not_press_the_others_together():
    domain = axes.choose_domain([estimate(0.0, 0.01), estimate(0.1, 500.0)])
    assert domain.high < 4.0
    assert axes.clip_interval(estimate(0.1, 500.0).interval, domain).caps == []
    assert len(axes.clip_interval(Interval(0.9, 1.1), Interval(0.5, 2.0)).caps) == 2


@given(st.floats(-300.0, 0.0), st.floats(0.0, 300.0))
def test_marks_of_ratios_have_room_and_are_on_the_axis(low, high):
    domain = Interval(math.exp(low - 0.01), math.exp(high + 0.01))
    marks = axes.choose_ratio_ticks(domain, 400.0)
    assert 1.0 in marks
    assert all(mark in domain for mark in marks)
    scale = 400.0 / math.log(domain.high / domain.low)
    assert all(scale * math.log(b / a) >= axes.APART for a, b in itertools.pairwise(marks))


def test_marks_of_ratios_are_round_numbers_below_and_above_1():
    for low, high, marks in (
        (0.96, 1.04, [0.96, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04]),
        (0.85, 1.2, [0.9, 0.95, 1.0, 1.05, 1.1, 1.2]),
        (0.4, 2.5, [0.5, 0.7, 1.0, 1.5, 2.0]),
        (0.05, 30.0, [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]),
        (1e-7, 1e7, [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6]),
    ):
        assert axes.choose_ratio_ticks(Interval(low, high), 400.0) == pytest.approx(marks), (low, high)


@given(st.floats(-250.0, 200.0), st.floats(2.5, 80.0))
def test_marks_of_times_are_few_and_on_the_axis(low, span):
    domain = Interval(math.exp(low), math.exp(low + span))
    marks = axes.choose_time_ticks(domain)
    assert 1 <= len(marks) <= 10
    assert all(mark in domain for mark in marks)


def test_marks_of_times_are_one_two_and_five_of_each_decade_and_far_times_have_a_log_axis():
    assert axes.choose_time_ticks(Interval(0.9, 60.0)) == [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    assert [axes.is_log(values) for values in ([1.0, 10.0], [1.0, 10.1], [3.0])] == [False, True, False]
