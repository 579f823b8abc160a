"""The comparisons of one table: ratios, verdicts, and the values that they are based on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from harness.analysis import interleaving, work_equivalence
from harness.analysis.cell_index import Lookup
from harness.analysis.distributions import Floats
from harness.analysis.looks import compute_next_share
from harness.analysis.moderation import moderate
from harness.analysis.quantities import PIECE, calls_looked_at, growth_control, growths
from harness.analysis.rounds import Series, series
from harness.analysis.statistics import Difference, Estimate, Interval, Logs, half_widths, log_ratios, means
from harness.analysis.step_ranges import find_common_steps, restrict_steps
from harness.analysis.verdicts import (
    POWER,
    Deciding,
    Judgement,
    Verdict,
    Withheld,
    compute_shown_alpha,
    half_widths_after,
    judge,
    judgements,
    list_deciding,
    make_unjudged,
    margins,
    p_values,
    rounds_to_settle,
)
from harness.model.defaults import ALPHA, FEWEST_ROUNDS
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class RoundsNeeded:
    """The number of further rounds that give a clear verdict with a `probability` of at least POWER.

    If even the largest number of rounds (`rounds_to_settle`) isn't enough, the comparison is too close to the margin to
    settle: `rounds` is then the number of rounds up to the largest, and `probability` is below POWER. `seconds` is how
    long these rounds take in the group of the comparison. `half` is half the width of the interval after these rounds,
    on the log scale.
    """

    rounds: int
    seconds: float
    half: float
    probability: float

    @property
    def is_likely(self) -> bool:
        """Whether these rounds are likely to be enough."""
        return self.probability >= POWER


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two cells.

    `ratio` is time(cell) / time(other), above 1 if `cell` is slower. Its interval has the level `level`: 1 - 0.05 / m
    for m comparisons that are judged together, and more if a run is judged more than once (analysis/looks.py).
    `verdict` describes `cell` and comes from Holm's procedure; if it is None, `withheld` is the reason. `deciding` is
    the narrower interval that decides the verdict, if the interval of `ratio` alone would leave it unclear. For
    interleaved launches, `alone` is the ratio of sequential samples divided by `ratio`, with an interval at the same
    level. `settling` is only set if the verdict is unclear. `work` is the result of the check that both cells did the
    same work. `pythons` are the versions of the two interpreters if they differ. If a cell is non-stationary, `steps`
    is the range of steps in which both cells are compared, counted from the start of a launch. `contention` is the
    possible error of the ratio on the log scale, if CPU contention was subtracted. The interval is wider by this amount
    on both sides. `excess` is set if the ratio varies so much more between rounds than the group's other launches that
    their variance isn't used for its interval. It is the factor between the standard deviations.
    """

    cell: Cell
    other: Cell
    ratio: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None
    settling: RoundsNeeded | None
    work: work_equivalence.WorkCheck
    pythons: tuple[str, str] | None
    alone: Estimate | None = None
    steps: Interval | None = None
    contention: float = 0.0
    deciding: Deciding | None = None
    excess: float = 0.0

    @property
    def bias(self) -> Estimate | None:
        """The ratio in `alone`, if it differs significantly from 1. This bias makes both intervals wider."""
        return self.alone if interleaving.is_bias(self.alone) else None


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cells, and the log ratio of each round in which both have a result.

    `weight` is the variance of the log ratio if the variance of a launch is 1. `changes`: the steps of at least one
    cell are non-stationary. The ratio then uses only the range of `steps` that both cells have, if there is one.
    """

    cell: Cell
    other: Cell
    logs: Sequence[float]
    weight: float
    work: work_equivalence.WorkCheck
    changes: bool
    steps: Interval | None

    @property
    def judged(self) -> bool:
        """Whether the times of the pair get a verdict. The ratio doesn't affect this decision."""
        return len(self.logs) > 1 and not self.work.differs and not self.lacks_common_steps

    @property
    def lacks_common_steps(self) -> bool:
        """Whether the steps are non-stationary and the two cells have too few common steps."""
        return self.changes and self.steps is None


