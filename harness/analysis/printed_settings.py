"""Settings and growth within a launch: the meaning of several values of one printed number.

A script that prints one line per setting prints different quantities under one regular expression. They are separated
in two ways. If the text in front of the numbers or a line above names a setting (`n = 2, cost: 0.11`), it is an axis.
Otherwise, places in the output are different quantities if the number changes from one place to the next by more than
LARGE, in every launch of a cell, and by at least twice the range of one place over the launches, without the extreme
tenths. Labels that only count (`image 0`, `image 1`) are names of places. A first value that differs from all others is
a warm-up, not a quantity.

A number grows within launches if more pairs of its values rise than by chance. All launches are tested together, also
pilots (the exact test of Mann and Hirsch, see trends.py).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from harness.analysis.distributions import Floats
from harness.analysis.printed import SECONDS, find_ratio_numbers, unit_of, values
from harness.analysis.quantities import launches_of
from harness.analysis.sample_logs import divide_launches
from harness.analysis.trends import compute_changes, count_falling_pairs
from harness.analysis.verdicts import LARGE
from harness.model.launch import Launch, Role, Status
from harness.model.run import Group, Run
from harness.model.scenario import DEVICE, ENVIRONMENT, NUMBER_LABELS, PRINTED, STEP, Cell, Comparison, Scenario

#: The most settings of a number. More places or labels are values of one quantity.
MOST_SETTINGS = 20

#: Growth is reported from FEWEST values per launch on. It needs a probability by chance of at most CHANCE, this share
#: of rising pairs (Kendall's tau of 0.5), and this factor between the first and the last values.
FEWEST, CHANCE, RISING_SHARE, GROWTH_FACTOR = 4, 0.002, 0.75, 1.1

#: The axis of a number's settings, and the places of each setting's values in the output.
Settings = tuple[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class PrintedGrowth:
    """A printed number that rises within the `launches` of a cell: the medians of the first and of the last value.

    `is_certain` is false if every pair of values rises, but there are too few values to exclude chance. `count` is the
    number of values in a launch.
    """

    first: float
    last: float
    count: int
    launches: int
    is_certain: bool


def find_growth(quantity: str, launches: Sequence[Launch]) -> PrintedGrowth | None:
    """Return how much a number rises within launches of one cell; None if it doesn't rise."""
    series = [numbers for launch in launches if len(numbers := values(quantity, launch)) >= FEWEST and min(numbers) > 0]
    if not series:
        return None
    parts = divide_launches([np.log(numbers) for numbers in series])
    falling_pairs, pairs, probability = count_falling_pairs(parts)
    share, change = 1.0 - falling_pairs.sum() / pairs.sum(), fmean(compute_changes(parts))
    is_certain = probability <= CHANCE and share >= RISING_SHARE
    if change < math.log(GROWTH_FACTOR) or not (is_certain or share == 1.0):
        return None
    first, last = (median(numbers[index] for numbers in series) for index in (0, -1))
    return PrintedGrowth(first, last, round(median(map(len, series))), len(series), is_certain)


def split_numbers(run: Run, launches: Sequence[Launch]) -> tuple[Run, list[tuple[Run, list[Launch]]]]:
    """Separate the printed numbers that have several settings.

    Return the run without these numbers, and a run with its launches for each of them. In such a run, a launch of the
    script is one launch per setting, and the settings are the values of an axis.
    """
    splits, scenarios = [], []
    for scenario in run.scenarios:
        quantities = [quantity for quantity in scenario.quantities if quantity.startswith(PRINTED) and scenario.script]
        own_launches = [
            entry for entry in launches if entry.cell.scenario == scenario.name and entry.status is Status.OK
        ]
        candidates = {quantity: find_settings(quantity, own_launches) for quantity in quantities}
        settings = {quantity: found_settings for quantity, found_settings in candidates.items() if found_settings}
        splits += [_make_split(run, scenario, *item, own_launches) for item in settings.items()]
        names = {quantity.removeprefix(PRINTED) for quantity in settings}
        remaining = [
            entry
            for entry in scenario.compare
            if entry.of not in settings and names.isdisjoint(find_ratio_numbers(entry.of, scenario) or ())
        ]
        scenarios.append(replace(scenario, compare=remaining) if settings else scenario)
    return (replace(run, scenarios=scenarios) if splits else run), splits


