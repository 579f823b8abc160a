"""Claims of upstream issues, checked with measured values: confirmed, not seen here, or fixed in a later release.

analysis/claim_rules.py has the rules for an outcome. This module finds the cells of each claim in the run's
environments, estimates its value there, and finds the release that fixed the problem.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean

import numpy as np

from harness.analysis.cell_index import Lookup
from harness.analysis.cells import explain_unavailable
from harness.analysis.claim_rules import ABSENT, NOTICED, ClaimOutcome, judge_ratio, judge_value
from harness.analysis.comparisons import Compared, RoundsNeeded, compare, control_of_growth, is_beyond, settlings
from harness.analysis.quantities import PIECE, calls_looked_at, growths
from harness.analysis.statistics import Difference, Estimate, Interval, half_widths, means
from harness.analysis.verdicts import Withheld, compute_shown_alpha, describe_too_few
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import MACHINE, Cell, Claim, Scenario
from harness.model.texts import counted, format_exact

Pair = tuple[Cell, Cell | None]


@dataclass(frozen=True, slots=True)
class ClaimPlace:
    """A claim in one environment: its cells, and their result.

    `estimate` is value(worse) / value(better), above 1 in the claimed direction. For an absolute claim, it is the worse
    side's seconds, or its bytes per call (a Difference). Its interval has the level `level`. If there is no clear
    outcome, `why` is the reason as a clause, and `settling` is the number of rounds that a clear outcome needs.
    `at_most` is the upper end of the interval if the outcome is unclear, but the interval is entirely below the claimed
    range. `compared` is only set for a ratio.
    """

    worse: Cell
    better: Cell | None
    outcome: ClaimOutcome
    estimate: Estimate | None = None
    level: float = 0.0
    why: str = ""
    settling: RoundsNeeded | None = None
    at_most: float | None = None
    compared: Compared | None = None

    @property
    def cells(self) -> list[Cell]:
        """The cell of the worse side, and of the better side if there is one."""
        return [self.worse, *([self.better] if self.better else [])]

    @property
    def environment(self) -> str:
        """The environment of the worse side."""
        return self.worse.environment


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a claim in its environment (`at`), and in the run's other environments, in the run's order.

    `fixed` and `last_seen` are set if the claim is confirmed in its environment, but not in later releases. `fixed` is
    the oldest release for which this holds: neither it nor any newer measured release shows the problem. `last_seen` is
    the newest earlier release that shows it. All results come from one `machine`, if the run has several.
    """

    scenario: Scenario
    claim: Claim
    at: ClaimPlace
    elsewhere: Sequence[ClaimPlace]
    fixed: ClaimPlace | None
    last_seen: ClaimPlace | None
    machine: str = ""

    @property
    def places(self) -> list[ClaimPlace]:
        """The result in the claim's environment, then the results in the others."""
        return [self.at, *self.elsewhere]

    @property
    def fixed_between(self) -> str:
        """When the problem was fixed: `fixed between tf2.15 and tf2.21`; empty if it wasn't."""
        if self.fixed is None or self.last_seen is None:
            return ""
        return f"fixed between {self.last_seen.environment} and {self.fixed.environment}"


def claims(run: Run, get_lookup: Callable[[str], Lookup]) -> list[ClaimResult]:
    """Return the results of the claims for which the run has cells, in the order of scenarios, machines and headers.

    If the run was requested for the claims of some issues, only these claims are returned, because other claims may
    have the same cells by chance. `get_lookup` returns the index of the cells for a quantity.
    """
    return [
        replace(result, machine=machine)
        for scenario in run.scenarios
        for machine in scenario.axes.get(MACHINE, [""])
        for result in _judge_scenario(run, scenario.on_machine(machine) if machine else scenario, get_lookup)
    ]


