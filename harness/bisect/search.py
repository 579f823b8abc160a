"""A search from its ends to the pair at which a quantity steps: scan, verified ends, probes, and a verdict on the pair.

See docs/how-to/bisect-a-regression.md. Everything that is measured is asked of a `Probe`, so that a search can be tried
without measuring.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from harness.bisect.candidates import Candidate
from harness.bisect.comparison import LookResult, Looks, MeasuredEnvironments, Probe
from harness.bisect.posterior import SPREAD, Posterior, Round, posterior
from harness.model.errors import CannotRunHereError, Exit, HarnessError, UsageError
from harness.model.texts import counted

#: The ends get no further look that would take more than this share of what the scan left of the budget.
OF_ENDS = 0.5

#: From this share of the posterior on, the likeliest pair is measured side by side. No probe decides more then, and the
#: answer needs these rounds in any case.
LIKELY = 0.75

#: A change between two neighbours of a scan, which has one round of each, is told from here on (log scale), and splits
#: the search where it is so much of the step as well and goes the other way.
TOLD, SPLITS = math.log(1.25), 0.25

#: From so many CPUs on, the next candidates' environments are made while one is measured: an installation keeps two
#: busy, and one measures.
CPUS_TO_BUILD = 4


class SearchEnd(StrEnum):
    """How a search ended."""

    CONFIRMED = "confirmed"
    #: 95 % of the posterior lie on one pair, whose verdict is not clear.
    FOUND = "found"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class FoundChange:
    """Between two neighbours of a scan a value changes, by what one round showed on the scale of the search."""

    pair: tuple[int, int]
    step: float


@dataclass(slots=True)
class Search:
    """A search over `candidates`, in order, and all that it has found; `low` and `high` are its ends among them.

    `is_fix`: the older end is the bad one. `is_ratio`: values are compared by their logs, else by their difference.
    `unknown` says why a candidate cannot be measured; `scanned` are the values of a scan, on the scale of the search
    and from the first one's, and `changes` where neighbours differ in it; `ends` and `pair` are the verdicts on the
    ends and on the likeliest pair, the newer against the older.
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
    ends: LookResult | None = None
    pair: LookResult | None = None
    ended: SearchEnd | None = None

    @property
    def is_reversed(self) -> bool:
        """Whether the good end is shown to be the worse one."""
        return self.ends is not None and self.ends.is_step and (self.ends.step > 0.0) == self.is_fix

    def text(self, at: int) -> str:
        """What -e takes for a candidate."""
        return self.candidates[at].text

    @property
    def posterior(self) -> Posterior | None:
        """What is known of the step's place; None before both ends were measured."""
        # counted from the lower end: what lies outside is no part of this search
        inside = [
            replace(each, fixed=each.fixed - self.low, probe=each.probe - self.low)
            for each in self.rounds
            if all(self.low <= at <= self.high for at in (each.fixed, each.probe))
        ]
        unknown = {at - self.low for at in self.unknown}
        # a difference has a scale of its own
        unit = 1.0 if self.is_ratio or not self.ends else max(abs(self.ends.value), 1e-9)
        try:
            return posterior(self.high - self.low + 1, inside, unknown, spread=SPREAD * unit, unit=unit)
        except ValueError:
            return None

    @property
    def found(self) -> tuple[int, int] | None:
        """The pair of candidates that is most likely to have the step; None before there is a posterior."""
        known = self.posterior
        return self.placed(known.likeliest) if known else None

    def placed(self, pair: tuple[int, int]) -> tuple[int, int]:
        """A pair of the posterior, which counts from the lower end, among all candidates."""
        return pair[0] + self.low, pair[1] + self.low

    def shares(self) -> dict[tuple[int, int], float]:
        """How likely each pair of neighbours has the step."""
        known = self.posterior
        if known is None:
            return {}
        return dict(zip(map(self.placed, known.pairs), known.shares.tolist(), strict=True))

    def measured(self, at: int) -> tuple[float, int] | None:
        """What a candidate has beyond the lower end, on the scale of the search, and of how many rounds."""
        values = [each.value for each in self.rounds if (each.fixed, each.probe) == (self.low, at)]
        return (sum(values) / len(values), len(values)) if values else None

    @property
    def told_from(self) -> float:
        """From where on a change between neighbours of the scan is told, on the scale of the search."""
        values = self.scanned.values()
        return TOLD if self.is_ratio or not values else SPLITS * (max(values) - min(values))

    def shown(self, value: float) -> str:
        """A difference on the scale of the search: `×17.2`, or `+1,200 bytes a call`."""
        return f"×{math.exp(value):.3g}" if self.is_ratio else f"{value:+,.0f} bytes a call"


class EndsError(HarnessError):
    """The ends are the same, or not shown to differ; without an advice if more rounds may show it."""

    exit = Exit.NOTHING_SELECTED


class WrongWayError(UsageError):
    """The good end takes longer than the bad one."""


