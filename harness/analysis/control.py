"""The A/A control: the reference against itself, so that a run shows what it calls a difference where there is none.

Its variance is moderated as that of the ratios is, by the residual of the launches of its group, and so it holds with
one group and few rounds. There the two launches of a round are two cells: their difference is what is looked for, and
must not be in what they scatter by.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import cast

import numpy as np

from harness.analysis.moderation import Residual, Scatter, moderate
from harness.analysis.rounds import centre, gave_number
from harness.analysis.statistics import Estimate, means, student
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell

#: A control that shows no bias up to this, as a share, is no check.
MOST_BIAS = 0.10

#: The variance of the difference of two launches, where a launch has one of 1.
WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Control:
    """time(second launch) / time(first launch) of the groups' control cells, pooled over `groups` groups."""

    estimate: Estimate
    groups: int

    def beyond(self, margin: float) -> bool:
        """Whether the whole interval lies outside `margin` (log scale): then the run calls nothing a difference."""
        ends = self.estimate.interval
        return ends is not None and (math.log(ends.low) > margin or math.log(ends.high) < -margin)

    def least_bias(self, margin: float) -> float:
        """Return the least bias, a difference of the two launches, that the run could have shown; on the log scale.

        The interval of a control that measures it just lies beyond `margin` (log scale): the margin and half of the
        interval's width. A true bias of that size is shown in half of such runs. Infinite without an interval.
        """
        ends = self.estimate.interval
        return margin + math.log(ends.high / ends.low) / 2.0 if ends else math.inf

    def is_check(self, margin: float) -> bool:
        """Whether it could have shown a bias of MOST_BIAS."""
        return self.least_bias(margin) <= math.log1p(MOST_BIAS)


def beyond(controls: Iterable[Control | None], margin: float) -> bool:
    """Whether one of the controls lies beyond `margin` (log scale)."""
    return any(each.beyond(margin) for each in controls if each)


def control(counting: Sequence[Launch], scatters: Mapping[str, Scatter] | None = None) -> Control | None:
    """The control of the launches that count; None where no round has two numbers of one cell.

    Of a round in several blocks it is that of the block with both: the others have the control cell once, to be
    compared with that block's cells. `scatters` is by group what its launches scatter by,
    `with_control_apart`; a group that has none is known by its own pairs alone.
    """
    numbers = [launch for launch in counting if gave_number(launch)]
    measured = {_place(each): math.log(centre(each)) for each in numbers if each.role is Role.MEASURE}
    logs: dict[str, list[float]] = defaultdict(list)
    cells: dict[str, Cell] = {}
    for each in numbers:
        if each.role is Role.CONTROL and _place(each) in measured:
            logs[each.group].append(math.log(centre(each)) - measured[_place(each)])
            cells[each.group] = each.cell
    known = scatters or {}
    residuals = [
        known[group].between(cell, (cell, Role.CONTROL)) if group in known else None for group, cell in cells.items()
    ]
    return pooled(list(logs.values()), residuals) if logs else None


def with_control_apart(scatter: Scatter, numbers: Mapping[Cell, Sequence[Launch]]) -> Scatter:
    """Return a group's scatter in which the control's launches are those of a cell of their own.

    `numbers` has the launches of each of its cells, in the order in which it has them.
    """
    made = [launch for cell in dict.fromkeys(scatter.cells) for launch in numbers[cast(Cell, cell)]]
    labels = [(each.cell, each.role) if each.role is Role.CONTROL else each.cell for each in made]
    return Scatter(labels, scatter.rounds, scatter.logs, scatter.within)


def _place(launch: Launch) -> tuple[str, int, int, Cell]:
    """What a control shares with the launch that it is compared with."""
    return launch.group, launch.round, launch.block, launch.cell


def pooled(pairs: Sequence[Sequence[float]], residuals: Sequence[Residual | None] | None = None) -> Control:
    """The control from log(control / measure) of every round, group by group (at least one of each).

    The mean over groups of the mean over rounds, with the interval m ± t·√(Σ s²/n)/G: the groups' variances s², each
    moderated by its group's of the `residuals`, may differ, so t has the degrees of freedom of F. E. Satterthwaite, "An
    approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946. Groups with one such
    round are left out, and where there are no others there is no interval.
    """
    known = residuals or [None] * len(pairs)
    # one whose control kept failing has no spread, and must not take away what the others show
    groups = [(logs, each) for logs, each in zip(pairs, known, strict=True) if len(logs) > 1]
    if not groups:
        return Control(Estimate.from_log(fmean(map(fmean, pairs)), max(map(len, pairs))), len(pairs))
    logs = moderate(means([logs for logs, _ in groups]), np.full(len(groups), WEIGHT), [each for _, each in groups])
    parts = logs.error**2
    freedom = parts.sum() ** 2 / (parts**2 / logs.freedom).sum()
    half = student(float(freedom)) * math.sqrt(parts.sum()) / len(groups)
    return Control(Estimate.from_log(float(logs.mean.mean()), int(logs.rounds.max()), half), len(groups))