def _judge_scenario(run: Run, scenario: Scenario, get_lookup: Callable[[str], Lookup]) -> Iterator[ClaimResult]:
    checked_claims = [claim for claim in scenario.claims if not run.plan.claims or str(claim.issue) in run.plan.claims]
    # an environment from requirements gets its name only when it is created
    names = {
        text: environment.name
        for environment in run.environments
        for text in (environment.asked, environment.line)
        if text
    }
    claims_with_cells = [
        (claim, list(_find_cells(run, scenario, claim)))
        for claim in (checked_claim.rename_environments(names) for checked_claim in checked_claims)
    ]
    families = {
        quantity: _Family(
            [(claim, pair) for claim, pairs in claims_with_cells if claim.of == quantity for pair in pairs],
            get_lookup(quantity),
            run.plan.margin,
        )
        for quantity in dict.fromkeys(claim.of for claim in checked_claims)
    }
    releases = {environment.name: environment.release for environment in run.environments}
    for checked_claim, (claim, pairs) in zip(checked_claims, claims_with_cells, strict=True):
        claimed_place, *elsewhere = (families[claim.of].place(claim, *pair) for pair in pairs)
        claimed_place = _check_earlier_fix(checked_claim, claimed_place, releases)
        planned_cells = get_lookup(claim.of).cells
        elsewhere = [place for place in elsewhere if all(cell in planned_cells for cell in place.cells)]
        if elsewhere or all(cell in planned_cells for cell in claimed_place.cells):
            yield ClaimResult(
                scenario, checked_claim, claimed_place, elsewhere, *_find_fix(claimed_place, elsewhere, releases)
            )


def _find_cells(run: Run, scenario: Scenario, claim: Claim) -> Iterator[Pair]:
    """Return the claim's cells in the claimed environment, and then in each of the run's other environments."""
    devices = run.plan.devices
    device = next((device for device in claim.visible if device in devices), devices[0])
    yield scenario.claimed(claim, device)
    claimed = {side.environment for side in (claim.worse, claim.better) if side}
    for environment in run.environments:
        if environment.name not in claimed:
            yield scenario.claimed(claim, device, environment.name)


def _find_fix(
    claimed_place: ClaimPlace, elsewhere: Sequence[ClaimPlace], releases: Mapping[str, tuple[int, int, int]]
) -> tuple[ClaimPlace, ClaimPlace] | tuple[None, None]:
    """Return the release that fixed the problem, and the newest earlier release that has the problem.

    The first is the oldest later release such that no measured release from it onward has the problem. Releases without
    an outcome are ignored. The result is (None, None) if the problem wasn't fixed.
    """
    claimed_release = releases.get(claimed_place.environment)
    if claimed_release is None or not claimed_place.outcome.holds:
        return None, None
    without_outcome = (ClaimOutcome.CANNOT_RUN, ClaimOutcome.NOT_MEASURED)
    later_places = [
        place
        for place in elsewhere
        if releases[place.environment] > claimed_release and place.outcome not in without_outcome
    ]
    later_places.sort(key=lambda place: releases[place.environment])
    fixed_places = list(takewhile(lambda place: place.outcome.is_gone, reversed(later_places)))
    if not fixed_places:
        return None, None
    earlier_places = [claimed_place, *later_places[: len(later_places) - len(fixed_places)]]
    return fixed_places[-1], next(place for place in reversed(earlier_places) if place.outcome.holds)


def _check_earlier_fix(claim: Claim, place: ClaimPlace, releases: Mapping[str, tuple[int, int, int]]) -> ClaimPlace:
    """Return the result in the claimed environment: "fixed before" if the effect is absent or smaller after the fix."""
    outcomes = (ClaimOutcome.SMALLER, ClaimOutcome.NOT_SEEN, ClaimOutcome.OPPOSITE)
    is_smaller = place.outcome in outcomes or place.at_most is not None
    if claim.fixed and is_smaller and claim.fixed_release <= releases[place.environment]:
        return replace(place, outcome=ClaimOutcome.FIXED_BEFORE, why="", settling=None, at_most=None)
    return place


