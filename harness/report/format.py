"""Formatting of numbers: three significant digits, intervals, ranges over launches, units, and plots of characters."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.analysis.distribution import Spread
from harness.analysis.quantities import is_time
from harness.analysis.statistics import Difference, Estimate, Interval, percent
from harness.analysis.sweeps import MeasuredSweep
from harness.analysis.tables import ScenarioTable, Value
from harness.analysis.trends import Trend
from harness.analysis.verdicts import Verdict
from harness.model.launch import Clock
from harness.model.scenario import GROWTH, PEAK, PERCENTILES, STEP
from harness.model.texts import (
    count_decimals,
    counted,
    format_decimals,
    format_duration,
    format_exact,
    format_number,
    format_ordinal,
    format_plain,
    trim_zeros,
)

#: Marks of a number: for uneven samples in a launch, for outliers among the launches, for steps that weren't counted,
#: and for a step time that changes during the measurement.
UNEVEN, OUTLYING, UNDONE, CHANGING = "†", "◊", "‡", "§"

#: Ratios below this are turned round in sentences, and in a table beside the ratio, because nobody reads 0.0242×.
SMALL_RATIO = 0.5

#: The width of a plot in characters.
PLOT_WIDTH = 25

_EMPTY, _EQUAL, _BETWEEN, POINT = "·", "│", "─", "●"
#: The marks of an interval that continues beyond the plot, on the left and on the right.
_BEYOND = ("◂", "▸")

#: The characters for the numbers of a curve, from the lowest to the highest.
_HEIGHTS = "▁▂▃▄▅▆▇█"

# an interval whose sides differ by more than this factor is shown as a range instead of with ±
_LOPSIDED = 1.25

# from this percentage on, an interval is shown as a range
_RANGE_FROM = 50.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its symbol, and the number of units per second, per byte, or per base unit of another quantity."""

    symbol: str
    factor: float


SECONDS = Unit("s", 1.0)
MILLISECONDS = Unit("ms", 1e3)
MICROSECONDS = Unit("µs", 1e6)
BYTES = Unit("B", 1.0)
KIBIBYTES = Unit("KiB", 2.0**-10)
MEBIBYTES = Unit("MiB", 2.0**-20)
GIBIBYTES = Unit("GiB", 2.0**-30)
PERCENT = Unit("%", 100.0)
JOULES = Unit("J", 1.0)
MILLIJOULES = Unit("mJ", 1e3)
MEGAHERTZ = Unit("MHz", 1.0)
#: The unit of a plain number.
ONE = Unit("", 1.0)


def unit(seconds: Sequence[float], clock: Clock) -> Unit:
    """Return the unit for times: ms if the median is from 0.1 ms to 1 s, otherwise s or µs; for CPU time, `CPU ms`."""
    median = statistics.median(seconds) if seconds else 1e-3
    if median >= 1.0:
        return of_clock(SECONDS, clock)
    return of_clock(MILLISECONDS if median >= 1e-4 else MICROSECONDS, clock)


def of_clock(unit: Unit, clock: Clock) -> Unit:
    """Return the unit for times of a clock. Units of CPU time start with `CPU`."""
    return Unit(f"CPU {unit.symbol}", unit.factor) if clock is Clock.CPU else unit


def unit_of(table: ScenarioTable) -> Unit:
    """Return the unit for the values of a table."""
    values = [value.estimate.value for *_, value in table.times() if value.estimate]
    if table.in_seconds:
        return phase_unit(values)
    return unit_of_quantity(table.quantity, values, table.clock)


def unit_of_quantity(quantity: str, values: Sequence[float], clock: Clock) -> Unit:
    """Return one unit for the values of a quantity (at least one value)."""
    if quantity == STEP or quantity in PERCENTILES:
        return unit(values, clock)
    if is_time(quantity):
        return of_clock(phase_unit(values), clock)
    return {PEAK: memory_unit, GROWTH: growth_unit}.get(quantity, lambda _: ONE)(values)


