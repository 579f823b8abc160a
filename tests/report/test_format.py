"""Numbers to text."""

import pytest

from harness.analysis.distribution import Spread
from harness.analysis.statistics import Difference, Estimate, Interval, percent
from harness.model.launch import Clock
from harness.report.format import (
    BYTES,
    GIBIBYTES,
    MEBIBYTES,
    MICROSECONDS,
    MILLISECONDS,
    SECONDS,
    Unit,
    bytes_,
    difference,
    duration,
    format_fewer_rounds,
    format_gain,
    format_interval,
    level,
    memory_unit,
    number,
    phase_unit,
    seconds,
    share,
    spread,
    time,
    unit,
)


def estimate(value, low=None, high=None):
    return Estimate(value, 5, None if low is None else Interval(low, high))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123, "0.0123"),
        (5.523, "5.52"),
        (9.999, "10.0"),
        (55.25, "55.2"),
        (552.4, "552"),
        (12345.0, "12,300"),
        (0.0, "0.00"),
    ],
)
def test_three_significant_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [([5e-6, 2e-5], MICROSECONDS), ([1e-4], MILLISECONDS), ([2e-4, 0.3, 9.0], MILLISECONDS), ([12.0], SECONDS)],
)
def test_one_unit_for_a_table(seconds, expected):
    assert unit(seconds, Clock.WALL) is expected
    assert unit(seconds, Clock.CPU) == Unit(f"CPU {expected.symbol}", expected.factor)
    assert unit([], Clock.WALL) is MILLISECONDS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (estimate(0.00552, 0.00544, 0.00560), "5.52 ± 0.08"),
        (estimate(0.00552, 0.00552, 0.00552), "5.52 ± 0.01"),
        (estimate(0.00552, 0.0031, 0.0098), "5.52 (3.10 to 9.80)"),
        (estimate(0.00552), "5.52"),
        (estimate(12.3456, 12.2, 12.5), "12,300 ± 200"),
    ],
)
def test_a_time_with_its_interval(value, text):
    assert time(value, MILLISECONDS) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (estimate(2.76, 2.68, 2.84), "+176 % (+168 to +184)"),
        (estimate(1 / 2.76, 1 / 2.84, 1 / 2.68), "-176 % (-184 to -168)"),
        (estimate(1.0, 0.99, 1.0101), "+0.0 ± 1.1 %"),
        (estimate(1.05, 0.9, 1.1), "+5.0 % (-11 to +10)"),
        (estimate(1.05), "+5.0 %"),
    ],
)
def test_a_gain_is_signed_and_has_its_interval(value, text):
    assert format_gain(value) == text


def test_an_interval_never_looks_narrower_than_it_is():
    assert format_gain(estimate(1.4, 1.3899, 1.4101)) == f"+{percent(1.4):.0f} ± 2 %"


def test_the_ends_of_a_ratio():
    assert format_interval(Interval(2.651, 2.76)) == "2.65 to 2.76"
    assert format_interval(None) == ""


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (8 * 1024**3, "8.00 GiB"), (2000 * 1024**3, "2,000 GiB")])
def test_bytes(count, text):
    assert bytes_(count) == text


def test_a_difference_of_less_than_a_hundredth_is_none():
    assert difference(Difference(2e-9, 5, Interval(-3e-9, 1.25)), BYTES) == "+0.00 (0.00 to 1.25)"
    assert difference(Difference(-1234.0, 5, Interval(-1250.4, -1190.0)), BYTES) == "-1,230 (-1,250 to -1,190)"


def test_what_no_digits_can_hold_is_still_text():
    assert number(float("inf")) == "inf"
    assert number(1e300) == "1.00·10³⁰⁰"


def test_a_spread_over_launches():
    assert spread(Spread(0.84, 0.79, 0.93, 5)) == "0.840 (0.790 to 0.930)"
    assert spread(Spread(0.084, 0.079, 0.093, 5), 1e3) == "84.0 (79.0 to 93.0)"
    assert spread(Spread(0.84, 0.84, 0.84, 1)) == "0.840"


@pytest.mark.parametrize(("medians", "expected"), [([0.05, 0.2, 4.0], SECONDS), ([0.01, 0.05], MILLISECONDS)])
def test_one_unit_for_a_phase(medians, expected):
    assert phase_unit(medians) is expected


@pytest.mark.parametrize(("counts", "expected"), [([2.0**29], MEBIBYTES), ([2.0**30], GIBIBYTES)])
def test_one_unit_for_memory(counts, expected):
    assert memory_unit(counts) is expected


@pytest.mark.parametrize(
    ("part", "text"), [(0.03, "3 %"), (0.0131, "1.31 %"), (0.125, "12.5 %"), (1.5, "150 %"), (10.0, "1,000 %")]
)
def test_a_share_has_no_needless_digits(part, text):
    assert share(part) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0.4, "0.4 s"),
        (45.4, "45 s"),
        (90.0, "90 s"),
        (150.0, "2.5 min"),
        (600.0, "10 min"),
        (5400.0, "90 min"),
        (7200.0, "2 h"),
        (1e6, "278 h"),
    ],
)
def test_a_length_of_time(length, text):
    assert duration(length) == text


def test_fewer_rounds_are_told():
    assert format_fewer_rounds(estimate(1.0), 6) == "n=5"
    assert format_fewer_rounds(estimate(1.0), 5) == ""


@pytest.mark.parametrize(("values", "text"), [([1.1, 0.4], "0.4 to 1.1"), ([0.5, 0.5], "0.5"), ([], "")])
def test_lengths_in_seconds(values, text):
    assert seconds(values) == text


@pytest.mark.parametrize(
    ("comparisons", "text"),
    [(1, "95 %"), (2, "97.5 %"), (3, "98.3 %"), (5, "99 %"), (60, "99.92 %"), (100, "99.95 %"), (1000, "99.995 %")],
)
def test_a_level_is_never_rounded_to_all(comparisons, text):
    assert level(1.0 - 0.05 / comparisons) == text