def find_settings(quantity: str, launches: Sequence[Launch]) -> Settings | None:
    """Return the axis of a number's settings, and the places of each setting's values; None without settings.

    All launches must print the same number of values.
    """
    by_cell: dict[Cell, list[list[float]]] = {}
    for launch in launches:
        by_cell.setdefault(launch.cell, []).append(values(quantity, launch))
    series = [numbers for cell_series in by_cell.values() for numbers in cell_series]
    is_usable = len({len(numbers) for numbers in series}) == 1 and series[0] and min(map(min, series)) > 0.0
    if not is_usable or unit_of(quantity, launches) is None:
        return None
    axis, labels, is_counted = _read_labels(quantity, launches)
    if labels and not is_counted:
        return axis, {label: [at for at, text in enumerate(labels) if text == label] for label in dict.fromkeys(labels)}
    starts = {start for cell_series in by_cell.values() for start in _find_jumps(np.log(cell_series))}
    count = len(series[0])
    is_growing = all(find_growth(quantity, [entry for entry in launches if entry.cell == cell]) for cell in by_cell)
    # a number that grows rises between jumps too, or at every count
    changes = np.abs(np.diff(np.median(np.log(series), axis=0)))
    jumps = sum(changes[start - 1] for start in starts)
    is_growing = is_growing and (2.0 * jumps < changes.sum() or (is_counted and len(starts) == count - 1))
    if not starts or is_growing or len(starts) >= MOST_SETTINGS or (starts == {1} and count > 2):
        return None
    ends = [*sorted(starts), count]
    ranges = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    words = [f"{axis} {label}" for label in labels] or [f"print {place + 1}" for place in range(count)]
    return "place", {
        words[places[0]] if len(places) == 1 else f"{words[places[0]]} to {words[places[-1]].split()[-1]}": places
        for places in ranges
    }


def _read_labels(quantity: str, launches: Sequence[Launch]) -> tuple[str, list[str], bool]:
    """Return the name of the setting in front of a number, its value at each place, and whether the values only count.

    There are no values if launches differ, or if they are invalid, because an untrusted launch may have written them.
    """
    observed = [launch.observations.get(NUMBER_LABELS) for launch in launches]
    first, *others = [entry.get(quantity) if isinstance(entry, Mapping) else None for entry in observed]
    match first:
        case [str(axis), list(labels), bool(is_counted)] if axis not in ("", ENVIRONMENT):
            is_complete = len(labels) == len(values(quantity, launches[0])) and len(set(labels)) <= MOST_SETTINGS
            if is_complete and all(isinstance(text, str) for text in labels) and others.count(first) == len(others):
                return axis, labels, is_counted
    return "", [], False


def _find_jumps(logs: Floats) -> Iterator[int]:
    """Yield the places whose number differs from the place before, from the logs of a cell's numbers, by launch."""
    outliers = len(logs) // 10  # a few launches with interference don't hide a difference
    changes, ranges = np.diff(logs, axis=1), np.ptp(np.sort(logs, axis=0)[outliers : len(logs) - outliers], axis=0)
    limit = LARGE if len(logs) > 1 else math.log(2.0)
    for place, change in enumerate(changes.T, 1):
        noise = max(ranges[place - 1], ranges[place])
        if (np.all(change > limit) or np.all(change < -limit)) and abs(float(np.median(change))) >= 2.0 * noise:
            yield place


def _make_split(
    run: Run, scenario: Scenario, quantity: str, settings: Settings, launches: Sequence[Launch]
) -> tuple[Run, list[Launch]]:
    """Return a run in which the settings of a printed number are an axis, and its launches."""
    name, (label_axis, places) = quantity.removeprefix(PRINTED), settings
    axis = f"{label_axis}, printed" if label_axis in {DEVICE, *scenario.axes} else label_axis
    compared = STEP if unit_of(quantity, launches) == SECONDS else quantity
    medians = [
        (launch, {label: median(values(quantity, launch)[place] for place in at) for label, at in places.items()})
        for launch in launches
    ]
    # the largest value is compared with the others, so that ratios are above 1
    largest = max(places, key=lambda label: median(numbers[label] for _, numbers in medians))
    split = replace(
        scenario,
        name=f"{scenario.name} {name}",
        title=f"{scenario.title}: {name}" if compared == STEP else scenario.title,
        axes={**scenario.axes, axis: list(places)},
        compare=[
            Comparison("", ENVIRONMENT, of=compared),
            Comparison(f"vs {largest}", axis, plus=largest, of=compared),
        ],
        script="",
    )

    def make_cell(cell: Cell, label: str) -> Cell:
        return Cell(split.name, cell.environment, cell.device, {**cell.axes, axis: label})

    def make_group(group: Group) -> Group:
        cells = [make_cell(cell, label) for label in places for cell in group.cells]
        control = make_cell(group.control, next(iter(places))) if group.control else None
        return replace(group, scenario=split.name, cells=cells, control=control, of=())

    def make_launch(launch: Launch, label: str, number: float) -> Launch:
        observations, cell = {quantity: number}, make_cell(launch.cell, label)
        return replace(launch, cell=cell, samples=(), observations=observations, phases={}, phases_cpu={}, resources={})

    groups = [make_group(group) for group in run.plan.groups if group.scenario == scenario.name]
    plan = replace(run.plan, groups=groups, unavailable=(), precision=None, claims=())
    split_launches = [
        make_launch(launch, label, number)
        for launch, numbers in medians
        if launch.role is not Role.PILOT
        for label, number in list(numbers.items())[: 1 if launch.role is Role.CONTROL else None]
    ]
    split_run = replace(run, plan=plan, scenarios=[split])
    return split_run, launches_of(quantity, split_launches) if compared == STEP else split_launches
