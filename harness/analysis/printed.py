"""Numbers that plain scripts print: their units, their growth within a launch, and ratios of two of them.

A number grows within launches if more pairs of its values rise than by chance (H. B. Mann, "Nonparametric tests
against trend", Econometrica 13, 1945; for several launches R. M. Hirsch and J. R. Slack, Water Resources Research 20,
1984).
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.model.launch import Launch
from harness.model.scenario import NUMBER_UNITS, NUMBERS, PRINTED, Scenario

#: The unit of numbers that are times; other numbers have an empty unit.
SECONDS = "s"

#: The fewest values with which a launch can show growth, and the most values that the analysis uses.
FEWEST, MOST = 5, 200

#: Growth is reported only if all three limits are reached: the number of standard deviations, the excess of rising
#: pairs (Kendall's tau), and the factor between the first and the last quarter of the values. The limits exclude most
#: accidental trends.
DEVIATIONS, TAU, FACTOR = 3.0, 0.5, 1.1


@dataclass(frozen=True, slots=True)
class PrintedGrowth:
    """The growth of a printed number within launches.

    `first` and `last` are the means of the first and of the last quarter of its values, and `count` is the number of
    its values. All three are medians over launches.
    """

    first: float
    last: float
    count: int


def is_printed(quantity: str) -> bool:
    """Return whether a quantity is a number that a script prints. CPU contention isn't subtracted from it."""
    return quantity.startswith(PRINTED)


def find_ratio_numbers(quantity: str, scenario: Scenario) -> tuple[str, str] | None:
    """Return the names of the two printed numbers whose ratio is the quantity; None if it isn't such a ratio."""
    name = quantity.removeprefix(PRINTED)
    slashes = [index for index, character in enumerate(name) if character == "/"]
    pairs = [(name[:slash], name[slash + 1 :]) for slash in slashes]
    quantities = set(scenario.quantities)
    return next((pair for pair in pairs if {PRINTED + part for part in pair} <= quantities), None)


def unit_of(quantity: str, launches: Iterable[Launch]) -> str | None:
    """Return the unit of a printed number: SECONDS, or empty for other numbers; None if the launches disagree."""
    units = {unit for launch in launches if (unit := _find_unit(quantity, launch)) is not None}
    return None if len(units) > 1 else next(iter(units), "")


def _find_unit(quantity: str, launch: Launch) -> str | None:
    """Return the unit of a printed number in a launch; None if the launch printed no number, or only zeros."""
    units = launch.observations.get(NUMBER_UNITS)
    if not any(values(quantity, launch)):
        return None
    return SECONDS if isinstance(units, Mapping) and units.get(quantity) == SECONDS else ""


def values(quantity: str, launch: Launch) -> list[float]:
    """Return the values of a number in the order in which a launch printed them.

    Invalid values are omitted, because an untrusted launch may have written them.
    """
    by_name = launch.observations.get(NUMBERS)
    numbers = by_name.get(quantity) if isinstance(by_name, Mapping) else None
    if not isinstance(numbers, list):
        return []
    return [
        float(number)
        for number in numbers
        if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e300
    ]


def growth(quantity: str, launches: Sequence[Launch]) -> PrintedGrowth | None:
    """Return how much a number grows within launches of one cell; None if growth isn't established."""
    series = [numbers for launch in launches if len(numbers := _average_values(values(quantity, launch))) >= FEWEST]
    if not series:
        return None
    pairs = [list(itertools.combinations(numbers, 2)) for numbers in series]
    net_rises = sum(
        (later_value > value) - (later_value < value) for launch_pairs in pairs for value, later_value in launch_pairs
    )
    deviation = math.sqrt(sum(n * (n - 1) * (2 * n + 5) / 18 for n in map(len, series)))
    first_mean, last_mean = (
        statistics.median(_average_quarter(numbers, end) for numbers in series) for end in (False, True)
    )
    if (
        net_rises < max(DEVIATIONS * deviation, TAU * sum(map(len, pairs)))
        or not 0.0 < first_mean * FACTOR <= last_mean
    ):
        return None
    count = statistics.median_low(len(values(quantity, launch)) for launch in launches if values(quantity, launch))
    return PrintedGrowth(first_mean, last_mean, count)


def _average_values(numbers: Sequence[float]) -> Sequence[float]:
    """Reduce the values to at most MOST, by averaging neighbors."""
    size = -(-len(numbers) // MOST)
    return (
        [statistics.fmean(numbers[start : start + size]) for start in range(0, len(numbers), size)]
        if size > 1
        else numbers
    )


def _average_quarter(numbers: Sequence[float], is_last: bool) -> float:
    count = max(1, len(numbers) // 4)
    return statistics.fmean(numbers[-count:] if is_last else numbers[:count])