class _Family:
    """The claims of one scenario about one quantity, in all environments, which are judged together.

    Claims of ratios are judged like the comparisons of a table. Absolute values are shown and judged at the level
    1 - 0.05 / m, for m values with a result in the run.
    """

    def __init__(self, members: Sequence[tuple[Claim, Pair]], lookup: Lookup, margin: float) -> None:
        self._found, self._margin = lookup, margin
        judged_pairs = dict.fromkeys(pair for claim, pair in members if not self._explain_absence(claim, *pair))
        ratio_pairs = [(worse, better) for worse, better in judged_pairs if better]
        self._ratios = dict(zip(ratio_pairs, compare(ratio_pairs, lookup, margin), strict=True))
        self._alpha = compute_shown_alpha(sum(better is None for _, better in judged_pairs))

    def place(self, claim: Claim, worse: Cell, better: Cell | None) -> ClaimPlace:
        """Return the outcome of the claim with these cells."""
        if absence := self._explain_absence(claim, worse, better):
            return absence
        return self._judge_ratio(claim, worse, better) if better else self._judge_absolute(claim, worse)

    def _explain_absence(self, claim: Claim, worse: Cell, better: Cell | None) -> ClaimPlace | None:
        """Return the outcome without a result if the claim can't be judged; None if it can be judged."""
        place = ClaimPlace(worse, better, ClaimOutcome.NOT_MEASURED, why="the run did not include these cells")
        if any(cell not in self._found.cells for cell in place.cells):
            return place
        if worse.device not in claim.visible:
            devices = " or ".join(device.value.upper() for device in claim.visible)
            return replace(place, outcome=ClaimOutcome.CANNOT_RUN, why=f"the issue was reported for a {devices}")
        for cell in place.cells:
            if cell not in self._found.series:
                status, cause = self._found.status(cell), explain_unavailable(cell, self._found)[0].rstrip(".")
                if status is Status.INTERRUPTED and cause:
                    return replace(place, why=cause)
                has_failed = status and status is not Status.OK
                status_text = f"{status} in {cell.environment}" if has_failed else f"no times in {cell.environment}"
                outcome = ClaimOutcome.NOT_MEASURED if status is Status.INTERRUPTED else ClaimOutcome.CANNOT_RUN
                return replace(place, outcome=outcome, why=f"{status_text}: {cause}" if cause else status_text)
        return None

    def _judge_ratio(self, claim: Claim, worse: Cell, better: Cell) -> ClaimPlace:
        compared = self._ratios[worse, better]
        rounds = compared.ratio.rounds if compared else 0
        if (compared is None or compared.withheld is Withheld.FEW_ROUNDS) and (
            reason := self._explain_cut(worse, rounds)
        ):
            return ClaimPlace(worse, better, ClaimOutcome.NOT_MEASURED, why=reason)
        if compared is None:
            return ClaimPlace(worse, better, ClaimOutcome.UNCLEAR, why="no round measured both sides of the claim")
        ratio = compared.ratio
        # an interval from few rounds still shows large differences; if the A/A control failed, it shows nothing
        is_usable = compared.withheld in (None, Withheld.FEW_ROUNDS, Withheld.CONTENTION)
        outcome = judge_ratio(compared.verdict, ratio.interval if is_usable else None, claim, self._margin)
        reason = {
            Withheld.FEW_ROUNDS: describe_too_few(ratio.rounds),
            Withheld.CONTROL: "two identical cells differed by more than the margin",
            Withheld.TREND: "the time per step depends on earlier steps, and too few steps can be compared",
            Withheld.CONTENTION: "the error of the CPU contention correction may exceed this difference",
            None: "",
        }[compared.withheld]
        if outcome is ClaimOutcome.DIFFERENT_WORK:
            reason = compared.work.reason
        reason = reason if outcome in (ClaimOutcome.UNCLEAR, ClaimOutcome.DIFFERENT_WORK) else ""
        upper_bound = (
            _compute_upper_bound(ratio.interval, claim) if outcome is ClaimOutcome.UNCLEAR and is_usable else None
        )
        return ClaimPlace(
            worse, better, outcome, ratio, compared.level, reason, compared.settling, upper_bound, compared
        )

    def _explain_cut(self, cell: Cell, rounds: int) -> str:
        """Return a clause if the budget ended before the rounds that an outcome needs; otherwise empty."""
        budget = self._found.describe_budget(cell)
        return f"{budget} after {counted(rounds, 'round')} of {FEWEST_ROUNDS}" if budget else ""

    def _judge_absolute(self, claim: Claim, worse: Cell) -> ClaimPlace:
        """Judge an absolute claim: seconds on the log scale, and bytes on a linear scale, because they may be zero."""
        if claim.bytes:
            values = list(growths(self._found.numbers[worse]).values())
            launches = [launch for launch in self._found.numbers[worse] if launch.memory]
            calls = min((launch.memory[-1][0] for launch in launches), default=0)
            detectable = claim.range[0] * min(map(calls_looked_at, launches), default=0.0)
            if not values:
                return ClaimPlace(
                    worse, None, ClaimOutcome.CANNOT_RUN, why=f"the memory size was not recorded in {worse.environment}"
                )
        else:
            values = [math.log(seconds) for seconds in self._found.series[worse].values()]
            calls, detectable = 0, math.inf
        rounds, alpha = len(values), self._alpha * self._found.look(worse).share
        if rounds < FEWEST_ROUNDS and (cut_reason := self._explain_cut(worse, rounds)):
            return ClaimPlace(worse, None, ClaimOutcome.NOT_MEASURED, why=cut_reason)
        level = 1.0 - alpha
        if rounds < 2:
            return ClaimPlace(
                worse, None, ClaimOutcome.UNCLEAR, _estimate(claim, values[0], rounds), level, describe_too_few(rounds)
            )
        mean, half_width = fmean(values), float(half_widths(means([values]), alpha)[0])
        estimate = _estimate(claim, mean, rounds, half_width)
        assert estimate.interval
        # if one cell can retain that much more than an identical one, the interval may be off by as much
        difference = compute_growth_bias(worse, claim, self._found)
        outcome, reason = judge_value(estimate.interval, claim.range, difference), ""
        if rounds < FEWEST_ROUNDS:
            outcome, reason = ClaimOutcome.UNCLEAR, describe_too_few(rounds)
        elif outcome is ClaimOutcome.UNCLEAR and judge_value(estimate.interval, claim.range) is not outcome:
            reason = f"of two identical cells, one retained {difference:,.0f} bytes more per call than the other"
        if outcome is ClaimOutcome.NOT_SEEN and detectable < PIECE:
            outcome, reason = (
                ClaimOutcome.UNCLEAR,
                f"{int(calls):,} calls are too few to show {format_exact(claim.range[0])} bytes per call",
            )
        if outcome is not ClaimOutcome.UNCLEAR:
            return ClaimPlace(worse, None, outcome, estimate, level)
        rounds_needed = None
        if not reason:
            # further rounds would show on which side of the bound the value is
            bound = _find_farther_bound(claim, mean, estimate.interval)
            distances = means([[value - bound for value in values]])
            (rounds_needed,) = settlings(distances, np.array([alpha]), 0.0, [worse], self._found, shown=alpha)
        is_usable = not reason or rounds < FEWEST_ROUNDS
        upper_bound = _compute_upper_bound(estimate.interval, claim) if is_usable else None
        return ClaimPlace(worse, None, outcome, estimate, level, reason, rounds_needed, upper_bound)


