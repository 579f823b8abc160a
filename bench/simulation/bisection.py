"""A search for a step among candidates, on simulated rounds: the harness's, and plain bisection beside it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.simulation.machine import Floats
from harness.upstream.bisection import Round, posterior

#: What a whole verdict has of rounds: of the ends before a search, and of the pair that it found.
VERDICT = 5
#: No search is given more.
MOST = 300


@dataclass(frozen=True, slots=True)
class Found:
    """Of many searches: how many said the right pair and how many a wrong one (the others ended undecided), and the
    mean numbers of rounds and of candidates that one took.
    """

    right: float
    wrong: float
    rounds: float
    candidates: float


#: Measures a candidate against another for some rounds, and gives their values.
Measure = Callable[[int, int, int], Floats]


def search(
    count: int, step: float, spread: float, trials: int, *, seed: int, plain: int = 0, heavy: bool = False
) -> Found:
    """Search for a step (log scale) at a place drawn at random; `plain`: by bisection with so many rounds a probe.

    `spread` is the standard deviation of a paired round. `heavy`: it scatters by Student's t with 3 degrees of freedom.
    """
    draw = np.random.default_rng(seed)
    said: list[bool] = []
    rounds: list[int] = []
    seen: list[int] = []
    for _ in range(trials):
        machine = Machine(int(draw.integers(count - 1)), step, spread, draw, heavy)
        last = bisected(count, machine, plain) if plain else searched(count, machine)
        if last is not None:
            said.append(last == machine.place)
        rounds.append(machine.rounds)
        seen.append(len(machine.seen))
    return Found(sum(said) / trials, (len(said) - sum(said)) / trials, sum(rounds) / trials, sum(seen) / trials)


class Machine:
    """Measures candidates of which those after `place` take longer by `step`, on the log scale."""

    def __init__(self, place: int, step: float, spread: float, draw: np.random.Generator, heavy: bool) -> None:
        self.place = place
        self.rounds = 0
        self.seen: set[int] = set()
        self._step, self._spread, self._draw, self._heavy = step, spread, draw, heavy

    def __call__(self, fixed: int, probe: int, times: int) -> Floats:
        """The values of so many rounds."""
        self.rounds += times
        self.seen |= {fixed, probe}
        noise = self._draw.standard_t(3, times) / math.sqrt(3.0) if self._heavy else self._draw.normal(size=times)
        return np.asarray(self._step * (int(probe > self.place) - int(fixed > self.place)) + self._spread * noise)


def searched(count: int, measure: Measure) -> int | None:
    """The harness's search: the last candidate before the step, after a verdict on the pair; None where undecided."""
    rounds: list[Round] = []

    def probe(fixed: int, candidate: int, times: int) -> None:
        rounds.extend(Round(fixed, candidate, value) for value in measure(fixed, candidate, times).tolist())

    probe(0, count - 1, VERDICT)
    confirmed: set[tuple[int, int]] = set()
    while len(rounds) < MOST:
        found = posterior(count, rounds)
        if found.is_found and found.likeliest in confirmed:
            return found.likeliest[0]
        if found.is_found:
            confirmed.add(found.likeliest)
            probe(*found.likeliest, VERDICT)
        else:
            (candidate,) = found.next_probes()
            probe(0, candidate, found.rounds())
    return None


def bisected(count: int, measure: Measure, times: int) -> int:
    """Plain bisection: a candidate lies beyond the step if the mean of its rounds is nearer to the end's than to 0."""
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
