"""Effects of axes on the time per step, and their interactions.

A matrix is a designed experiment: G. E. P. Box, J. S. Hunter and W. G. Hunter, "Statistics for Experimenters", 2nd
edition, 2005, chapter 5. Effects are computed over a complete factorial of cells. With y for the log of a launch mean
in one round, they are:

    main effect of a level    the mean of y(level) - y(base) over all combinations of the other axes
    interaction of two        the mean of [y(both) - y(second)] - [y(first) - y(neither)] over all combinations of the
                              remaining axes

The effects are computed in each round (a block of the experiment), so interference with a whole round cancels out. As
for a ratio, their means and t intervals are computed over rounds. docs/reference/report.md has an example and
the limits of the method.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from harness.analysis.control import Control, is_beyond
from harness.analysis.distributions import Floats
from harness.analysis.interference import ERROR
from harness.analysis.moderation import Residual, moderate, residual
from harness.analysis.statistics import Estimate, Interval, Logs, half_widths
from harness.analysis.verdicts import (
    Deciding,
    Judgement,
    Verdict,
    Withheld,
    compute_shown_alpha,
    judge,
    judgements,
    make_unjudged,
)
from harness.model.defaults import FEWEST_ROUNDS


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of one axis (or of the environment) from `base` to `level`."""

    axis: str
    level: str
    base: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The factors behind the interaction of two changes, as means over the remaining axes.

    `alone` is the factor of the first change without the second change, `with_second` is the factor of the first change
    with the second change, and `together` is the factor of both changes. The interaction is with_second / alone.

    Each factor has an interval. `level` is chosen so that the intervals of all parts together have 95 % confidence.
    With one round, there are no intervals.
    """

    alone: float
    with_second: float
    together: float
    alone_interval: Interval | None = None
    with_second_interval: Interval | None = None
    together_interval: Interval | None = None
    level: float = 0.0


@dataclass(frozen=True, slots=True)
class Effect:
    """The main effect of a change, or the interaction of two changes, as a factor of the time per step.

    The interval of `estimate` has the level `level` (0.95 or more). `verdict` is `slower` for a factor above 1 and
    beyond the margin, and `faster` for a factor below 1 and beyond the margin. If it is None, `withheld` is the reason.
    Only an interaction has `parts`. `deciding` is the narrower interval that decides the verdict, if the interval of
    `estimate` alone would leave it unclear.
    """

    changes: tuple[LevelChange, ...]
    estimate: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None
    parts: Parts | None = None
    deciding: Deciding | None = None

    @property
    def beyond(self) -> bool:
        """Whether the effect is certainly beyond the margin."""
        return self.verdict in (Verdict.SLOWER, Verdict.FASTER)


def effects(
    logs: Floats,
    axes: Mapping[str, Sequence[str]],
    margin: float,
    control: Control | None = None,
    *,
    share: float = 1.0,
    contention: tuple[Floats, float] | None = None,
) -> list[Effect]:
    """Return the main effects and two-way interactions, judged together.

    `logs` contains logs of launch means, in the shape (rounds, levels of the first axis, levels of the second, …). Each
    axis has at least two levels, its base first. `margin` is a share (0.03 for 3 %). `share` is the share of the level
    that the effects may use. With one round, there are no intervals, and with fewer than three, no verdicts. If CPU
    contention was subtracted, `contention` contains the loss of each launch mean, in the shape of `logs`, and the
    unchecked share (both are explained in `interference.Contention`). Intervals are then wider by the possible error.
    """
    pairs = [axis_numbers for count in (1, 2) for axis_numbers in combinations(range(len(axes)), count)]
    values = np.concatenate([_combine_cells(logs, axis_numbers, -1.0) for axis_numbers in pairs], axis=1)
    changes_by_pair = [_list_changes(axes, axis_numbers) for axis_numbers in pairs]
    # the sum of the squared weights of each effect: the variance of the effect if the variance of every cell is 1
    sizes = [2 ** len(axis_numbers) / _count_averaged_cells(logs, axis_numbers) for axis_numbers in pairs]
    block_size = np.repeat(sizes, [len(changes) for changes in changes_by_pair])
    bias = (
        np.concatenate([_compute_possible_errors(*contention, axis_numbers) for axis_numbers in pairs])
        if contention
        else 0.0
    )
    group_residual = residual(*_list_launches(logs))
    judged_effects = _judge_effects(
        values, block_size, group_residual, control, math.log1p(margin), share=share, bias=bias
    )
    parts = iter(_estimate_parts(logs, group_residual, share=share, contention=contention))
    return [
        Effect(
            change,
            judgement.ratio,
            judgement.level,
            judgement.verdict,
            judgement.withheld,
            next(parts) if len(change) == 2 else None,
            judgement.deciding,
        )
        for change, judgement in zip(chain(*changes_by_pair), judged_effects, strict=True)
    ]


def _list_changes(axes: Mapping[str, Sequence[str]], axis_numbers: tuple[int, ...]) -> list[tuple[LevelChange, ...]]:
    """Return the changes of one axis, or of one pair of axes, in the order of `_combine_cells`."""
    chosen_axes = [list(axes.items())[axis_number] for axis_number in axis_numbers]
    return list(
        product(*([LevelChange(axis, level, base) for level in levels] for axis, (base, *levels) in chosen_axes))
    )


def _count_averaged_cells(values: Floats, axis_numbers: tuple[int, ...]) -> int:
    """Return the number of cells behind each mean if all axes except `axis_numbers` are averaged."""
    return math.prod(length for axis_number, length in enumerate(values.shape[1:]) if axis_number not in axis_numbers)


def _combine_cells(values: Floats, axis_numbers: tuple[int, ...], sign: float) -> Floats:
    """Return the mean of each level plus `sign` times the mean of the base, for each of these axes in turn.

    The other axes are averaged. The shape is (rounds, effects). With the sign -1 and logs, these are the effects.
    """
    means = values.mean(axis=tuple(axis for axis in range(1, values.ndim) if axis - 1 not in axis_numbers))
    for axis in range(1, means.ndim):
        means = means + sign * means.take([0], axis=axis)
    return np.asarray(means[(slice(None), *[slice(1, None)] * len(axis_numbers))].reshape(len(values), -1))


def _compute_possible_errors(losses: Floats, unchecked: float, axis_numbers: tuple[int, ...]) -> Floats:
    """Return the possible error of each effect of one axis or pair of axes, if CPU contention was subtracted.

    The errors of cells are independent, except for the unchecked part (analysis/interference.py). So the variance of an
    effect's error is the sum of the squared losses of its cells, multiplied by their squared weights.
    """
    means = losses.mean(axis=0, keepdims=True)
    differences, squares = _combine_cells(means, axis_numbers, -1.0)[0], _combine_cells(means**2, axis_numbers, 1.0)[0]
    return _add_errors(unchecked, differences, squares / _count_averaged_cells(losses, axis_numbers))


def _add_errors(unchecked: float, differences: Floats, squares: Floats) -> Floats:
    """Return the possible error of each effect.

    For each effect, `differences` contains the difference in losses, and `squares` the sum of the squared losses of its
    cells, each multiplied by its squared weight.
    """
    return np.asarray(unchecked * np.abs(differences) + ERROR * np.sqrt(squares))


def _estimate_parts(
    logs: Floats, group_residual: Residual | None, *, share: float, contention: tuple[Floats, float] | None
) -> list[Parts]:
    """Return the parts of all interactions with their intervals, in the order of the interactions."""
    values, size = _compute_part_logs(logs)
    rounds, means, level = len(values), values.mean(axis=0), 1.0 - share * compute_shown_alpha(values.shape[1])
    halves: list[float | None] = [None] * means.size
    if rounds > 1:
        measured = Logs.measured(means, values.var(axis=0, ddof=1), np.full(means.shape, float(rounds)))
        widths = half_widths(moderate(measured, size, [group_residual] * means.size), 1.0 - level)
        if contention:
            losses, unchecked = contention
            mean_losses = losses.mean(axis=0, keepdims=True)
            differences, _ = _compute_part_logs(mean_losses)
            squares, _ = _compute_part_logs(mean_losses**2, 1.0)
            # a part is the difference between two means of 2 / size cells each
            widths = widths + _add_errors(unchecked, differences[0], squares[0] * size / 2.0)
        halves = widths.tolist()
    estimates = [Estimate.from_log(mean, rounds, half) for mean, half in zip(means.tolist(), halves, strict=True)]
    return [
        Parts(
            first_factor.value,
            factor_with_second.value,
            joint_factor.value,
            first_factor.interval,
            factor_with_second.interval,
            joint_factor.interval,
            level,
        )
        for first_factor, factor_with_second, joint_factor in zip(
            estimates[::3], estimates[1::3], estimates[2::3], strict=True
        )
    ]


def _compute_part_logs(logs: Floats, sign: float = -1.0) -> tuple[Floats, Floats]:
    """Return the log factors of all parts, of shape (rounds, parts), and their sizes as in `effects`.

    Each interaction has three parts. Each part is a mean plus `sign` times another mean.
    """
    values, sizes = [], []
    for first_axis, second_axis in combinations(range(1, logs.ndim), 2):
        means = logs.mean(axis=tuple(axis for axis in range(1, logs.ndim) if axis not in (first_axis, second_axis)))
        without_both, with_first = means[:, :1, :1], means[:, 1:, :1]
        with_second, with_both = means[:, :1, 1:], means[:, 1:, 1:]
        factors = np.stack(
            np.broadcast_arrays(
                with_first + sign * without_both, with_both + sign * with_second, with_both + sign * without_both
            ),
            axis=-1,
        )
        values.append(factors.reshape(len(logs), -1))
        sizes.append(np.full(values[-1].shape[1], 2.0 * means[0].size / logs[0].size))
    return np.concatenate(values, axis=1), np.concatenate(sizes)


def _list_launches(logs: Floats) -> tuple[list[int], list[int], list[float]]:
    """Return the number of the cell, the round and the log of each launch mean, as three lists."""
    table = logs.reshape(len(logs), -1)
    rounds, cells = np.indices(table.shape)
    return cells.ravel().tolist(), rounds.ravel().tolist(), table.ravel().tolist()


def _judge_effects(
    values: Floats,
    size: Floats,
    group_residual: Residual | None,
    control: Control | None,
    margin: float,
    *,
    share: float,
    bias: Floats | float,
) -> list[Judgement]:
    """Return the judgement of each effect. The prior of its variance is its `size` times the residual variance."""
    rounds, mean, level = len(values), values.mean(axis=0), 1.0 - share * compute_shown_alpha(values.shape[1])
    if rounds == 1:
        return [make_unjudged(value, None, rounds, level) for value in mean.tolist()]
    logs = Logs.measured(mean, values.var(axis=0, ddof=1), np.full(mean.shape, float(rounds)))
    logs = moderate(logs, size, [group_residual] * mean.size)
    if rounds < FEWEST_ROUNDS:
        halves = (half_widths(logs, 1.0 - level) + bias).tolist()
        return [make_unjudged(value, half, rounds, level) for value, half in zip(mean.tolist(), halves, strict=True)]
    return judgements(logs, judge(logs, margin, bias, shares=share), [rounds] * mean.size, is_beyond([control], margin))
