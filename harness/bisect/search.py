"""Searches for the pair of candidates between which a quantity changes.

A search scans the candidates, verifies that its ends (the good and the bad candidate) differ, measures probes between
them, and confirms a pair. See docs/how-to/bisect-a-regression.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import pairwise

from harness.analysis.looks import LOOKS_AT_PAIRS
from harness.analysis.verdicts import compute_shown_alpha
from harness.analysis.work_counts import StepWork
from harness.bisect.candidates import Candidate
from harness.bisect.posterior import SPREAD, Posterior, Round, posterior
from harness.bisect.probe import Probe
from harness.model.errors import CannotRunHereError, Exit, HarnessError, UsageError
from harness.model.texts import counted, format_number
from harness.paired.comparison import PairComparison, PairedRun
from harness.paired.measurement import PairedMeasurement

#: Verifying the ends takes at most this share of the budget that is left after the scan.
ENDS_SHARE = 0.5

#: If the likeliest pair has at least this share of the posterior, the next measurement compares its two candidates side
#: by side. Otherwise, the next measurement is a probe.
LIKELY_SHARE = 0.75

#: A scan (one round of each release) reports changes between two releases of at least the first number, a log ratio.
#: A change in the opposite direction of the step splits the search if it has at least the second number, a share of
#: the step.
LEAST_CHANGE, SPLIT_SHARE = math.log(1.25), 0.25

#: The significance level of each comparison of two candidates (analysis/looks.py).
LOOK_ALPHA = compute_shown_alpha(len(LOOKS_AT_PAIRS))

#: The measurement of two candidates, with their comparison.
CandidateMeasurement = PairedMeasurement[PairedRun, PairComparison | None]


class SearchEnd(StrEnum):
    """The way in which a search ended."""

    CONFIRMED = "confirmed"
    #: One pair has 95 % of the posterior, but the comparison side by side did not confirm it.
    FOUND = "found"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class FoundChange:
    """A change between two adjacent candidates of a scan, from one round, on the scale of the search."""

    pair: tuple[int, int]
    step: float


@dataclass(slots=True)
class Search:
    """The state of a search. `low` and `high` are the numbers of the two ends among the `candidates`.

    If `is_fix`, the older end is the bad one. If `is_ratio`, the scale of the search is the log of the ratio, otherwise
    the difference. `unknown` contains the reasons for candidates that can't be measured. `scanned` contains the values
    of a scan, relative to its first candidate, and `changes` its large changes. `ends` compares the two ends. `pair`
    compares the newer candidate of the likeliest pair with the older one. A search by counts has the `work` of counted
    candidates, and `exact`, the nearest two with the change between them.
    """

    candidates: Sequence[Candidate]
    low: int
    high: int
    is_fix: bool = False
    is_ratio: bool = True
    rounds: list[Round] = field(default_factory=list)
    unknown: dict[int, str] = field(default_factory=dict)
    scanned: dict[int, float] = field(default_factory=dict)
    changes: list[FoundChange] = field(default_factory=list)
    ends: PairComparison | None = None
    pair: PairComparison | None = None
    ended: SearchEnd | None = None
    work: dict[int, StepWork] = field(default_factory=dict)
    exact: tuple[int, int] | None = None

    @property
    def is_reversed(self) -> bool:
        """Return whether the results establish that the good end is worse than the bad end."""
        return self.ends is not None and self.ends.is_step and (self.ends.step > 0.0) == self.is_fix

    def text(self, number: int) -> str:
        """Return the value of -e for a candidate."""
        return self.candidates[number].text

    def is_end(self, number: int) -> bool:
        """Return whether a candidate is one of the ends."""
        return number in (self.low, self.high)

    @property
    def posterior(self) -> Posterior | None:
        """Return the posterior of the step; None until both ends have been measured."""
        numbers = [number for number in range(self.low, self.high + 1) if number not in self.unknown]
        # a difference has no natural scale: use its size
        scale = 1.0 if self.is_ratio or not self.ends else max(abs(self.ends.step), 1e-9)
        try:
            return posterior(numbers, self.rounds, spread=SPREAD * scale, unit=scale)
        except ValueError:
            return None

    @property
    def found(self) -> tuple[int, int] | None:
        """Return the pair that has the step, or most likely has it; None if nothing is known yet."""
        belief = self.posterior
        return belief.likeliest if belief else self.exact

    def measured(self, number: int) -> tuple[float, int] | None:
        """Return the mean difference of a candidate from the lower end, and its number of rounds."""
        values = [entry.value for entry in self.rounds if (entry.fixed, entry.probe) == (self.low, number)]
        return (sum(values) / len(values), len(values)) if values else None

    @property
    def least_change(self) -> float:
        """Return the smallest change of a scan that is reported, on the scale of the search."""
        values = self.scanned.values()
        return LEAST_CHANGE if self.is_ratio or not values else SPLIT_SHARE * (max(values) - min(values))

    def format_value(self, value: float) -> str:
        """Format a difference on the scale of the search: `×17.2`, or `+1,200 bytes per call`."""
        return f"×{format_number(math.exp(value))}" if self.is_ratio else f"{value:+,.0f} bytes per call"

    def format_changes(self, changes: Sequence[FoundChange]) -> str:
        """Format changes of a scan: `×17.2 from tf2.15 to tf2.16; ×0.1 from tf2.17 to tf2.18`."""
        return "; ".join(
            f"{self.format_value(change.step)} from {self.text(change.pair[0])} to {self.text(change.pair[1])}"
            for change in changes
        )


class EqualEndpointsError(HarnessError):
    """The ends are equal, or it is unclear whether they differ. If `advice` is empty, more rounds may decide."""

    exit = Exit.NOTHING_SELECTED


class ReversedEndpointsError(UsageError):
    """The good end takes longer than the bad one."""


def make_measurement(kind: str, texts: tuple[str, str], probe: Probe) -> CandidateMeasurement:
    """Return the measurement of two environments, the older first. `kind` is the kind of its steps."""

    def judge(run: PairedRun) -> tuple[PairComparison | None, bool]:
        result = run.compare(texts[1], texts[0], LOOK_ALPHA)
        return result, result is not None and result.is_clear

    return PairedMeasurement(LOOKS_AT_PAIRS, partial(probe.measure, kind, texts), judge)


def scan(search: Search, probe: Probe) -> None:
    """Measure one round of every candidate, and find the changes between them."""
    texts = [candidate.text for candidate in search.candidates]
    probe.say(f"Scan: one round with {len(texts)} releases.")
    run = probe.measure("scan", texts, 1)
    for number, text in enumerate(texts):
        if reason := run.why_not(text):
            _skip_candidate(search, number, reason, probe)
    numbers = [number for number in range(len(texts)) if number not in search.unknown]
    if not numbers:
        raise CannotRunHereError("No release has a result.", "For the reasons, see the report.md of the run.")
    for number in numbers:
        if values := run.differences(texts[number], texts[numbers[0]]):
            search.scanned[number] = values[0]
    steps = {(a, b): search.scanned[b] - search.scanned[a] for a, b in pairwise(search.scanned)}
    search.changes = [
        FoundChange(pair, step) for pair, step in steps.items() if step and abs(step) >= search.least_change
    ]


def narrow(search: Search, budget: float, probe: Probe) -> None:
    """Verify the ends, and measure probes until one pair has 95 % of the posterior and was measured side by side.

    `budget` is in seconds of launches. Before any probe, raises EqualEndpointsError and ReversedEndpointsError with the
    measured values. Raises CannotRunHereError if an end can't be measured.
    """
    _skip_unknown(search, probe)
    ends = _verify_ends(search, budget, probe)
    if _split_search(search, probe):
        ends = _verify_ends(search, budget, probe)
    _add_scan_rounds(search)
    measurements = {(search.low, search.high): ends}
    while search.ended is None:
        belief = search.posterior
        if belief is None:
            raise CannotRunHereError(
                "No round has results of both --good and --bad.", "For the reasons, see the reports of the runs."
            )
        pair = belief.likeliest
        older, newer = map(search.text, pair)
        measurement = measurements.setdefault(pair, make_measurement("pair", (older, newer), probe))
        search.pair = measurement.result
        if belief.share >= LIKELY_SHARE and measurement.more:
            # both candidates were measured before, so they are available
            if not _exceeds_budget(search, budget, _estimate_look(measurement, probe), probe):
                probe.say(f"Side by side: {older} and {newer}, {counted(measurement.more, 'round')}.")
                _add_look(search, pair, measurement, probe)
        elif belief.is_found:
            search.ended = SearchEnd.CONFIRMED if _is_in_direction(search.pair, search.ends) else SearchEnd.FOUND
        else:
            _measure_probe(search, belief, budget, probe)


def narrow_by_work(search: Search, budget: float, probe: Probe) -> None:
    """Count the calls of both ends twice, and then of the candidate in the middle, until the change is at one place.

    A candidate belongs to the end whose number of calls is nearer. `budget` is in seconds of launches. Raises
    EqualEndpointsError if the ends make equally many calls, and CannotRunHereError for an end without exact counts.
    """
    _skip_unknown(search, probe)
    low, high = search.low, search.high
    for work, again, number in zip(*(_count(search, (low, high), probe) for _ in range(2)), (low, high), strict=True):
        if not isinstance(work, StepWork) or work != again:
            reason = work if isinstance(work, str) else "two launches made different numbers of calls"
            raise CannotRunHereError(f"{search.text(number)} has no exact count: {reason}.", "Search by time instead.")
        search.work[number] = work
    low_calls, high_calls = search.work[low].calls, search.work[high].calls
    if low_calls == high_calls:
        raise EqualEndpointsError(
            f"{search.text(low)} and {search.text(high)} make the same number of calls per step.",
            "Search by time instead, or pass different versions or commits to --good and --bad.",
        )
    search.exact = low, high
    while inner := [number for number in range(low + 1, high) if number not in search.unknown]:
        middle = min(inner, key=lambda number: abs(2 * number - low - high))
        if _exceeds_budget(search, budget, probe.estimated(1, 1), probe):
            return
        reason = probe.why_not(search.text(middle))
        (work,) = [reason] if reason else _count(search, [middle], probe)
        if isinstance(work, str):
            _skip_candidate(search, middle, work, probe)
            continue
        search.work[middle] = work
        low, high = (middle, high) if abs(work.calls - low_calls) < abs(work.calls - high_calls) else (low, middle)
        search.exact = low, high
    search.ended = SearchEnd.CONFIRMED


def _count(search: Search, numbers: Sequence[int], probe: Probe) -> list[StepWork | str]:
    """Launch candidates once, and return the work of each one, or the reason why it is unknown."""
    texts = [search.text(number) for number in numbers]
    probe.say(f"Counting the calls of {' and '.join(texts)}.")
    run = probe.measure("count", texts, 1)
    return [run.work(text) for text in texts]


def _measure_probe(search: Search, belief: Posterior, budget: float, probe: Probe) -> None:
    """Measure the candidate that is most useful to measure, unless its environment isn't possible."""
    probe_number, rounds = belief.next_probe(), belief.rounds()
    if _exceeds_budget(search, budget, probe.estimated(2, rounds), probe):
        return
    text = search.text(probe_number)
    if reason := probe.why_not(text):
        _skip_candidate(search, probe_number, reason, probe)
        return
    place_count = sum(share > 0.01 for share in belief.shares)
    probe.say(f"Probe: {text}, {counted(rounds, 'round')}. The change is at one of {place_count} places.")
    texts = [search.text(search.low), search.text(probe_number)]
    _add_rounds(search, (search.low, probe_number), probe.measure("probe", texts, rounds), probe)