def compare(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, margin: float) -> list[Compared | None]:
    """Return the comparison of each pair (cell, other), judged together; None if no round has a result of both cells.

    `margin` is a share: 0.03 for 3 %. Three kinds of pairs aren't judged: pairs with one round, pairs that did
    different work, and pairs of non-stationary steps without common steps. The level is divided among the rest.
    """
    candidates = [_make_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and pair.judged]
    logs, log_margin = _moderate_logs(family, lookup), math.log1p(margin)
    sequential_ratios, contention = _compute_sequential_ratios(family, lookup), _find_contention_errors(family, lookup)
    # the two errors are independent of each other, so both may act in the same direction
    bias = contention + _compute_bias(sequential_ratios)
    is_withheld = [lookup.is_lost(pair.cell, log_margin) for pair in family]
    log_margins = margins(logs.rounds, log_margin)
    judged_family = judge(logs, log_margins, bias, _compute_shares(family, logs, lookup))
    outcomes = judgements(logs, judged_family, [len(pair.logs) for pair in family], is_withheld)
    within_error = (contention >= log_margin) & (np.abs(logs.mean) <= log_margin + contention)
    outcomes = [
        _withhold_verdict(outcome) if is_within_error else outcome
        for outcome, is_within_error in zip(outcomes, within_error, strict=True)
    ]
    cells = [pair.cell for pair in family]
    rounds_needed = settlings(
        logs, judged_family.alpha, log_margin, cells, lookup, shown=1.0 - judged_family.levels, bias=bias
    )
    results = (
        replace(_make_compared(pair, judgement, lookup, needed), alone=sequential, contention=error, excess=excess)
        for pair, judgement, needed, sequential, error, excess in zip(
            family,
            outcomes,
            rounds_needed,
            sequential_ratios,
            contention.tolist(),
            [] if logs.excess is None else logs.excess.tolist(),
            strict=True,
        )
    )
    return [
        None if pair is None else next(results) if pair.judged else _compare_unjudged(pair, len(family), lookup)
        for pair in candidates
    ]


def _withhold_verdict(judgement: Judgement) -> Judgement:
    """Return an unclear comparison without its verdict, because more rounds can't remove the error from contention."""
    is_unclear = judgement.verdict is Verdict.UNCLEAR
    return replace(judgement, verdict=None, withheld=Withheld.CONTENTION) if is_unclear else judgement