def phase_unit(seconds: Sequence[float]) -> Unit:
    """Return the unit for a column of phase times (at least one): seconds, or ms if their median is below 0.1 s."""
    return SECONDS if statistics.median(seconds) >= 0.1 else MILLISECONDS


def memory_unit(counts: Sequence[float]) -> Unit:
    """Return the unit for a column of bytes (at least one): GiB, or MiB if their median is below 1 GiB."""
    return GIBIBYTES if statistics.median(counts) >= 1 / GIBIBYTES.factor else MEBIBYTES


def growth_unit(counts: Sequence[float]) -> Unit:
    """Return the unit for bytes per call (at least one value), so that the largest value has less than 5 digits."""
    largest = max(map(abs, counts))
    return next((candidate for candidate in (BYTES, KIBIBYTES) if largest * candidate.factor < 10_000.0), MEBIBYTES)


def energy_unit(joules: Sequence[float]) -> Unit:
    """Return the unit for a column of energies (at least one): joules, or mJ if their median is below 0.1 J."""
    return JOULES if statistics.median(joules) >= 0.1 else MILLIJOULES


#: Formats a number with three significant digits and thousands separators: 0.0123, 5.52, 552, 12,300.
number = format_number


def time(estimate: Estimate, unit: Unit) -> str:
    """Format a time per step, or another quantity, in a unit, with its interval: `5.52 ± 0.08`, `5.5 (3.1 to 9.8)`."""
    if unit is ONE and (estimate.interval is None or estimate.interval.high - estimate.interval.low < 1e-6):
        return format_exact(estimate.value)  # a count that doesn't vary
    scaled_interval = estimate.interval and Interval(
        estimate.interval.low * unit.factor, estimate.interval.high * unit.factor
    )
    return _format_with_interval(estimate.value * unit.factor, scaled_interval, count_decimals, number)


def format_gain(ratio: Estimate) -> str:
    """Return a ratio as a signed percentage, with its interval: `+17 ± 8 %`, `-3.1 % (-9.0 to +2.7)`.

    From 50 % on, the interval is shown as a range, because it isn't symmetric.
    """
    value = percent(ratio.value)
    interval = ratio.interval and Interval(percent(ratio.interval.low), percent(ratio.interval.high))
    return _format_with_interval(
        value, interval, _count_percent_decimals, _format_signed, " %", is_range=abs(value) >= _RANGE_FROM
    )


def format_self_difference(ratio: Estimate) -> str:
    """Return the difference of two identical cells with its interval, without a direction."""
    return format_gain(ratio if ratio.value >= 1.0 else ratio.inverse).lstrip("+")


def factor(value: float) -> str:
    """Return a ratio of times: `2.70×`."""
    return f"{number(value)}×"


def ratio(value: Estimate) -> str:
    """Return a ratio with its interval: `2.70× (2.65 to 2.76)`. For memory growth, it is a difference of bytes.

    A ratio of one round has only a bound: `40.0× (at least 20.0×)`.
    """
    if isinstance(value, Difference):
        return f"{difference(value, BYTES)} B per call"
    return factor(value.value) + (f" ({bounds(value)})" if value.interval else "")


def bounds(value: Estimate) -> str:
    """Return the interval of an estimate, such as `2.65 to 2.76`, or the bound of a ratio of one round."""
    if value.interval and value.rounds == 1:
        is_large = value.value > 1.0
        return f"at least {factor(value.interval.low)}" if is_large else f"at most {factor(value.interval.high)}"
    return format_interval(value.interval)


def ratio_and_inverse(value: Estimate, verdict: Verdict | None) -> str:
    """Return a ratio for a table. A small ratio is also turned round: `0.0242× (0.0235 to 0.0249), 41.3× faster`."""
    is_small = value.value < SMALL_RATIO and verdict in (Verdict.FASTER, Verdict.LESS)
    is_turned = is_small and not isinstance(value, Difference)
    return f"{ratio(value)}, {factor(1.0 / value.value)} {verdict}" if is_turned else ratio(value)


