"""Searches for a step among candidates, on simulated launches, with harness and with plain bisection.

Only launches are simulated. The search and its verdicts are the code in harness/bisect. Instead of measuring, it gets
launches from `Machine`, in the form in which a run stores them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bench.simulation.machine import Floats
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.results import Results
from harness.bisect.candidates import Candidate
from harness.bisect.probe import COMPARING
from harness.bisect.search import EqualEndpointsError, ReversedEndpointsError, Search, SearchEnd, narrow, scan
from harness.model.backend import BackendFacts
from harness.model.environment import Device
from harness.model.launch import Launch, Limits, Sample, Sampling, Status
from harness.model.run import Group, Plan, Run
from harness.model.scenario import Cell
from harness.paired.comparison import PairedRun

#: The budget of a search: the launches of 60 paired rounds.
BUDGET = 120

#: The rounds in which plain bisection measures the end points, and at the end the pair that it found.
VERDICT = 5


@dataclass(frozen=True, slots=True)
class SearchKind:
    """A search among `count` candidates, with a `step` (log scale) at a random place.

    `spread` is the standard deviation of a paired round. `heavy`: the noise of launches has Student's t distribution
    with 3 degrees of freedom. `own` is the standard deviation of the additional difference of each candidate or, if it
    `drifts`, of its difference from the previous candidate. `scanned`: each candidate is launched once before the
    search, as for releases.
    """

    count: int
    step: float = 0.0
    spread: float = 0.03
    heavy: bool = False
    own: float = 0.0
    drifts: bool = False
    scanned: bool = False


class End(StrEnum):
    """The possible results of a search."""

    RIGHT = "right"
    WRONG = "wrong"
    RIGHT_WARNED = "right, with a warning"
    WRONG_WARNED = "wrong, with a warning"
    REFUSED = "refused at the ends"


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The share of searches with each result, and the number of paired rounds and launches of each search."""

    ends: Mapping[End, float]
    rounds: Sequence[int]
    launches: Sequence[int]

    @property
    def right(self) -> float:
        """The share of searches that named the right pair, with or without a warning."""
        return self.ends[End.RIGHT] + self.ends[End.RIGHT_WARNED]


def search(kind: SearchKind, trials: int, *, seed: int, budget: float = BUDGET, plain: int = 0) -> SearchResults:
    """Simulate `trials` searches. `plain`: the rounds per candidate in plain bisection, or 0 for harness."""
    draw = np.random.default_rng(seed)
    ends: list[End] = []
    machines: list[Machine] = []
    for _ in range(trials):
        machine = Machine(kind, draw)
        if plain:
            ends.append(End.RIGHT if bisect_step(kind.count, machine.paired, plain) == machine.place else End.WRONG)
        else:
            ends.append(search_step(kind, machine, budget))
        machines.append(machine)
    return SearchResults(
        {end: ends.count(end) / trials for end in End},
        [entry.rounds for entry in machines],
        [int(entry.spent) for entry in machines],
    )


class Machine:
    """Measures simulated candidates: those after `place` take longer by the step.

    It replaces the `Probe` of a search (harness/bisect/probe.py). A launch takes 1 s. `rounds` counts paired rounds.
    The rounds of a scan, which has 1 launch of each candidate, don't count.
    """

    def __init__(self, kind: SearchKind, draw: np.random.Generator) -> None:
        # without a step, no pair is right
        self.place = int(draw.integers(kind.count - 1)) if kind.step else -1
        self.spent = 0.0
        self.rounds = 0
        self.say = lambda _: None
        self._kind, self._draw = kind, draw
        own = kind.own * draw.normal(size=kind.count)
        beyond = np.arange(kind.count) > self.place
        self._logs = kind.step * beyond + (np.cumsum(own) if kind.drifts else own)

    def measure(self, kind: str, texts: Sequence[str], rounds: int, earlier: PairedRun | None = None) -> PairedRun:
        """Return a run of `rounds` rounds. In a comparison, the first candidate is launched twice per round."""
        earlier_launches = earlier.results.launches if earlier else []
        first = max((launch.round for launch in earlier_launches), default=0)
        cells = [Cell("simulated", text, Device.CPU, {}) for text in texts]
        group = Group("all", "simulated", Device.CPU, {}, cells, control=cells[0] if kind in COMPARING else None)
        plan = Plan([group], rounds, 0, Sampling(), Limits(), piloted=False)
        run = Run("simulated", "", [], "", plan, texts[0], [], [], BackendFacts("simulated"), {})
        slots = group.slots
        logs = np.array([self._logs[int(cell.environment)] for cell, _ in slots])
        drawn = np.exp(logs + self._noise((rounds - first, len(slots))))
        launches = [
            Launch(
                status=Status.OK,
                samples=[Sample(seconds, 1)],
                group=group.name,
                round=number,
                attempt=0,
                order=0,
                role=role,
                cell=cell,
                started="",
            )
            for number, row in enumerate(drawn.tolist(), start=first + 1)
            for (cell, role), seconds in zip(slots, row, strict=True)
        ]
        self.spent += len(launches)
        self.rounds += (rounds - first) * (kind != "scan")
        return PairedRun(Results(run, [*earlier_launches, *launches]), {text: text for text in texts})

    def why_not(self, text: str) -> str:
        """Return no reason: every candidate can be built."""
        return ""

    def estimated(self, environments: int, rounds: int, *, with_control: bool = False) -> float:
        """Return the seconds that these rounds of these candidates take."""
        return rounds * (environments + with_control)

    def paired(self, fixed: int, probe: int, times: int) -> Floats:
        """Return the log ratios of `rounds` paired rounds, for plain bisection."""
        return np.array(self.measure("plain", [str(fixed), str(probe)], times).differences(str(probe), str(fixed)))

    def _noise(self, shape: tuple[int, ...]) -> Floats:
        """Return the noise of a launch. The ratio of two such launches has the standard deviation `spread`."""
        noise = self._draw.standard_t(3, shape) / math.sqrt(3.0) if self._kind.heavy else self._draw.normal(size=shape)
        return np.asarray(self._kind.spread / math.sqrt(2.0) * noise)


