"""Numbers to text."""

from harness.analysis.statistics import Difference, Estimate, Interval, percent
from harness.model.launch import Clock
from harness.report import format


def estimate(value, low=None, high=None):
    return Estimate(value, 5, None if low is None else Interval(low, high))


def test_numbers_have_three_significant_digits():
    texts = {
        0.0123: "0.0123",
        5.523: "5.52",
        9.999: "10.0",
        55.25: "55.2",
        552.4: "552",
        12345.0: "12,300",
        0.0: "0.00",
        1e300: "1.00·10³⁰⁰",
        float("inf"): "inf",
    }
    assert {value: format.number(value) for value in texts} == texts


def test_a_table_has_one_unit():
    for values, expected in (
        ([5e-6, 2e-5], format.MICROSECONDS),
        ([1e-4], format.MILLISECONDS),
        ([2e-4, 0.3, 9.0], format.MILLISECONDS),
        ([12.0], format.SECONDS),
        ([], format.MILLISECONDS),
    ):
        assert format.unit(values, Clock.WALL) is expected, values
        assert format.unit(values, Clock.CPU) == format.Unit(f"CPU {expected.symbol}", expected.factor)
    assert [format.phase_unit(medians) for medians in ([0.05, 0.2, 4.0], [0.01, 0.05])] == [
        format.SECONDS,
        format.MILLISECONDS,
    ]
    assert [format.memory_unit([count]) for count in (2.0**30 - 1, 2.0**30)] == [format.MEBIBYTES, format.GIBIBYTES]


def test_a_time_has_its_interval():
    assert [
        format.time(value, format.MILLISECONDS)
        for value in (
            estimate(0.00552, 0.00544, 0.00560),
            estimate(0.00552, 0.00552, 0.00552),
            estimate(0.00552, 0.0031, 0.0098),
            estimate(0.00552),
            estimate(12.3456, 12.2, 12.5),
        )
    ] == ["5.52 ± 0.08", "5.52 ± 0.01", "5.52 (3.10 to 9.80)", "5.52", "12,300 ± 200"]
    assert format.format_interval(Interval(2.651, 2.76)) == "2.65 to 2.76"
    assert format.format_interval(None) == ""


def test_a_gain_is_signed_and_has_its_interval():
    assert [
        format.format_gain(value)
        for value in (
            estimate(2.76, 2.68, 2.84),
            estimate(1 / 2.76, 1 / 2.84, 1 / 2.68),
            estimate(1.0, 0.99, 1.0101),
            estimate(1.05, 0.9, 1.1),
            estimate(1.05),
            # an interval never looks narrower than it is
            estimate(1.4, 1.3899, 1.4101),
        )
    ] == [
        "+176 % (+168 to +184)",
        "-176 % (-184 to -168)",
        "+0.0 ± 1.1 %",
        "+5.0 % (-11 to +10)",
        "+5.0 %",
        f"+{percent(1.4):.0f} ± 2 %",
    ]


def test_bytes_differences_shares_levels_and_lengths_of_time():
    texts = {512: "512 B", 8 * 1024**3: "8.00 GiB", 2000 * 1024**3: "2,000 GiB"}
    assert {count: format.bytes_(count) for count in texts} == texts
    assert format.difference(Difference(2e-9, 5, Interval(-3e-9, 1.25)), format.BYTES) == "+0.00 (0.00 to 1.25)"
    assert (
        format.difference(Difference(-1234.0, 5, Interval(-1250.4, -1190.0)), format.BYTES)
        == "-1,230 (-1,250 to -1,190)"
    )
    shares = {0.03: "3 %", 0.0131: "1.31 %", 0.125: "12.5 %", 1.5: "150 %", 10.0: "1,000 %"}
    assert {part: format.share(part) for part in shares} == shares
    levels = {1: "95 %", 2: "97.5 %", 3: "98.3 %", 5: "99 %", 60: "99.92 %", 100: "99.95 %", 1000: "99.995 %"}
    assert {count: format.level(1.0 - 0.05 / count) for count in levels} == levels
    texts = {
        0.4: "0.4 s",
        45.4: "45 s",
        90.0: "90 s",
        150.0: "2.5 min",
        600.0: "10 min",
        5400.0: "90 min",
        7200.0: "2 h",
        1e6: "278 h",
    }
    assert {length: format.duration(length) for length in texts} == texts
    assert [format.steps(Interval(low, high)) for low, high in ((9.0, 39.0), (12345.0, 45678.0))] == [
        "10 to 39",
        "12,300 to 45,700",
    ]
    assert [format.seconds(values) for values in ([1.1, 0.4], [0.5, 0.5], [])] == ["0.4 to 1.1", "0.5", ""]