def difference(value: Difference, unit: Unit) -> str:
    """Return a difference in a unit, signed, with its interval: `+1,230 (1,190 to 1,270)`.

    Numbers have at most two decimals, because a difference below 0.01 units doesn't matter.
    """
    interval = [value.interval.low, value.interval.high] if value.interval else []
    text, *ends = (
        format_decimals(amount * unit.factor, min(2, count_decimals(amount * unit.factor)))
        for amount in (value.value, *interval)
    )
    sides = f" ({' to '.join(ends)})" if ends else ""
    return f"{'' if text.startswith('-') else '+'}{text}{sides}"


def format_interval(interval: Interval | None, factor: float = 1.0) -> str:
    """Return the ends of an interval, multiplied by `factor`: `2.65 to 2.76`; empty for None."""
    return f"{number(interval.low * factor)} to {number(interval.high * factor)}" if interval else ""


def size(value: float, sweep: MeasuredSweep) -> str:
    """Format a size with 3 digits. If all sizes of the sweep are whole, sizes from 10 on have no decimals."""
    if value in sweep.sizes:
        return format_exact(value)
    if value >= 10.0 and all(sweep_size.is_integer() for sweep_size in sweep.sizes):
        return f"{float(f'{value:.3g}'):,.0f}"
    return number(value)


def marks(value: Value, clock: Clock) -> dict[str, str]:
    """Return the marks of a time in order, each with its extent, such as `3 of 5` launches or steps."""
    shares = {UNEVEN: value.shape.uneven, OUTLYING: value.shape.outliers} if value.shape else {}
    launch_marks = {mark: f"{share.count} of {share.of}" for mark, share in shares.items() if share.count}
    trend_mark = {CHANGING: trend(value.shape.trend, clock)} if value.shape and value.shape.trend else {}
    return {**launch_marks, **({UNDONE: value.undone} if value.undone else {}), **trend_mark}


def trend(step_trend: Trend, clock: Clock) -> str:
    """Describe how a step changes: `13.0 s at the 3rd step, 31.0 s at the 30th`.

    The text adds `(the machine may be the cause)` if nothing else shows the cause.
    """
    first_stage, last_stage = step_trend.stages[0], step_trend.stages[-1]
    times = [stage.seconds for stage in (first_stage, last_stage)]
    time_unit = of_clock(phase_unit(times) if min(times) >= 1e-4 else MICROSECONDS, clock)
    first_time, last_time = (f"{number(length * time_unit.factor)} {time_unit.symbol}" for length in times)
    cause_note = " (the machine may be the cause)" if step_trend.unsure else ""
    if step_trend.counted:
        ordinals = [format_ordinal(_round_count(math.floor(stage.step) + 1.0)) for stage in (first_stage, last_stage)]
        return f"{first_time} at the {ordinals[0]} step, {last_time} at the {ordinals[1]}{cause_note}"
    steps_between = max(1, _round_count(last_stage.step - first_stage.step))
    return f"{first_time} at first, {last_time} {counted(steps_between, 'step')} later{cause_note}"


def steps(span: Interval) -> str:
    """Return a range of steps: `10 to 40`."""
    return f"{_round_count(span.low + 1.0):,} to {_round_count(span.high):,}"


def _round_count(value: float) -> int:
    """Round to a whole number. Numbers from 1,000 on have 3 significant digits."""
    return round(value) if value < 1000.0 else round(float(f"{value:.3g}"))


def format_fewer_rounds(estimate: Estimate, rounds: int) -> str:
    """Return `n=3` if an estimate has fewer rounds than its table; otherwise empty."""
    return f"n={estimate.rounds}" if estimate.rounds < rounds else ""


def spread(summary: Spread, factor: float = 1.0) -> str:
    """Format the median over launches, with p10 to p90: `0.840 (0.790 to 0.930)`. For one launch, return its value."""
    low, high = (number(end * factor) for end in (summary.low, summary.high))
    return number(summary.median * factor) + (f" ({low} to {high})" if summary.launches > 1 else "")


def share(fraction: float) -> str:
    """Format a share as a percentage without unnecessary digits: `3 %`, `1.31 %`, `12.5 %`."""
    return f"{trim_zeros(number(100.0 * fraction))} %"