def search_step(kind: SearchKind, machine: Machine, budget: float) -> End:
    """Search for a slowdown with the code of harness."""
    state = Search([Candidate(str(at)) for at in range(kind.count)], 0, kind.count - 1)
    try:
        if kind.scanned:
            scan(state, machine)
        narrow(state, budget, machine)
    except (EqualEndpointsError, ReversedEndpointsError):
        return End.REFUSED
    is_right = state.found == (machine.place, machine.place + 1)
    if state.ended is SearchEnd.CONFIRMED:
        return End.RIGHT if is_right else End.WRONG
    return End.RIGHT_WARNED if is_right else End.WRONG_WARNED


#: Measures a candidate and another one for some rounds, and returns the log ratios.
Measure = Callable[[int, int, int], Floats]


def bisect_step(count: int, measure: Measure, times: int) -> int:
    """Search with plain bisection: a candidate is after the step if its mean is nearer to the end point's than to 0."""
    end = float(measure(0, count - 1, VERDICT).mean())
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if float(measure(0, middle, times).mean()) / end < 0.5:
            low = middle
        else:
            high = middle
    measure(low, high, VERDICT)
    return low


def print_searches(pool: ProcessPoolExecutor, trials: int, seed: int) -> None:
    """Print how searches end, with harness and with plain bisection."""
    print("\n## Bisection\n")
    releases, wheels = SearchKind(26, scanned=True), SearchKind(166)
    sizes = list(product((releases, wheels), (0.0, 0.05, 0.10, 0.50, 9.0), (0.01, 0.03, 0.06)))
    kinds = [replace(kind, step=math.log1p(step), spread=spread) for kind, step, spread in sizes]
    outcomes, plain = (pool.map(partial(search, trials=trials, seed=seed, plain=rounds), kinds) for rounds in (0, 5))
    heads = ["candidates", "step", "standard deviation of a round", *END_HEADS, "plain bisection: right"]
    rows = (
        [
            *_format_search(kind),
            f"{kind.spread:.0%}",
            *_format_ends(one),
            f"{format_percent(other.right)} in {_format_median(other.launches)}",
        ]
        for kind, one, other in zip(kinds, outcomes, plain, strict=True)
    )
    print_table(heads, rows)
    print()
    owns = [
        (label, replace(base, step=math.log1p(step), **dict(changes)))
        for base, step, (label, changes) in product(
            (releases, replace(releases, scanned=False)), (0.2, 0.1, 0.05), OWNS.items()
        )
    ]
    outcomes = pool.map(partial(search, trials=trials, seed=seed), [kind for _, kind in owns])
    rows = (
        [*_format_search(kind), label, *_format_ends(figures)]
        for (label, kind), figures in zip(owns, outcomes, strict=True)
    )
    print_table(["candidates", "step", "other differences", *END_HEADS], rows)


#: The headings of the columns that show how searches ended.
END_HEADS = ["right", "wrong", "right, with a warning", "wrong, with a warning", "refused", "rounds", "launches"]

#: Other differences between releases than the step, by name. Rounds have a standard deviation of 3 %.
OWNS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "Student's t, 3 degrees of freedom": {"heavy": True},
    "each ± 1 % at random": {"own": 0.01},
    "each ± 2 % at random": {"own": 0.02},
    "a drift of 1 % each": {"own": 0.01, "drifts": True},
}


def _format_search(kind: SearchKind) -> list[str]:
    step = math.exp(kind.step)
    return [f"{kind.count}{', scanned' if kind.scanned else ''}", f"×{step:g}" if step >= 2.0 else f"{step - 1.0:.0%}"]


def _format_ends(figures: SearchResults) -> list[str]:
    return [
        *(format_percent(figures.ends[end]) for end in End),
        _format_median(figures.rounds),
        _format_median(figures.launches),
    ]


def _format_median(counts: Sequence[int]) -> str:
    """Format the median and the 95th percentile: `16 (37)`."""
    ordered = sorted(counts)
    return f"{ordered[len(ordered) // 2]} ({ordered[math.ceil(0.95 * len(ordered)) - 1]})"
