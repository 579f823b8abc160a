"""The A/A control: the baseline compared with itself. The control shows how much identical cells differ in the run.

As for ratios, the variance is moderated with the residual of the launches in the group. So one group with few rounds is
enough for a control. For this residual, the two launches of a round are treated as launches of two cells. The control
tests the difference between them, so the residual must not include this difference.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import cast

import numpy as np

from harness.analysis.moderation import LaunchVariances, Residual, moderate
from harness.analysis.rounds import compute_mean, has_mean
from harness.analysis.statistics import Estimate, means, student
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell

#: The variance of the difference between two launches, if the variance of one launch is 1.
PAIR_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Control:
    """The ratio time(control launch) / time(measured launch) of the same cell, pooled over a number of `groups`.

    `cells` are the control cells of these groups.
    """

    estimate: Estimate
    groups: int
    cells: Sequence[Cell] = ()

    def is_beyond(self, margin: float) -> bool:
        """Return whether the control is beyond `margin` (log scale)."""
        interval = self.estimate.interval
        return interval is not None and (math.log(interval.low) > margin or math.log(interval.high) < -margin)


def is_beyond(controls: Iterable[Control | None], margin: float) -> bool:
    """Return whether one of the controls is beyond `margin` (log scale)."""
    return any(group_control.is_beyond(margin) for group_control in controls if group_control)


def find_control(
    counted_launches: Sequence[Launch], group_variances: Mapping[str, LaunchVariances] | None = None
) -> Control | None:
    """Return the control, computed from the launches that count; None if no round has both results of a control cell.

    In a round with several blocks, one block has both launches of the control cell. The other blocks contain the
    control cell once, for comparisons with the cells in the block. `group_variances` contains the variances of
    each group from `separate_control`. Without them, a group's variance isn't moderated.
    """
    with_mean = [launch for launch in counted_launches if has_mean(launch)]
    log_means = {
        _make_key(launch): math.log(compute_mean(launch)) for launch in with_mean if launch.role is Role.MEASURE
    }
    logs: dict[str, list[float]] = defaultdict(list)
    cells: dict[str, Cell] = {}
    for measurement in with_mean:
        if measurement.role is Role.CONTROL and _make_key(measurement) in log_means:
            logs[measurement.group].append(math.log(compute_mean(measurement)) - log_means[_make_key(measurement)])
            cells[measurement.group] = measurement.cell
    by_group = group_variances or {}
    residuals = [
        by_group[group].between(cell, (cell, Role.CONTROL)) if group in by_group else None
        for group, cell in cells.items()
    ]
    if not logs:
        return None
    pooled = pool_control(list(logs.values()), residuals)
    # a group with one round isn't pooled if other groups have more
    rounds = [len(group_logs) for group_logs in logs.values()]
    pooled_cells = [cells[group] for group, count in zip(logs, rounds, strict=True) if count > 1 or max(rounds) == 1]
    return replace(pooled, cells=tuple(pooled_cells))


def separate_control(variances: LaunchVariances, launches_by_cell: Mapping[Cell, Sequence[Launch]]) -> LaunchVariances:
    """Return the group's variances with the control's launches as a separate cell.

    `launches_by_cell` contains the launches of each cell, in the order of `variances`.
    """
    launches = [launch for cell in dict.fromkeys(variances.cells) for launch in launches_by_cell[cast(Cell, cell)]]
    labels = [(launch.cell, launch.role) if launch.role is Role.CONTROL else launch.cell for launch in launches]
    return LaunchVariances(labels, variances.rounds, variances.logs, variances.within)


def _make_key(launch: Launch) -> tuple[str, int, int, Cell]:
    """Return the values that a control launch has in common with the launch with which it is compared."""
    return launch.group, launch.round, launch.block, launch.cell


def pool_control(pairs: Sequence[Sequence[float]], residuals: Sequence[Residual | None] | None = None) -> Control:
    """Return the control. `pairs` contains, for each group, log(control / measure) of each round (at least one each).

    The control is m, the mean over G groups of each group's mean over rounds. Its interval is m ± t·√(Σ s²/n)/G. Each
    group has n rounds and its own variance s², which is moderated by the group's entry in `residuals`. The variances
    may differ, so t has the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of estimates of
    variance components", Biometrics Bulletin 2, 1946. Groups with only one round are omitted. If all groups
    have only one round, there is no interval.
    """
    priors = residuals or [None] * len(pairs)
    # a group with one round has no variance; if it is omitted, the other groups still give an interval
    groups = [(logs, prior) for logs, prior in zip(pairs, priors, strict=True) if len(logs) > 1]
    if not groups:
        return Control(Estimate.from_log(fmean(map(fmean, pairs)), max(map(len, pairs))), len(pairs))
    weights = np.full(len(groups), PAIR_WEIGHT)
    logs = moderate(means([logs for logs, _ in groups]), weights, [prior for _, prior in groups])
    squared_errors = logs.error**2
    freedom = squared_errors.sum() ** 2 / (squared_errors**2 / logs.freedom).sum()
    half_width = student(float(freedom)) * math.sqrt(squared_errors.sum()) / len(groups)
    return Control(Estimate.from_log(float(logs.mean.mean()), int(logs.rounds.max()), half_width), len(groups))