def compute_growth_bias(cell: Cell, claim: Claim, lookup: Lookup) -> float:
    """Return the difference in memory growth between two identical cells, in bytes per call.

    The result is 0 if nobody would notice the difference beside the claimed growth, and for a claim about seconds.
    """
    control = control_of_growth(cell, lookup) if claim.bytes else None
    return abs(control.value) if control and is_beyond(control, NOTICED * claim.range[0]) else 0.0


def _estimate(claim: Claim, value: float, rounds: int, half_width: float | None = None) -> Estimate:
    """Return the estimate of an absolute value: seconds (`value` is their log), or bytes.

    Bytes are rounded to 0.001, so that a fitted value such as 3.6e-8 becomes 0.
    """
    if not claim.bytes:
        return Estimate.from_log(value, rounds, half_width)
    value, low, high = (
        round(number, 3) + 0.0 for number in (value, value - (half_width or 0.0), value + (half_width or 0.0))
    )
    return Difference(value, rounds, None if half_width is None else Interval(low, high))


def _find_farther_bound(claim: Claim, mean: float, interval: Interval) -> float:
    """Return the bound that the fewest rounds exclude, on the scale of `mean`.

    If the effect is seen, only its size is unclear.
    """
    convert = float if claim.bytes else math.log
    if interval.low > NOTICED * claim.range[0]:
        return convert(claim.range[1] / NOTICED)
    return max((convert(share * claim.range[0]) for share in (NOTICED, ABSENT)), key=lambda bound: abs(mean - bound))


def _compute_upper_bound(interval: Interval | None, claim: Claim) -> float | None:
    """Return the upper end of the interval if the interval is entirely below the claimed range, otherwise None."""
    return interval.high if interval and interval.high < claim.range[0] else None
