"""Work counts: the calls of a step, which the first launch of a cell counts exactly (scenarios/kit/counting.py)."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.cell_index import Lookup
from harness.analysis.observations import WORK, observations
from harness.model.scenario import Cell

#: The counts of the kit, with their names in reports.
COUNTS = {
    "python": "Python calls",
    "c": "C calls",
    "ops": "operations",
    "session runs": "session runs",
    "traces": "traces",
    "graph nodes": "traced graph nodes",
}

#: A line through the times of cells needs this many cells, whose calls differ by at least this factor. It must predict
#: the time of each cell from the other cells, with at most this relative error.
FEWEST_FITTED, LEAST_FACTOR, MOST_ERROR = 4, 2.0, 0.05


@dataclass(frozen=True, slots=True)
class StepWork:
    """The work of a step: `counts` per step by the names in COUNTS.

    `functions` has, by file and name of a Python function, its calls, all calls within it, and its own calls of C
    functions, per step. It is empty if there are too many functions. `first` has all calls of the first call of the
    step, per step; None if it wasn't counted.
    """

    counts: Mapping[str, float]
    functions: Mapping[tuple[str, str], tuple[float, float, float]]
    first: float | None = None

    @property
    def calls(self) -> float:
        """All calls per step, of Python and C functions."""
        return self.counts["python"] + self.counts["c"]


def read_work(value: Any) -> StepWork | None:
    """Return the work in an observation of a launch; None if it is a reason for missing counts, or malformed."""
    try:
        value = {"graph nodes": 0, **value}  # earlier runs have none
        steps = value["steps"]
        return StepWork(
            {name: value[name] / steps for name in COUNTS},
            {
                (file.replace("tensorflow_core/", "tensorflow/"), name): (calls / steps, within / steps, own / steps)
                for file, names in value["functions"].items()
                for name, (calls, within, own) in names.items()
            },
            sum(value["first"]) / steps if "first" in value else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def find_work(cell: Cell, lookup: Lookup) -> StepWork | None:
    """Return the work of a cell; None if it wasn't counted, or if two launches counted differently."""
    observed = observations(cell, lookup).get(WORK)
    return read_work(observed.values[0]) if observed and not observed.varies else None


def compare_functions(work: StepWork, other: StepWork) -> list[tuple[str, str, float, float]]:
    """Return file and name of each function that differs from `other`, and two differences; the largest change first.

    The differences are of its calls, and of all calls: of the function, and of everything within. If the first one is
    0, the second one is the difference of its own calls of C functions.
    """
    changes, nothing = [], (0.0, 0.0, 0.0)
    for key in {**work.functions, **other.functions} if work.functions and other.functions else ():
        numbers, other_numbers = work.functions.get(key, nothing), other.functions.get(key, nothing)
        calls, within, own = (a - b for a, b in zip(numbers, other_numbers, strict=True))
        if calls or own:
            changes.append((*key, calls, calls + within if calls else own))
    return sorted(changes, key=lambda change: (-abs(change[-1]), change))


def fit_seconds_per_call(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of a line through cells' calls and seconds per step; None if no line holds.

    The line is fitted by least squares. Each cell is predicted from the others (leave-one-out cross-validation:
    M. Stone, "Cross-validatory choice and assessment of statistical predictions", Journal of the Royal Statistical
    Society B 36, 1974).
    """
    calls = [count for count, _ in points]
    if len(points) < FEWEST_FITTED or max(calls) < LEAST_FACTOR * min(calls):
        return None
    for left_out, (count, seconds) in enumerate(points):
        others = [point for index, point in enumerate(points) if index != left_out]
        if len({other for other, _ in others}) < 2:
            return None
        slope, start = statistics.linear_regression(*zip(*others, strict=True))
        if abs(start + slope * count - seconds) > MOST_ERROR * seconds:
            return None
    slope = statistics.linear_regression(*zip(*points, strict=True)).slope
    return slope if slope > 0.0 else None