def _estimate_look(measurement: CandidateMeasurement, probe: Probe) -> float:
    """Return the estimated time of the next look in seconds."""
    return probe.estimated(2, measurement.more, with_control=True)


def _add_look(search: Search, pair: tuple[int, int], measurement: CandidateMeasurement, probe: Probe) -> None:
    """Measure two candidates up to the next look, and add the new rounds."""
    earlier_rounds = measurement.rounds
    _add_rounds(search, pair, measurement.look(), probe, earlier_rounds)


def _add_rounds(search: Search, pair: tuple[int, int], run: PairedRun, probe: Probe, after: int = 0) -> None:
    """Add the rounds of two candidates after a round. A candidate without a value is skipped, unless it is an end."""
    for number in pair:
        if reason := run.why_not(search.text(number), after):
            if search.is_end(number):
                raise CannotRunHereError(
                    f"{search.text(number)} cannot be measured: {reason}.",
                    "Pass a different version or commit to --good or --bad.",
                )
            _skip_candidate(search, number, reason, probe)
            return
    values = run.differences(search.text(pair[1]), search.text(pair[0]), after)
    search.rounds += [Round(*pair, value) for value in values]


def _skip_unknown(search: Search, probe: Probe) -> None:
    for number, candidate in enumerate(search.candidates):
        if candidate.unknown and number not in search.unknown and not search.is_end(number):
            _skip_candidate(search, number, candidate.unknown, probe)


