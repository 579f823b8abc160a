"""The A/A control: the baseline against itself, which shows the differences that the run finds between equal cells.

Its variance is moderated in the same way as for ratios, with the residual of the launches in its group, so a control
with one group and few rounds is possible. In this calculation, the two launches of a round are treated as two cells:
the control tests the difference between them, so this difference must not be part of the residual.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import cast

import numpy as np

from harness.analysis.moderation import Residual, Scatter, moderate
from harness.analysis.rounds import centre, has_mean
from harness.analysis.statistics import Estimate, means, student
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell

#: A control that can show only a larger bias than this, as a share, is no check.
MOST_BIAS = 0.10

#: The variance of the difference of two launches, if one launch has variance 1.
WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Control:
    """The ratio time(second launch) / time(first launch) of the groups' control cells, pooled over `groups` groups."""

    estimate: Estimate
    groups: int

    def beyond(self, margin: float) -> bool:
        """Return whether the control is beyond `margin` (log scale)."""
        ends = self.estimate.interval
        return ends is not None and (math.log(ends.low) > margin or math.log(ends.high) < -margin)

    def least_bias(self, margin: float) -> float:
        """Return the smallest bias, a difference of the two launches, that the run could have shown; on the log scale.

        If a control measures exactly that bias, its interval is just beyond `margin` (log scale): it is the margin plus
        half of the interval's width. A true bias of that size is shown in half of such runs. Infinite if there is no
        interval.
        """
        ends = self.estimate.interval
        return margin + math.log(ends.high / ends.low) / 2.0 if ends else math.inf

    def is_check(self, margin: float) -> bool:
        """Return whether the control could have shown a bias of MOST_BIAS."""
        return self.least_bias(margin) <= math.log1p(MOST_BIAS)


def is_beyond(controls: Iterable[Control | None], margin: float) -> bool:
    """Return whether one of the controls is beyond `margin` (log scale)."""
    return any(group_control.beyond(margin) for group_control in controls if group_control)


def control(counting: Sequence[Launch], scatters: Mapping[str, Scatter] | None = None) -> Control | None:
    """Return the control of the launches that count; None if no round has two results of one cell.

    In a round with several blocks, the control is in the block that has both launches. The other blocks contain the
    control cell once, for comparisons with the cells in the block. `scatters` contains the variances by group from
    `separate_control`. A group without them is judged only by its own pairs.
    """
    numbers = [launch for launch in counting if has_mean(launch)]
    measured = {_place(launch): math.log(centre(launch)) for launch in numbers if launch.role is Role.MEASURE}
    logs: dict[str, list[float]] = defaultdict(list)
    cells: dict[str, Cell] = {}
    for measurement in numbers:
        if measurement.role is Role.CONTROL and _place(measurement) in measured:
            logs[measurement.group].append(math.log(centre(measurement)) - measured[_place(measurement)])
            cells[measurement.group] = measurement.cell
    by_group = scatters or {}
    residuals = [
        by_group[group].between(cell, (cell, Role.CONTROL)) if group in by_group else None
        for group, cell in cells.items()
    ]
    return pool_control(list(logs.values()), residuals) if logs else None


def separate_control(scatter: Scatter, numbers: Mapping[Cell, Sequence[Launch]]) -> Scatter:
    """Return a group's variances, in which the control's launches form a separate cell.

    `numbers` contains the launches of each of its cells in order.
    """
    launches = [launch for cell in dict.fromkeys(scatter.cells) for launch in numbers[cast(Cell, cell)]]
    labels = [(launch.cell, launch.role) if launch.role is Role.CONTROL else launch.cell for launch in launches]
    return Scatter(labels, scatter.rounds, scatter.logs, scatter.within)


def _place(launch: Launch) -> tuple[str, int, int, Cell]:
    """Return the label that a control has in common with the launch with which it is compared."""
    return launch.group, launch.round, launch.block, launch.cell


def pool_control(pairs: Sequence[Sequence[float]], residuals: Sequence[Residual | None] | None = None) -> Control:
    """Return the control, computed from log(control / measure) of each round, by group (at least one of each).

    It is the mean m over G groups of the mean over rounds, with the interval m ± t·√(Σ s²/n)/G. Each group has n rounds
    and its own variance s², moderated by its entry in `residuals`. The variances may differ, so t has the degrees of
    freedom of F. E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics
    Bulletin 2, 1946. Groups with only one such round are omitted. If there are no other groups, there is no interval.
    """
    per_group = residuals or [None] * len(pairs)
    # a group with one round has no variance; without it, the other groups still have an interval
    groups = [(logs, prior) for logs, prior in zip(pairs, per_group, strict=True) if len(logs) > 1]
    if not groups:
        return Control(Estimate.from_log(fmean(map(fmean, pairs)), max(map(len, pairs))), len(pairs))
    logs = moderate(means([logs for logs, _ in groups]), np.full(len(groups), WEIGHT), [prior for _, prior in groups])
    parts = logs.error**2
    freedom = parts.sum() ** 2 / (parts**2 / logs.freedom).sum()
    half = student(float(freedom)) * math.sqrt(parts.sum()) / len(groups)
    return Control(Estimate.from_log(float(logs.mean.mean()), int(logs.rounds.max()), half), len(groups))