def scan(search: Search, probe: Probe, say: Callable[[str], object]) -> None:
    """One round of every candidate; where neighbours differ is said."""
    texts = [each.text for each in search.candidates]
    say(f"Scan: one round of {len(texts)} releases.")
    taken = probe.measure("scan", texts, 1)
    known = [at for at, text in enumerate(texts) if not taken.why_not(text)]
    for at, text in enumerate(texts):
        if why := taken.why_not(text):
            search.unknown[at] = why
            say(f"{text} is skipped: {why}")
    if not known:
        raise CannotRunHereError("No release gave a number.", "Its run's report.md says why of each.")
    first = known[0]
    for at in known:
        if logs := taken.differences(texts[at], texts[first]):
            search.scanned[at] = logs[0]
    for pair in pairwise(sorted(search.scanned)):
        step = search.scanned[pair[1]] - search.scanned[pair[0]]
        if abs(step) >= search.told_from and step:
            search.changes.append(FoundChange(pair, step))


def narrow(search: Search, budget: float, probe: Probe, say: Callable[[str], object]) -> None:
    """Verify the ends, and probe until 95 % of the posterior are on one pair, which side by side shows the step too.

    `budget` is in seconds of launches. Raises EndsError and WrongWayError, with the numbers, before any probe;
    CannotRunHereError if an end can't be measured.
    """
    _skip_known(search, say)
    ends = _verify(search, budget, probe, say)
    if _split(search, say):
        ends = _verify(search, budget, probe, say)
    _use_scan(search)
    looks = {(search.low, search.high): ends}
    with _Builder(probe) as builder:
        while search.ended is None:
            known = search.posterior
            if known is None:  # every round of it was lost
                raise CannotRunHereError("The ends gave no rounds in common.", "The runs' reports say why.")
            pair = search.placed(known.likeliest)
            here = looks.setdefault(pair, Looks("pair", (search.text(pair[0]), search.text(pair[1]))))
            search.pair = here.judged
            if known.share >= LIKELY and here.more:
                if not _is_over(search, budget, here.seconds(probe), probe):
                    _look(search, pair, here, builder, say)
            elif known.is_found:
                search.ended = SearchEnd.CONFIRMED if _agrees(search.pair, search.ends) else SearchEnd.FOUND
            else:
                _probe(search, known, budget, builder, say)


def _look(
    search: Search, pair: tuple[int, int], looks: Looks, builder: "_Builder", say: Callable[[str], object]
) -> None:
    """Measure a pair side by side until its next look, or find out that it can't be."""
    for at in pair:
        if at not in (search.low, search.high) and (why := builder.why_not(search.text(at))):
            _skip(search, at, why, say)
            return
    say(f"Side by side: {search.text(pair[0])} and {search.text(pair[1])}, {counted(looks.more, 'round')}.")
    _take(search, pair, looks.look(builder.probe), say)


def _take(search: Search, pair: tuple[int, int], taken: MeasuredEnvironments, say: Callable[[str], object]) -> None:
    """Let rounds of two candidates count; one that gave no number is skipped, unless it is an end."""
    for at in pair:
        if why := taken.why_not(search.text(at)):
            if at in (search.low, search.high):
                raise CannotRunHereError(
                    f"{search.text(at)} cannot be measured: {why}.", "Name another with --good or --bad."
                )
            _skip(search, at, why, say)
            return
    search.rounds += [Round(*pair, value) for value in taken.differences(search.text(pair[1]), search.text(pair[0]))]


def _probe(search: Search, known: Posterior, budget: float, builder: "_Builder", say: Callable[[str], object]) -> None:
    """Measure the candidate that tells most, or find out that it cannot be."""
    probe = builder.probe
    (at,) = (at + search.low for at in known.next_probes())
    rounds = known.rounds()
    if _is_over(search, budget, probe.estimated(2, rounds), probe):
        return
    text, fixed = search.text(at), search.text(search.low)
    if why := builder.why_not(text):
        _skip(search, at, why, say)
        return
    left = sum(share > 0.01 for share in known.shares)
    say(f"Probe: {text}, {rounds} {'round' if rounds == 1 else 'rounds'}; the step is at one of {left} places.")
    for value in (0.0, known.step) if builder.is_parallel else ():
        guess = Search(
            search.candidates,
            search.low,
            search.high,
            is_ratio=search.is_ratio,
            ends=search.ends,
            rounds=[*search.rounds, Round(search.low, at, value)],
            unknown=dict(search.unknown),
        ).posterior
        if guess and not guess.is_found:
            builder.begin([search.text(each + search.low) for each in guess.next_probes(1)])
    _take(search, (search.low, at), probe.measure("probe", [fixed, text], rounds), say)


def _skip_known(search: Search, say: Callable[[str], object]) -> None:
    for at, each in enumerate(search.candidates):
        if each.unknown and at not in search.unknown and at not in (search.low, search.high):
            _skip(search, at, each.unknown, say)


