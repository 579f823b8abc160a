"""The widths of the intervals of comparisons and claims, which determine whether a group needs further rounds."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

import numpy as np

from harness.analysis.cell_index import Lookup, lookup
from harness.analysis.claim_rules import ABSENT, ClaimOutcome, judge_claim
from harness.analysis.claims import compute_growth_bias
from harness.analysis.looks import (
    FIRST_LOOK,
    FIRST_LOOK_AT_VAST,
    compute_settling_share,
    find_claim_cells,
    find_first_looks,
    list_looks_at_claims,
)
from harness.analysis.pairs import PairFamily, make_family
from harness.analysis.quantities import growths, launches_of
from harness.analysis.rounds import Series, apply_clock
from harness.analysis.statistics import combine, half_widths, means
from harness.analysis.tables import layouts
from harness.analysis.verdicts import ONE_ROUND, VAST, compute_shown_alpha, margins, p_values
from harness.model.launch import Launch, Status
from harness.model.run import Run
from harness.model.scenario import GROWTH, STEP, Cell, Claim


def log_intervals(
    pairs: Sequence[tuple[Cell, Cell]], index: Lookup, planned: int = 0
) -> list[tuple[float, float, float] | None]:
    """Return the mean log ratio of each pair, half the width of its interval at 1 - 0.05 / m, and the bias.

    m is the number of judged pairs, and at least `planned`, the number of pairs including those that aren't measured
    yet. In `compare`, the bias makes the same interval wider. More rounds don't remove it. A pair that isn't judged has
    None, and a pair with too few rounds has an infinite width.
    """
    return _list_intervals(make_family(pairs, index), index, planned)


def _list_intervals(family: PairFamily, index: Lookup, planned: int = 0) -> list[tuple[float, float, float] | None]:
    shares = np.array([index.look(pair.cell).share for pair in family.judged], np.float64)
    widths = half_widths(family.logs, shares * compute_shown_alpha(max(planned, len(family.judged))))
    judged = iter(zip(widths.tolist(), family.bias.tolist(), strict=True))
    return [
        None
        if pair is None or pair.work.differs or pair.lacks_common_steps
        else (fmean(pair.logs), *(next(judged) if pair.is_judged else (math.inf, 0.0)))
        for pair in family.candidates
    ]


def open_widths(
    pairs: Sequence[tuple[Cell, Cell]], index: Lookup, margin: float, group_shares: Mapping[str, float]
) -> list[float | None]:
    """Return half the width of each pair's interval (see `log_intervals`), so that a run can stop at a width.

    A comparison whose verdict is already clear has 0. `margin` is a share: 0.03 for 3 %. `group_shares` contains, by
    group, the share of the level that a look may use now (analysis/looks.py). A verdict is clear if the interval at
    1 - 0.05 · share / m doesn't include the margin, and the control doesn't withhold the verdict.
    """
    family, log_margin = make_family(pairs, index), math.log1p(margin)
    halves = [interval and interval[1] for interval in _list_intervals(family, index)]
    shares = np.array([group_shares[index.groups[pair.cell]] for pair in family.judged], np.float64)
    p = p_values(family.logs, margins(family.logs.rounds, log_margin), family.bias)
    is_settled = (shares > 0.0) & (p <= shares * compute_shown_alpha(len(family.judged)))
    is_withheld = np.array([index.is_lost(pair.cell, log_margin) for pair in family.judged], np.bool_)
    is_clear = iter((is_settled & ~is_withheld).tolist())
    return [
        0.0 if pair and pair.is_judged and next(is_clear) else half_width
        for pair, half_width in zip(family.candidates, halves, strict=True)
    ]


def widths(run: Run, launches: Sequence[Launch]) -> dict[str, float]:
    """Return half the width of each group's widest interval, on the log scale; infinite before FIRST_LOOK.

    A comparison whose verdict is clear at one of the rounds in LOOKS counts as 0. A group without comparisons has the
    width of its cells' times instead. Groups without a result aren't included. Memory growth has no ratios, and isn't
    included. In a run of claims without a precision, only claims count. Their widths are divided by the width that each
    claim needs, so a group is done at 1. A claim with a clear outcome counts as 0, and between two looks
    (analysis/looks.py), the width is infinite.
    """
    if run.plan.claims and run.plan.precision is None:
        return _compute_claim_widths(run, launches)
    clock = run.plan.clock
    step_index = lookup(run, apply_clock(clock, launches))
    times = {
        group.name: [step_index.series[cell] for cell in group.cells if cell in step_index.series]
        for group in run.plan.groups
    }
    rounds = {name: max(map(len, cell_times), default=0) for name, cell_times in times.items()}
    shares = {name: compute_settling_share(count) for name, count in rounds.items()}
    pair_widths: dict[str, float] = {}
    for quantity in dict.fromkeys(entry.of for scenario in run.scenarios for entry in scenario.compare):
        if quantity == GROWTH:
            continue
        index = step_index if quantity == STEP else lookup(run, launches_of(quantity, launches, clock))
        for layout in layouts(run, index, quantity):
            pairs = layout.pairs()
            for (cell, _), half_width in zip(pairs, open_widths(pairs, index, run.plan.margin, shares), strict=True):
                if half_width is not None:
                    name = index.groups[cell]
                    pair_widths[name] = max(pair_widths.get(name, 0.0), half_width)
    result = {}
    for name, cell_series in times.items():
        if cell_series:
            width = pair_widths[name] if name in pair_widths else max(map(_compute_half_width, cell_series))
            result[name] = width if not width or rounds[name] >= FIRST_LOOK else math.inf
    return result


def pairs(run: Run) -> dict[str, list[tuple[Cell, Cell]]]:
    """Return, by group, the pairs of cells whose times per step are compared, in the order of the tables."""
    index = lookup(run, [])
    result: dict[str, list[tuple[Cell, Cell]]] = {group.name: [] for group in run.plan.groups}
    for layout in layouts(run, index):
        for cell, other in layout.pairs():
            if cell in index.groups and other in index.groups:
                result[index.groups[cell]].append((cell, other))
    return result


def _compute_claim_widths(run: Run, launches: Sequence[Launch]) -> dict[str, float]:
    """Return the largest ratio in each group's claims: half the width of an interval over the width that a claim needs.

    A scenario's claims of one quantity are judged together (claims.py), so the width of an interval depends on their
    number. From a group's first round to its first look, its width is infinite, except after one round without a
    failure. After that, it is 0 if none of its claims has an interval, because their cells have failed.
    """
    first_looks = find_first_looks(run)
    rounds = Counter(name for name, _ in {(launch.group, launch.round) for launch in launches if launch.round})
    failed = {launch.group for launch in launches if launch.round and launch.status is not Status.OK}
    result = {
        group.name: math.inf
        if (FIRST_LOOK_AT_VAST if group.name not in failed else 0) < rounds[group.name] < first_looks.get(group.name, 0)
        else 0.0
        for group in run.plan.groups
    }
    groups = {cell: group.name for group in run.plan.groups for cell in group.cells}
    clock, margin = run.plan.clock, run.plan.margin
    launched_scenarios = {launch.cell.scenario for launch in launches}
    for scenario in (candidate for candidate in run.scenarios if candidate.name in launched_scenarios):
        for quantity in dict.fromkeys(claim.of for claim in scenario.claims):
            own_launches = launches if quantity == GROWTH else launches_of(quantity, launches, clock)
            index = lookup(run, apply_clock(clock, launches) if quantity == STEP else own_launches)
            family = [
                (claim, find_claim_cells(run.environments, scenario, claim))
                for claim in scenario.claims
                if claim.of == quantity
            ]
            intervals = _compute_intervals({place for _, places in family for place in places}, index, quantity, groups)
            for claim, places in family:
                if str(claim.issue) not in run.plan.claims:
                    continue
                for place in (place for place in places if place in intervals):
                    group = groups[place[0]]
                    # `run.looks` has the round at which the group ended, if a resumed run has another last round
                    looks = [look.get(group) for look in run.looks]
                    looks += [FIRST_LOOK_AT_VAST, *list_looks_at_claims(first_looks[group], run.plan.rounds)]
                    is_look = index.rounds[group] in looks
                    width = _compute_claim_width(claim, place[0], intervals[place], index, margin)
                    result[group] = max(result[group], width if is_look else math.inf)
    return result


def _compute_claim_width(
    claim: Claim, cell: Cell, measured: tuple[float, float, float, int], index: Lookup, margin: float
) -> float:
    """Return half the width of a claim's interval over the width that the claim needs; 0 if its outcome is clear.

    `measured` is a value of `_compute_intervals`. As in the report, an outcome that the control withholds isn't clear.
    """
    mean, half_width, bias, rounds = measured
    is_withheld = claim.ratio is not None and index.is_lost(cell, math.log1p(margin))
    bias += math.inf if is_withheld else compute_growth_bias(cell, claim, index)
    if rounds == FIRST_LOOK_AT_VAST and claim.ratio and abs(mean) >= VAST:
        half_width = ONE_ROUND
    if judge_claim(claim, mean, half_width, rounds, margin, bias=bias) is not ClaimOutcome.UNCLEAR:
        return 0.0
    return half_width / (ABSENT * claim.bytes[0] if claim.bytes else claim.needed(margin))


def _compute_intervals(
    places: Collection[tuple[Cell, Cell | None]], index: Lookup, quantity: str, planned: Collection[Cell]
) -> dict[tuple[Cell, Cell | None], tuple[float, float, float, int]]:
    """Return the mean of each place with a result, half the width of its interval, its bias, and its number of rounds.

    Ratios and seconds are on the log scale, and growth is in bytes per call. The width is infinite if there are too few
    rounds for an interval. The level is divided among all places with `planned` cells, so that the order of measurement
    has no effect.
    """
    planned_places = [place for place in places if place[0] != place[1] and place[0] in planned]
    pair_count = sum(better is not None and better in planned for _, better in planned_places)
    single_count = sum(better is None for _, better in planned_places)
    single_values: dict[Cell, list[float]] = {}
    pairs = []
    # if an environment is the better side of a claim, both sides are the same cell, and are omitted
    for worse, better in (place for place in places if place[0] in index.series and place[0] != place[1]):
        if better is None and quantity == GROWTH:
            single_values[worse] = list(growths(index.numbers[worse]).values())
        elif better is None:
            single_values[worse] = [math.log(value) for value in index.series[worse].values()]
        elif better in index.series:
            pairs.append((worse, better))
    result: dict[tuple[Cell, Cell | None], tuple[float, float, float, int]] = {}
    for (worse, better), measured in zip(pairs, log_intervals(pairs, index, pair_count), strict=True):
        if measured:
            result[worse, better] = *measured, len(index.series[worse].keys() & index.series[better].keys())
    for cell, values in single_values.items():
        if values:
            alpha = index.look(cell).share * compute_shown_alpha(max(single_count, len(single_values)))
            half_width = float(half_widths(means([values]), alpha)[0]) if len(values) > 1 else math.inf
            result[cell, None] = fmean(values), half_width, 0.0, len(values)
    return result


def _compute_half_width(series: Series) -> float:
    interval = combine(list(series.values())).interval
    return math.log(interval.high / interval.low) / 2.0 if interval else math.inf
