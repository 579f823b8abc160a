"""Plans the number of rounds of each scenario in a nightly run: one if its history varies little, otherwise more."""

import math
from collections.abc import Sequence

import numpy as np

from harness.history.levels import MAD, compute_median
from harness.history.states import compute_standard_error
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.history import Series
from harness.model.run import Plan

#: The wanted standard deviation of a ratio between nightly runs. So the screen finds most steps of 5 % within three.
WANTED = 0.02

#: The number of newest points that show the variation, at most and at least.
_POINTS, _FEWEST_POINTS = 30, 10


def plan_rounds(plan: Plan, history: Sequence[Series], machine: str) -> dict[str, int]:
    """Return the rounds of each group whose series vary little on this machine: fewer than the plan's rounds."""
    by_cell: dict[tuple[object, ...], int] = {}
    for series in history:
        key = series.key
        if key.reference and key.machine == machine:
            cell_key = key.scenario, key.device, key.axes
            by_cell[cell_key] = max(by_cell.get(cell_key, 0), find_rounds(series))
    rounds = {}
    for group in plan.groups:
        cell_keys = ((cell.scenario, cell.device, tuple(sorted(cell.axes.items()))) for cell in group.cells)
        rounds[group.name] = max((by_cell.get(cell_key, 0) for cell_key in cell_keys), default=0)
    return {name: needed for name, needed in rounds.items() if 0 < needed < plan.rounds}


def find_rounds(series: Series) -> int:
    """Return the number of rounds after which a series varies by WANTED between runs; 0 if it has too few points.

    Variation between runs remains with any number of rounds. If it is larger than WANTED, the number of rounds is that
    at which rounds contribute as much.
    """
    points = [point for point in series.points if point.log_ratio is not None][-_POINTS:]
    if len(points) < _FEWEST_POINTS:
        return 0
    differences = np.diff([point.log_ratio or 0.0 for point in points])  # a step affects only one of them
    variance = (MAD * compute_median(np.abs(differences))) ** 2 / 2.0
    rounds = compute_median(np.array([float(point.rounds) for point in points]))
    # two rounds don't show how much rounds vary: then, rounds may cause all variation
    errors = np.array([compute_standard_error(point) for point in points if point.rounds >= FEWEST_ROUNDS])
    within = min(variance, float(np.median(errors**2))) if errors.size > len(points) / 2 else variance
    between = variance - within
    remaining = max(WANTED**2 - between, between)
    return max(1, math.ceil(rounds * within / remaining))