def _skip(search: Search, at: int, why: str, say: Callable[[str], object]) -> None:
    search.unknown[at] = why
    say(f"{search.text(at)} is skipped: {why}.")


def _is_over(search: Search, budget: float, seconds: float, probe: Probe) -> bool:
    if probe.spent + seconds <= budget:
        return False
    search.ended = SearchEnd.BUDGET
    return True


def _verify(search: Search, budget: float, probe: Probe, say: Callable[[str], object]) -> Looks:
    """Measure the ends until they are shown to differ. Raises EndsError and WrongWayError with the numbers."""
    first, last = search.text(search.low), search.text(search.high)
    for text in (first, last):
        if why := probe.why_not(text):
            raise CannotRunHereError(f"The end {text} cannot be measured: {why}.", "Name another with --good or --bad.")
    looks = Looks("ends", (first, last))
    most = probe.spent + OF_ENDS * (budget - probe.spent)
    while looks.more:
        if looks.judged and probe.spent + looks.seconds(probe) > most:
            break
        say(f"Verifying the ends: {first} and {last}, {counted(looks.more, 'round')}.")
        _take(search, (search.low, search.high), looks.look(probe), say)
    ends = looks.judged
    if ends is None:
        raise CannotRunHereError(f"{first} and {last} have no round in common.", "The run's report.md says why.")
    search.ends = ends
    good, bad = (last, first) if search.is_fix else (first, last)
    if not ends.is_step:
        raise EndsError(
            f"{good} and {bad} {ends.relation}: {ends.words}.{_between(search)}",
            "" if looks.more else "Name other ends with --good and --bad.",
        )
    if search.is_reversed:
        raise WrongWayError(
            f"{bad} is not worse than {good}: {ends.words}.{_between(search)}",
            f"If the ends were swapped: --good {bad} --bad {good}",
        )
    return looks


def _agrees(pair: LookResult | None, ends: LookResult | None) -> bool:
    """Whether two neighbours differ as the ends do."""
    return bool(pair and ends and pair.is_step and (pair.step > 0.0) == (ends.step > 0.0))


def told(search: Search, change: FoundChange) -> str:
    """`×17.2 from tf2.15 to tf2.16`."""
    first, last = change.pair
    return f"{search.shown(change.step)} from {search.text(first)} to {search.text(last)}"


def _between(search: Search) -> str:
    """A sentence on what a scan saw between ends that are alike."""
    if not search.changes:
        return ""
    changes = "; ".join(told(search, each) for each in search.changes)
    return f" Between them the scan saw, in one round: {changes}."


def _split(search: Search, say: Callable[[str], object]) -> bool:
    """Leave of the ends what has no large change the other way, as far as the scan saw; whether that is less."""
    inside = [at for at in sorted(search.scanned) if search.low <= at <= search.high]
    if len(inside) < 3:
        return False
    step = search.scanned[inside[-1]] - search.scanned[inside[0]]
    sign, enough = (1.0 if step > 0.0 else -1.0), max(search.told_from, SPLITS * abs(step))
    parts: list[list[int]] = [[inside[0]]]
    for before, at in pairwise(inside):
        if sign * (search.scanned[at] - search.scanned[before]) < -enough:
            parts.append([])
        parts[-1].append(at)
    if len(parts) == 1:
        return False

    def largest(part: Sequence[int]) -> float:
        return max((sign * (search.scanned[b] - search.scanned[a]) for a, b in pairwise(part)), default=0.0)

    best = max(parts, key=largest)
    search.low, search.high = best[0], best[-1]
    say(
        f"The releases are not monotone, so only {search.text(search.low)} to {search.text(search.high)} is searched, "
        "which has the largest change."
    )
    return True


def _use_scan(search: Search) -> None:
    """Let the scan's rounds count for the search."""
    known = search.scanned
    inside = [at for at in known if search.low < at <= search.high] if search.low in known else []
    search.rounds += [Round(search.low, at, known[at] - known[search.low], is_scan=True) for at in inside]


class _Builder:
    """Makes environments: beforehand, in a thread, while something is measured, where there are CPUs for both."""

    def __init__(self, probe: Probe, cpus: int | None = None) -> None:
        self.probe = probe
        count = cpus or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(1) if count >= CPUS_TO_BUILD else None
        self._begun: dict[str, Future[str]] = {}

    def __enter__(self) -> "_Builder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def is_parallel(self) -> bool:
        """Whether it makes environments while something is measured."""
        return self._pool is not None

    def begin(self, texts: Sequence[str]) -> None:
        """Make these while something is measured; nothing on a machine with too few CPUs for that."""
        for text in texts if self._pool else ():
            if self._pool and text not in self._begun:
                self._begun[text] = self._pool.submit(self.probe.why_not, text, alone=False)

    def why_not(self, text: str) -> str:
        """Why an environment cannot be had; it is made now, if it was not begun."""
        begun = self._begun.get(text)
        return begun.result() if begun else self.probe.why_not(text)
