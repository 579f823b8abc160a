"""The rules of harness on simulated launches, including the rule that ends groups and the A/A control."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from bench.simulation.machine import FACTORS, Against, Floats, Spread, Table, launches
from harness.analysis.control import Control, is_beyond, pool_control
from harness.analysis.distribution import find_outliers
from harness.analysis.looks import FIRST_LOOK, LOOKS, compute_settling_share
from harness.analysis.moderation import LaunchVariances, moderate
from harness.analysis.statistics import Estimate, Logs, half_widths
from harness.analysis.verdicts import LARGE, Verdict, compute_shown_alpha, judge, judgements, p_values
from harness.model.defaults import ALPHA, FEWEST_ROUNDS

MARGIN = math.log1p(0.03)

#: A control is a check only if it can show a bias of this size, on the log scale.
MOST_BIAS = math.log1p(0.10)


@dataclass(frozen=True, slots=True)
class VerdictShares:
    """Shares of verdicts in tables whose comparisons all have the same true ratio.

    `any_different` and `any_same` are the shares of tables with any `faster` or `slower`, and with any `same`.
    `different` and `same` are shares of comparisons.
    """

    any_different: float
    any_same: float
    different: float
    same: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of many tables of one kind.

    - said: one entry for each effect
    - coverage: the share of comparisons whose individual 95 % interval contains the true ratio. worst: the lowest
      coverage among sets of comparisons with the same variability
    - together: the share of tables in which all shown intervals contain the true ratios
    - half: the median half-width of the individual intervals, on the log scale
    - rounds: the mean number of rounds
    - lost: the share of tables whose verdicts the control withholds
    - outlying: the share of compared cells with launches that the report marks as outliers
    """

    said: tuple[VerdictShares, ...]
    coverage: float
    worst: float
    together: float
    half: float
    rounds: float
    lost: float
    outlying: float


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: the log ratios of its comparisons, its control, and each comparison's share of the level.

    A comparison with fewer than two rounds, because launches failed, has an infinite variance.
    """

    logs: Logs
    control: Control | None
    shares: Floats = field(default_factory=lambda: np.ones(1))


def edge(rounds: int) -> float:
    """Return the margin after this number of rounds: the log ratio between *same* and a difference."""
    return MARGIN if rounds >= FEWEST_ROUNDS else LARGE


def outcome(
    table: Table,
    rounds: int,
    tables: int,
    *,
    seed: int,
    effects: Sequence[float] = (0.0,),
    precision: float | None = None,
    first: int = FIRST_LOOK,
    settles: bool = False,
) -> Outcome:
    """Simulate tables of `rounds` rounds, or with `precision` (0.02) of at most `rounds`, and judge them.

    With a precision, widths are checked after round `first` and later rounds. If `settles`, verdicts are checked too.

    `effects` are true log ratios, time(baseline) / time(cell). The same launches are judged with each of them.
    """
    draw = np.random.default_rng(seed)
    by_effect: list[list[list[Verdict | None]]] = [[] for _ in effects]
    covered, together, halves, counts, lost, outlying = [], [], [], [], [], []
    for _ in range(tables):
        centres, within = launches(table, rounds, draw)
        ended = None if settles else end_run(table, centres, within, precision, first)
        for effect, verdicts in zip(effects or (0.0,), by_effect or ([],), strict=True):
            if settles:
                ended = end_run(table, centres, within, precision, first, settles=True, effect=effect)
            verdicts.append(judge_table(ended, 0.0 if settles else effect - table.truth))
            own, is_judged = half_widths(ended.logs, ALPHA * ended.shares), ended.logs.rounds > 1
            off = np.abs(ended.logs.mean - table.truth - settles * effect)
            covered.append(np.where(is_judged, off <= own, np.nan))
            shown = compute_shown_alpha(int(is_judged.sum()))
            together.append(np.all(off <= half_widths(ended.logs, shown * ended.shares)))
            halves.append(own)
            counts.append(ended.logs.rounds)
        lost.append(is_beyond([ended.control], MARGIN))
        if table.mixture:
            outlying += [any(find_outliers(cell.tolist())) for group in centres for cell in group[: table.others]]
    by_comparison, kinds = np.nanmean(covered, axis=0), _alike(table)
    return Outcome(
        said=tuple(map(_said, by_effect)),
        coverage=float(by_comparison.mean()),
        worst=min(float(by_comparison[kinds == kind].mean()) for kind in np.unique(kinds)),
        together=float(np.mean(together)),
        half=float(np.median(halves)),
        rounds=float(np.mean(counts)),
        lost=float(np.mean(lost)),
        outlying=float(np.mean(outlying)) if outlying else 0.0,
    )


def _alike(table: Table) -> npt.NDArray[np.int64]:
    """Return a number for each comparison. Comparisons with the same variability have the same number.

    Their coverage is computed together, because the worst of many equal comparisons would be low just by chance.
    """
    if table.spread is Spread.GROUPS:
        return np.repeat(np.arange(table.groups) % len(FACTORS), table.per_group)
    return np.minimum(np.arange(table.comparisons), 1 if table.spread is Spread.ONE else 0)


def judge_table(found: RunEnd, effect: float, bias: float | Floats = 0.0) -> list[Verdict | None]:
    """Return the verdict of each comparison if all have this true log ratio; None if the verdict is withheld.

    `bias` extends the intervals on both sides.
    """
    is_judged = found.logs.rounds > 1
    if not is_judged.any():
        return [None] * is_judged.size
    logs = select(replace(found.logs, mean=found.logs.mean + effect), is_judged)
    own_bias, shares = (np.broadcast_to(values, is_judged.shape)[is_judged] for values in (bias, found.shares))
    margins = np.where(logs.rounds < FEWEST_ROUNDS, LARGE, MARGIN)
    rounds = logs.rounds.astype(int).tolist()
    entries = judgements(logs, judge(logs, margins, own_bias, shares), rounds, is_beyond([found.control], MARGIN))
    verdicts = iter(entry.verdict for entry in entries)
    return [next(verdicts) if one else None for one in is_judged]


def select(logs: Logs, chosen: npt.NDArray[np.bool_]) -> Logs:
    """Return the log ratios of the chosen comparisons."""
    return Logs(logs.mean[chosen], logs.variance[chosen], logs.rounds[chosen], logs.freedom[chosen])


@dataclass(frozen=True, slots=True)
class BiasResults:
    """Error rates when interleaving biases one of two equal cells, as shares of all comparisons.

    The check compares interleaved with sequential launches. `wrong` counts wrong verdicts, `unchecked` the wrong
    verdicts without the check, and `found` the comparisons in which the check finds the bias.
    """

    wrong: float
    unchecked: float
    found: float


def simulate_bias(table: Table, rounds: int, tables: int, bias: float, *, alone: float, seed: int) -> BiasResults:
    """Simulate the check for a bias from interleaving, which changes each group's first cell by `bias` (log scale).

    `alone` is the standard deviation of a launch's time from samples without interleaving, around the true time.
    """
    draw = np.random.default_rng(seed)
    counts = np.zeros(3)
    for _ in range(tables):
        centres, within = launches(table, rounds, draw)
        shifts = alone * draw.normal(size=centres.shape)
        centres[:, 0] += bias
        shifts[:, 0] -= bias
        ended, shift = end_run(table, centres, within), end_run(table, shifts, np.ones_like(within)).logs
        is_found = np.abs(shift.mean) > half_widths(shift, compute_shown_alpha(table.comparisons))
        widened = np.where(is_found, np.abs(shift.mean), 0.0)
        # in each group, the comparison with the biased cell
        first = slice(None, None, table.per_group)
        verdicts = (judge(ended.logs, MARGIN, by).verdicts[first] for by in (widened, 0.0))
        wrong = (np.mean([verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in row]) for row in verdicts)
        counts += [*wrong, is_found[first].mean()]
    return BiasResults(*(counts / tables).tolist())


def _said(tables: Sequence[Sequence[Verdict | None]]) -> VerdictShares:
    different = np.array([[verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in verdicts] for verdicts in tables])
    same = np.array([[verdict is Verdict.SAME for verdict in verdicts] for verdicts in tables])
    return VerdictShares(
        any_different=float(different.any(axis=1).mean()),
        any_same=float(same.any(axis=1).mean()),
        different=float(different.mean()),
        same=float(same.mean()),
    )


@dataclass(frozen=True, slots=True)
class Checks:
    """The results of the A/A controls of many runs.

    - coverage: the share of runs whose interval contains the true difference
    - half: the median half-width. least: the median of the smallest bias that a run could have shown. Both are on the
      log scale
    - checked: the share of runs that could have shown a bias of 10 %
    - lost: for each shift of the second launch, the share of runs whose control is beyond the margin
    """

    coverage: float
    half: float
    least: float
    checked: float
    lost: tuple[float, ...]


def simulate_controls(table: Table, rounds: int, tables: int, shifts: Sequence[float], *, seed: int) -> Checks:
    """Simulate the controls of many runs in which the second launch is slower by each of the shifts (log scale)."""
    draw = np.random.default_rng(seed)
    lost, rows = np.zeros(len(shifts)), []
    for _ in range(tables):
        control = _control(*launches(table, rounds, draw))
        assert control, "no launch fails"
        ends = control.estimate.interval
        assert ends, "two rounds and more have an interval"
        middle, half = math.log(control.estimate.value), math.log(ends.high / ends.low) / 2.0
        # if the second launch is always slower, only the mean of the differences changes
        moved = (Control(Estimate.from_log(middle + shift, rounds, half), table.groups) for shift in shifts)
        lost += [shifted.is_beyond(MARGIN) for shifted in moved]
        # the least bias that the run could have shown: the interval of a control with this ratio is beyond the margin
        least_bias = MARGIN + half
        rows.append((1.0 in ends, half, least_bias, least_bias <= MOST_BIAS))
    covered, halves, least, checked = (np.array(column, float) for column in zip(*rows, strict=True))
    shares = tuple((lost / tables).tolist())
    return Checks(
        float(covered.mean()), float(np.median(halves)), float(np.median(least)), float(checked.mean()), shares
    )


def _control(centres: Floats, within: Floats, counts: Sequence[int] | None = None) -> Control | None:
    """Return the control of groups that have these numbers of rounds (`counts`). Its launches are a separate cell.

    The result is None if no round has both launches of a control cell.
    """
    pairs, residuals = [], []
    for at, group in enumerate(centres):
        logs = group[:, : counts[at]] if counts is not None else group
        reference, differences = len(logs) - 2, logs[-1] - logs[-2]
        if np.isnan(differences).all():
            continue
        group_variances = _make_variances(np.arange(len(logs)), logs, within[at])
        residuals.append(group_variances.between(reference, reference + 1))
        pairs.append(differences[~np.isnan(differences)].tolist())
    return pool_control(pairs, residuals) if pairs else None


def _compute_means(values: Floats, axis: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the means and numbers of the values that aren't NaN; the mean of no value is NaN.

    Unlike `np.nanmean`, this doesn't warn if there is no value. Masked arrays would take four times as long.
    """
    is_present = ~np.isnan(values)
    counts = is_present.sum(axis=axis)
    sums = np.where(is_present, values, 0.0).sum(axis=axis)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts


def _make_variances(labels: npt.NDArray[np.int64], logs: Floats, within: Floats) -> LaunchVariances:
    """Return the variances of a group's launches that didn't fail. `labels` has the cell of each row of `logs`."""
    rows, numbers = np.nonzero(~np.isnan(logs))
    samples = dict(enumerate(within[:-1].tolist()))
    return LaunchVariances(labels[rows].tolist(), numbers.tolist(), logs[rows, numbers].tolist(), samples)


def end_run(
    table: Table,
    centres: Floats,
    within: Floats,
    precision: float | None = None,
    first: int = FIRST_LOOK,
    *,
    settles: bool = False,
    effect: float | Floats = 0.0,
) -> RunEnd:
    """Return the end of a run. With `precision`, each group ends when its intervals are narrow enough.

    If `settles`, it also ends when its remaining verdicts are settled. `effect` is the true log ratio. `centres` has
    the shape (groups, others + 2, rounds), and `within`, the variability of samples, has (groups, others + 2).
    """
    rounds = centres.shape[2]
    groups = Groups(table, centres, within, effect)
    shares = np.ones((table.groups, table.per_group))
    if precision is None:
        groups.measure(np.arange(table.groups), rounds)
        return RunEnd(groups.logs, groups.control, shares.ravel())
    going = np.arange(table.groups)
    for number in range(min(LOOKS[0] if settles else first, rounds), rounds + 1):
        share = compute_settling_share(number) if settles else 0.0
        if number < first and not share and number < rounds:
            continue
        groups.measure(going, number)
        logs = groups.logs
        half = half_widths(logs, compute_shown_alpha(table.comparisons)).reshape(shares.shape)
        wide = (half > math.log1p(precision)) | (number < first)
        p = p_values(logs, MARGIN, 0.0).reshape(shares.shape)
        settled = (share > 0.0) & (p <= share * compute_shown_alpha(table.comparisons))
        ended = ~(wide & ~settled).any(axis=1)
        shares[going] = np.where((ended[:, None] & wide & settled)[going], share, 1.0)
        going = going[~ended[going]]
        if not going.size:
            break
    return RunEnd(groups.logs, groups.control, shares.ravel())