def compare_growth(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> list[Compared | None]:
    """Return the comparison of memory growth of each pair, judged together; None if no round has both cells.

    `ratio` is a Difference: the bytes that each call of `cell` retains, minus the bytes that each call of `other`
    retains. Its interval is a t interval of the paired differences. Each pair has its own variance, because cells that
    leak vary more than cells that don't. The margin is PIECE divided by the number of calls in the later half of a
    launch. If the memory growth of the control cell differs by more than the margin, the verdict is withheld.
    """
    candidates = [_make_growth_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and pair.judged]
    logs = means([pair.logs for pair in family])
    growth_margins = np.array([_compute_growth_margin(pair, lookup) for pair in family])
    judged_family = judge(
        logs, growth_margins, shares=np.array([lookup.look(pair.cell).share for pair in family], np.float64)
    )
    rounds_needed = settlings(
        logs,
        judged_family.alpha,
        growth_margins,
        [pair.cell for pair in family],
        lookup,
        shown=1.0 - judged_family.levels,
    )
    results = iter(
        _make_compared(
            pair,
            Judgement(
                Difference(mean, len(pair.logs), Interval(mean - half_width, mean + half_width)),
                level,
                conclusion,
                withheld,
                interval if conclusion else None,
            ),
            lookup,
            needed,
        )
        for pair, mean, half_width, level, verdict, interval, needed, margin in zip(
            family,
            logs.mean.tolist(),
            judged_family.half.tolist(),
            judged_family.levels.tolist(),
            judged_family.verdicts,
            list_deciding(logs, judged_family, float),
            rounds_needed,
            growth_margins.tolist(),
            strict=True,
        )
        for conclusion, withheld in [_judge_growth(pair, verdict, margin, lookup)]
    )
    return [
        None if pair is None else next(results) if pair.judged else _make_unjudged_growth(pair, len(family), lookup)
        for pair in candidates
    ]


def settlings(
    logs: Logs,
    alpha: Floats,
    margin: float | Floats,
    cells: Sequence[Cell],
    lookup: Lookup,
    *,
    shown: float | Floats,
    bias: float | Floats = 0.0,
) -> list[RoundsNeeded | None]:
    """Return the further rounds that a clear verdict on each of the `logs` needs; None after MOST_ROUNDS rounds.

    `logs` and `cells` have the same order. `alpha` is the level at which each comparison is judged, and `shown` is the
    level of the intervals. `margin` and `bias` are the same as in `judge`. A run that is continued shares its level
    with earlier looks.
    """
    looks = [lookup.look(cell) for cell in cells]
    share = np.array([look.share for look in looks])
    # a pair with a cell that was given up has fewer rounds than the first look
    first_rounds = np.minimum([look.first or math.inf for look in looks], logs.rounds)
    level = partial(compute_next_share, first_rounds.astype(np.float64), logs.rounds)
    total_rounds, probabilities = rounds_to_settle(logs, alpha / share, margin, bias, level)
    later_rounds = np.maximum(total_rounds, logs.rounds + 1.0)
    halves = half_widths_after(logs, later_rounds, shown / share * level(later_rounds)) + bias
    return [
        RoundsNeeded(
            rounds,
            lookup.seconds_until([lookup.groups.get(cell, "")], lookup.rounds_of(cell) + rounds),
            half_width,
            probability,
        )
        if rounds > 0
        else None
        for cell, rounds, half_width, probability in zip(
            cells,
            (total_rounds - logs.rounds.astype(int)).tolist(),
            halves.tolist(),
            probabilities.tolist(),
            strict=True,
        )
    ]


def control_of_growth(cell: Cell, lookup: Lookup) -> Difference | None:
    """Return the A/A control of memory growth in the cell's group, in bytes per call; None without a control."""
    group = lookup.groups.get(cell)
    group_cells = [group_cell for group_cell in lookup.numbers if lookup.groups.get(group_cell) == group]
    return growth_control([launch for group_cell in group_cells for launch in lookup.numbers[group_cell]])


def is_beyond(difference: Difference | None, margin: float) -> bool:
    """Return whether a difference significantly exceeds the margin, in either direction."""
    interval = difference.interval if difference else None
    return interval is not None and (interval.low > margin or interval.high < -margin)


def _judge_growth(
    pair: _Pair, verdict: Verdict, margin: float, lookup: Lookup
) -> tuple[Verdict, None] | tuple[None, Withheld]:
    if len(pair.logs) < FEWEST_ROUNDS:
        return None, Withheld.FEW_ROUNDS
    if is_beyond(control_of_growth(pair.cell, lookup), margin):
        return None, Withheld.CONTROL
    return verdict, None


def _make_growth_pair(cell: Cell, other: Cell, lookup: Lookup) -> _Pair | None:
    """Return the pair with differences in memory growth, one per round, instead of log ratios."""
    growth, other_growth = (growths(lookup.numbers.get(side, ())) for side in (cell, other))
    differences = [growth[number] - other_growth[number] for number in sorted(growth.keys() & other_growth.keys())]
    if not differences:
        return None
    work_check = work_equivalence.compare(lookup.numbers[other], lookup.numbers[cell])
    return _Pair(cell, other, differences, lookup.weight(cell, other), work_check, changes=False, steps=None)


def _compute_growth_margin(pair: _Pair, lookup: Lookup) -> float:
    """Return the memory growth, in bytes per call, that can occur without a leak.

    The result is PIECE divided by the number of calls in the later half of the launch with the fewest calls.
    """
    launches = [*lookup.numbers[pair.cell], *lookup.numbers[pair.other]]
    return PIECE / max(1.0, min(calls_looked_at(launch) for launch in launches if launch.memory))


def _make_unjudged_growth(pair: _Pair, family_size: int, lookup: Lookup) -> Compared:
    level = 1.0 - compute_shown_alpha(family_size) * lookup.look(pair.cell).share
    mean = fmean(pair.logs)
    verdict, withheld = (Verdict.DIFFERENT_WORK, None) if pair.work.differs else (None, Withheld.FEW_ROUNDS)
    return _make_compared(pair, Judgement(Difference(mean, len(pair.logs)), level, verdict, withheld), lookup)


def half_widths_of(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> list[float | None]:
    """Return half the width of each pair's interval (see `log_intervals`), so that a run can stop at a width."""
    return [measured and measured[1] for measured in log_intervals(pairs, lookup)]


def log_intervals(
    pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, planned: int = 0
) -> list[tuple[float, float, float] | None]:
    """Return the mean log ratio of each pair, half the width of its interval at 1 - 0.05 / m, and the bias.

    m is the number of judged pairs, and at least `planned`, the number of pairs including those that aren't measured
    yet. In `compare`, the bias makes the same interval wider. More rounds don't remove it. A pair that isn't judged has
    None, and a pair with too few rounds has an infinite width.
    """
    candidates = [_make_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and pair.judged]
    shares = np.array([lookup.look(pair.cell).share for pair in family], np.float64)
    alpha = shares * compute_shown_alpha(max(planned, len(family)))
    widths = half_widths(_moderate_logs(family, lookup), alpha).tolist()
    bias = _find_contention_errors(family, lookup) + _compute_bias(_compute_sequential_ratios(family, lookup))
    judged = iter(zip(widths, bias.tolist(), strict=True))
    return [
        None
        if pair is None or pair.work.differs or pair.lacks_common_steps
        else (fmean(pair.logs), *(next(judged) if pair.judged else (math.inf, 0.0)))
        for pair in candidates
    ]


def open_widths(
    pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, margin: float, group_shares: Mapping[str, float]
) -> list[float | None]:
    """Return the widths of `half_widths_of`, with 0 for each comparison whose verdict is already clear.

    `margin` is a share: 0.03 for 3 %. `group_shares` contains, by group, the share of the level that a look may use now
    (analysis/looks.py). A verdict is clear if the interval at 1 - 0.05 · share / m doesn't include the margin, and the
    control doesn't withhold the verdict.
    """
    halves = half_widths_of(pairs, lookup)
    if not any(group_shares.values()):
        return halves
    candidates = [_make_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and pair.judged]
    logs, log_margin = _moderate_logs(family, lookup), math.log1p(margin)
    shares = np.array([group_shares[lookup.groups[pair.cell]] for pair in family], np.float64)
    bias = _find_contention_errors(family, lookup) + _compute_bias(_compute_sequential_ratios(family, lookup))
    is_settled = _find_conclusive(logs, margins(logs.rounds, log_margin), bias, shares)
    is_withheld = np.array([lookup.is_lost(pair.cell, log_margin) for pair in family], np.bool_)
    is_clear = iter((is_settled & ~is_withheld).tolist())
    return [
        0.0 if pair and pair.judged and next(is_clear) else half_width
        for pair, half_width in zip(candidates, halves, strict=True)
    ]


def ratios(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, alpha: float = ALPHA) -> list[Estimate | None]:
    """Return time(cell) / time(other) of each pair, with an interval at the level 1 - `alpha`.

    Unlike in `compare`, the level isn't divided among the pairs, and a bias doesn't make intervals wider. Variances are
    moderated over all of these pairs. The result is None if no round has both cells, and for non-stationary steps with
    too few common steps. A ratio from one round has no interval.
    """
    candidates = [_make_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and len(pair.logs) > 1 and not pair.lacks_common_steps]
    halves = iter(half_widths(_moderate_logs(family, lookup), alpha).tolist())
    return [
        None
        if pair is None or pair.lacks_common_steps
        else Estimate.from_log(fmean(pair.logs), len(pair.logs), next(halves) if len(pair.logs) > 1 else None)
        for pair in candidates
    ]


def _compute_sequential_ratios(family: Sequence[_Pair], lookup: Lookup) -> list[Estimate | None]:
    """Return, for each pair, the ratio of sequential samples divided by the interleaved ratio.

    Sequential samples are the last samples of a launch. So they can't check interleaving if steps are non-stationary.
    """
    shifts = interleaving.compare_sequential([(pair.cell, pair.other) for pair in family], lookup)
    return [None if pair.changes else shift for pair, shift in zip(family, shifts, strict=True)]


def _find_contention_errors(family: Sequence[_Pair], lookup: Lookup) -> Floats:
    """Return the possible error of each ratio, on the log scale, if CPU contention was subtracted; shape (m,)."""
    return np.array([lookup.contention(pair.cell, pair.other) for pair in family], np.float64)


def _compute_bias(sequential_ratios: Sequence[Estimate | None]) -> Floats:
    return np.array(
        [
            abs(math.log(estimate.value)) if estimate and interleaving.is_bias(estimate) else 0.0
            for estimate in sequential_ratios
        ],
        np.float64,
    )


def _find_conclusive(logs: Logs, log_margins: Floats, bias: Floats, shares: Floats) -> NDArray[np.bool_]:
    """Return which comparisons are conclusive. Each uses its share of the significance level."""
    return np.asarray(
        (shares > 0.0) & (p_values(logs, log_margins, bias) <= shares * compute_shown_alpha(logs.mean.size))
    )


def _compute_shares(family: Sequence[_Pair], logs: Logs, lookup: Lookup) -> Floats:
    """Return the share of the level for each comparison.

    The share is lower for a comparison whose verdict became clear before its interval was narrow. It stays lower if
    other comparisons were added later (in a merged run), so that the verdict may be unclear again.
    """
    looks = [lookup.look(pair.cell) for pair in family]
    share, settled_shares, widths = (
        np.array([getattr(look, name) for look in looks], np.float64) for name in ("share", "settled", "narrow")
    )
    is_wide = half_widths(logs, share * compute_shown_alpha(len(family))) > widths
    return np.where(is_wide & (settled_shares > 0.0), share * settled_shares, share)


def _make_pair(cell: Cell, other: Cell, lookup: Lookup) -> _Pair | None:
    if not log_ratios(lookup.series.get(cell, {}), lookup.series.get(other, {})):
        return None
    changes = cell in lookup.trends or other in lookup.trends
    steps = find_common_steps([*lookup.numbers[other], *lookup.numbers[cell]]) if changes else None
    values, other_values = select_pair(cell, other, steps, lookup)
    work_check = work_equivalence.compare(lookup.numbers[other], lookup.numbers[cell])
    return _Pair(cell, other, log_ratios(values, other_values), lookup.weight(cell, other), work_check, changes, steps)


def select_pair(cell: Cell, other: Cell, steps: Interval | None, lookup: Lookup) -> tuple[Series, Series]:
    """Return the launch means of two cells for a comparison. If `steps` is set, they cover only this range of steps."""
    if steps is None:
        return lookup.series[cell], lookup.series[other]
    launches = [*lookup.numbers[other], *lookup.numbers[cell]]
    # if the two cells are in different blocks, the control cell shows the difference between the blocks
    pair_series = series(restrict_steps(launches, steps), lookup.references)
    return pair_series[cell], pair_series[other]


def _moderate_logs(family: Sequence[_Pair], lookup: Lookup) -> Logs:
    weights = np.array([pair.weight for pair in family], np.float64)
    residuals = [lookup.residual(pair.cell, pair.other) for pair in family]
    machines = [lookup.machine(pair.cell) for pair in family]
    return moderate(means([pair.logs for pair in family]), weights, residuals, machines)


def _compare_unjudged(pair: _Pair, family_size: int, lookup: Lookup) -> Compared:
    """Return a comparison without a verdict. Its interval has the level of the intervals of the `family_size` pairs."""
    n, level = len(pair.logs), 1.0 - compute_shown_alpha(family_size) * lookup.look(pair.cell).share
    half_width = float(half_widths(_moderate_logs([pair], lookup), 1.0 - level)[0]) if n > 1 else None
    reason = Withheld.TREND if pair.lacks_common_steps else Withheld.FEW_ROUNDS
    return _make_compared(
        pair,
        make_unjudged(fmean(pair.logs), half_width, n, level, different_work=pair.work.differs, why=reason),
        lookup,
    )


def _make_compared(
    pair: _Pair, judgement: Judgement, lookup: Lookup, rounds_needed: RoundsNeeded | None = None
) -> Compared:
    return Compared(
        cell=pair.cell,
        other=pair.other,
        ratio=judgement.ratio,
        level=judgement.level,
        verdict=judgement.verdict,
        withheld=judgement.withheld,
        deciding=judgement.deciding,
        settling=rounds_needed if judgement.verdict is Verdict.UNCLEAR else None,
        work=pair.work,
        pythons=lookup.pythons(pair.cell.environment, pair.other.environment),
        steps=pair.steps,
    )
