"""A simulated machine: launches in the order in which a run makes them, on a machine whose speed drifts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Drift(StrEnum):
    """How the machine's speed changes while a run goes on; each moves it by some 10 %."""

    NONE = "none"
    LINEAR = "linear"
    STEPS = "steps"
    PERIODIC = "periodic"


class Spread(StrEnum):
    """Whether launches of all cells scatter alike, or each cell's from a third of that to three times."""

    EQUAL = "equal"
    UNEQUAL = "unequal"


@dataclass(frozen=True, slots=True)
class Mixture:
    """A `share` of each compared cell's launches is slower by `slower` (0.2: 20 %); none of the reference's."""

    share: float
    slower: float

    @property
    def mean(self) -> float:
        """By how much it raises the mean of the logs."""
        return float(self.share * np.log1p(self.slower))


@dataclass(frozen=True, slots=True)
class Table:
    """What a run would find: `groups` groups of `others` cells, each compared with the group's reference.

    `sigma` is the standard deviation of the logs of launches of one cell. `effect` is the true log-ratio of every
    comparison, time(reference) / time(cell).
    """

    groups: int
    others: int
    sigma: float
    spread: Spread = Spread.EQUAL
    drift: Drift = Drift.NONE
    effect: float = 0.0
    mixture: Mixture | None = None

    @property
    def comparisons(self) -> int:
        """How many comparisons the table has."""
        return self.groups * self.others

    @property
    def truth(self) -> float:
        """The log-ratio that an interval should hold."""
        return self.effect - (self.mixture.mean if self.mixture else 0.0)


def table(comparisons: int, sigma: float, **changes: object) -> Table:
    """A table of 1, 4, 16, 32 or 128 comparisons: groups of some environments, as in a matrix."""
    groups, others = {1: (1, 1), 4: (2, 2), 16: (4, 4), 32: (8, 4), 128: (16, 8)}[comparisons]
    return Table(groups, others, sigma, **changes)  # type: ignore[arg-type]


def launches(table: Table, rounds: int, draw: np.random.Generator) -> Floats:
    """Logs of centres, shape (groups, others + 2, rounds): the others, the reference, and its second launch.

    Round by round, group by group, each group's launches in a random order, as the harness makes them.
    """
    cells = table.others + 2
    logs = draw.normal(size=(table.groups, cells, rounds)) * _sigmas(table, draw)[:, :, None]
    logs[:, : table.others] -= table.effect
    if table.mixture:
        hit = draw.random((table.groups, table.others, rounds)) < table.mixture.share
        logs[:, : table.others] += hit * np.log1p(table.mixture.slower)
    places = draw.permuted(np.tile(np.arange(cells), (rounds, table.groups, 1)), axis=2)
    begun = np.arange(rounds * table.groups).reshape(rounds, table.groups, 1) * cells
    times = (begun + places) / (rounds * table.groups * cells)
    drifting = drift(table.drift, rounds, draw)
    return logs + np.moveaxis(drifting(times), 0, -1)


def blocks(table: Table, rounds: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Logs of centres of two cells measured one after the other, as other tools do: two arrays of shape (rounds,)."""
    first, second = np.arange(rounds) / (2 * rounds), 0.5 + np.arange(rounds) / (2 * rounds)
    drifting = drift(table.drift, rounds, draw)
    one, other = (draw.normal(size=rounds) * table.sigma + drifting(times) for times in (first, second))
    if table.mixture:
        other = other + (draw.random(rounds) < table.mixture.share) * np.log1p(table.mixture.slower)
    return one, other - table.effect


def drift(kind: Drift, rounds: int, draw: np.random.Generator) -> Callable[[Floats], Floats]:
    """How much slower, on the log scale, the machine is at a time from 0 to 1 (the whole run)."""
    if kind is Drift.LINEAR:
        return lambda times: 0.1 * times
    if kind is Drift.STEPS:
        at, height = draw.random(3), draw.choice([-0.05, 0.05], 3)
        return lambda times: np.asarray((times[..., None] > at) @ height)
    if kind is Drift.PERIODIC:
        # from half a round to four rounds long: what an order that is no draw would mistake for a difference
        waves, phase = rounds / draw.uniform(0.5, 4.0), draw.random()
        return lambda times: np.asarray(0.05 * np.sin(2.0 * np.pi * (waves * times + phase)))
    return np.zeros_like


def _sigmas(table: Table, draw: np.random.Generator) -> Floats:
    """Each cell's own standard deviation, shape (groups, others + 2): the reference's two launches share theirs."""
    shape = (table.groups, table.others + 1)
    sigmas = np.full(shape, table.sigma)
    if table.spread is Spread.UNEQUAL:
        sigmas = table.sigma * np.exp(draw.uniform(-np.log(3.0), np.log(3.0), shape))
    return np.concatenate([sigmas, sigmas[:, -1:]], axis=1)