def rough_share(fraction: float) -> str:
    """Format a share as a percentage with two digits: `3 %`, `1.3 %`, `12 %`."""
    return share(float(f"{fraction:.2g}"))


def level(confidence: float) -> str:
    """Return a confidence level below 1, never rounded to 100 %: `95 %`, `98.3 %`, `99.95 %`."""
    distance = 100.0 * (1.0 - confidence)
    return f"{trim_zeros(format_decimals(100.0 * confidence, max(1, -math.floor(math.log10(distance)))))} %"


#: Returns a duration with two digits, in a readable unit: `45 s`, `2.5 min`, `12 min`, `3 h`.
duration = format_duration


def seconds(values: Sequence[float]) -> str:
    """Format the range of some durations in seconds: `0.4 to 1.1`, or `0.5` if they are equal; empty without any."""
    ends = [format_plain(end, 6) for end in ((min(values), max(values)) if values else ())]
    return " to ".join(dict.fromkeys(ends))


def bytes_(count: float) -> str:
    """Return bytes in the largest binary unit that keeps them above 1: `15.5 GiB`."""
    for symbol in ("B", "KiB", "MiB"):
        if count < 1024.0:
            return f"{number(count)} {symbol}"
        count /= 1024.0
    return f"{number(count)} GiB"


def _format_with_interval(
    value: float,
    interval: Interval | None,
    decimals: Callable[[float], int],
    format_value: Callable[[float], str],
    suffix: str = "",
    *,
    is_range: bool = False,
) -> str:
    if interval is None:
        return f"{format_value(value)}{suffix}"
    upper_width, lower_width = interval.high - value, value - interval.low
    is_lopsided = (
        not math.isfinite(upper_width)
        or max(upper_width, lower_width) > _LOPSIDED * min(upper_width, lower_width) + 1e-12
    )
    if is_range or is_lopsided:
        return f"{format_value(value)}{suffix} ({format_value(interval.low)} to {format_value(interval.high)})"
    return f"{format_value(value)} ± {_format_half_width(max(upper_width, lower_width), decimals(value))}{suffix}"


def _format_half_width(half_width: float, decimals: int) -> str:
    """Return a half-width with `decimals` decimals, rounded up so that no interval looks too narrow."""
    step = 10.0**-decimals
    return format_decimals(max(1.0, math.ceil(half_width / step - 1e-9)) * step, decimals)


def _count_percent_decimals(value: float) -> int:
    """Return the number of decimals of a percentage: 1 below 10 %, otherwise 0."""
    return min(count_decimals(value), 1 if abs(value) < 9.95 else 0)


def _format_signed(value: float) -> str:
    text = format_decimals(value, _count_percent_decimals(value))
    return text if text.startswith("-") else f"+{text}"


def plot_ratio(estimate: Estimate, domain: Interval) -> str:
    """Plot a ratio, its interval and 1 on a log scale over `domain`: `·········│··──●──·······`."""
    characters = [_EMPTY] * PLOT_WIDTH
    characters[_find_position(1.0, domain)] = _EQUAL
    interval = estimate.interval
    if interval:
        low, high = _find_position(interval.low, domain), _find_position(interval.high, domain)
        characters[low : high + 1] = _BETWEEN * (high + 1 - low)
        for end, index, mark in ((interval.low, 0, _BEYOND[0]), (interval.high, PLOT_WIDTH - 1, _BEYOND[1])):
            if end not in domain:
                characters[index] = mark
    characters[_find_position(estimate.value, domain)] = POINT
    return "".join(characters)


def plot_curve(values: Sequence[float]) -> str:
    """Plot positive numbers in their order, scaled from the smallest to the largest: `▁▂▄█`."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_HEIGHTS[round((value - low) / span * (len(_HEIGHTS) - 1))] for value in values)


def _find_position(ratio: float, domain: Interval) -> int:
    low, high = math.log(domain.low), math.log(domain.high)
    share = (math.log(ratio) - low) / (high - low) if high > low else 0.5
    return min(PLOT_WIDTH - 1, max(0, round(share * (PLOT_WIDTH - 1))))