def _skip_candidate(search: Search, number: int, reason: str, probe: Probe) -> None:
    search.unknown[number] = reason
    probe.say(f"{search.text(number)} is skipped: {reason}.")


def _exceeds_budget(search: Search, budget: float, seconds: float, probe: Probe) -> bool:
    if probe.spent + seconds <= budget:
        return False
    search.ended = SearchEnd.BUDGET
    return True


def _verify_ends(search: Search, budget: float, probe: Probe) -> CandidateMeasurement:
    """Measure the ends until it is clear that they differ. Raises EqualEndpointsError and ReversedEndpointsError."""
    first, last = search.text(search.low), search.text(search.high)
    for text in (first, last):
        if reason := probe.why_not(text):
            raise CannotRunHereError(
                f"{text} cannot be measured: {reason}.", "Pass a different version or commit to --good or --bad."
            )
    measurement = make_measurement("ends", (first, last), probe)
    spent_limit = probe.spent + ENDS_SHARE * (budget - probe.spent)
    while measurement.more and not (
        measurement.result and probe.spent + _estimate_look(measurement, probe) > spent_limit
    ):
        probe.say(f"Verifying that {first} and {last} differ: {counted(measurement.more, 'round')}.")
        _add_look(search, (search.low, search.high), measurement, probe)
    ends = measurement.result
    if ends is None:
        raise CannotRunHereError(f"No round has results of both {first} and {last}.", "See the report.md of the run.")
    search.ends = ends
    good, bad = (last, first) if search.is_fix else (first, last)
    scan_note = f" Changes between them in the scan of one round: {search.format_changes(search.changes)}."
    clause = f"{ends.clause}.{scan_note if search.changes else ''}"
    if not ends.is_step:
        raise EqualEndpointsError(
            f"{good} and {bad} {ends.relation}: {clause}",
            "" if measurement.more else "Pass different versions or commits to --good and --bad.",
        )
    if search.is_reversed:
        raise ReversedEndpointsError(
            f"{bad} is not worse than {good}: {clause}", f"If you swapped the ends, pass --good {bad} --bad {good}."
        )
    return measurement