class Groups:
    """The results of each group after its rounds so far. `effect` is the true log ratio of its comparisons."""

    def __init__(self, table: Table, centres: Floats, within: Floats, effect: float | Floats = 0.0) -> None:
        self.table, self.centres, self.within = table, centres, within
        self.effect = np.broadcast_to(effect, (table.groups, table.per_group))
        shape = (table.groups, table.per_group)
        self.means, self.variances, self.rounds, self.weights = (np.empty(shape) for _ in range(4))
        self.launch_variances: list[LaunchVariances] = [LaunchVariances([], [], [], {})] * table.groups
        self.counts = np.zeros(table.groups, int)

    def measure(self, groups: npt.NDArray[np.int64], rounds: int) -> None:
        """Compute the results of these `groups` after this number of rounds."""
        centres = self.centres[groups, :, :rounds]
        if self.table.against is Against.REFERENCE:
            # the baseline's value is the mean of the logs of its two launches
            baselines, counts = _compute_means(centres[:, -2:], axis=1)
            ratios = baselines[:, None] - centres[:, :-2]
            weights = np.broadcast_to((1.0 + 1.0 / np.maximum(counts, 1))[:, None], ratios.shape)
        else:
            ratios = centres[:, 0:-2:2] - centres[:, 1:-2:2]
            weights = np.full(ratios.shape, 2.0)
        means, counts = _compute_means(ratios, axis=2)
        squares, _ = _compute_means((ratios - means[:, :, None]) ** 2, axis=2)
        is_judged = counts > 0
        self.means[groups] = np.where(is_judged, means, 0.0) + self.effect[groups]
        self.variances[groups] = np.where(counts > 1, squares * counts / np.maximum(counts - 1, 1), np.inf)
        self.rounds[groups] = counts
        weights, _ = _compute_means(np.where(np.isnan(ratios), np.nan, weights), axis=2)
        self.weights[groups] = np.where(is_judged, weights, 1.0)
        self.counts[groups] = rounds
        # the last two launches of a round are of the reference
        labels = np.minimum(np.arange(centres.shape[1]), self.table.others)
        for group in groups.tolist():
            self.launch_variances[group] = _make_variances(labels, self.centres[group, :, :rounds], self.within[group])

    @property
    def truth(self) -> Floats:
        """Return the true log ratios of all comparisons."""
        return self.effect.ravel() + self.table.truth

    @property
    def logs(self) -> Logs:
        """Return the log ratios of all comparisons, with their moderated variances."""
        count, is_reference = self.table.per_group, self.table.against is Against.REFERENCE
        pairs = [(at, self.table.others) if is_reference else (2 * at, 2 * at + 1) for at in range(count)]
        residuals = [group_variances.between(*pair) for group_variances in self.launch_variances for pair in pairs]
        logs = Logs.measured(self.means.ravel(), self.variances.ravel(), self.rounds.ravel())
        is_judged = logs.rounds > 1
        chosen = moderate(
            select(logs, is_judged), self.weights.ravel()[is_judged], list(compress(residuals, is_judged))
        )
        variance, freedom = logs.variance.copy(), np.ones_like(logs.freedom)
        variance[is_judged], freedom[is_judged] = chosen.variance, chosen.freedom
        return replace(logs, variance=variance, freedom=freedom)

    @property
    def control(self) -> Control | None:
        """Return the control of the run; None if no round has both of its launches."""
        return _control(self.centres, self.within, self.counts.tolist())