def _is_in_direction(pair: PairComparison | None, ends: PairComparison | None) -> bool:
    """Return whether the results establish that a pair differs in the same direction as the ends."""
    return bool(pair and ends and pair.is_step and (pair.step > 0.0) == (ends.step > 0.0))


def _split_search(search: Search, probe: Probe) -> bool:
    """If the scan has a large opposite change, move the ends to the part with the largest change, and return True."""
    numbers = [number for number in sorted(search.scanned) if search.low <= number <= search.high]
    if len(numbers) < 3:
        return False
    step = search.scanned[numbers[-1]] - search.scanned[numbers[0]]
    sign, threshold = (1.0 if step > 0.0 else -1.0), max(search.least_change, SPLIT_SHARE * abs(step))
    changes = {number: sign * (search.scanned[number] - search.scanned[before]) for before, number in pairwise(numbers)}
    parts = [[numbers[0]]]
    for number, change in changes.items():
        if change < -threshold:
            parts.append([])
        parts[-1].append(number)
    if len(parts) == 1:
        return False
    best_part = max(parts, key=lambda part: max((changes[number] for number in part[1:]), default=0.0))
    search.low, search.high = best_part[0], best_part[-1]
    probe.say(
        f"The releases become both slower and faster. The search is limited to the largest change, between "
        f"{search.text(search.low)} and {search.text(search.high)}."
    )
    return True


def _add_scan_rounds(search: Search) -> None:
    """Use the rounds of the scan for the posterior."""
    values = search.scanned
    numbers = [number for number in values if search.low < number <= search.high] if search.low in values else []
    search.rounds += [
        Round(search.low, number, values[number] - values[search.low], is_scan=True) for number in numbers
    ]
