"""A simulated machine: launches in the order in which a run makes them, on a machine whose speed drifts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Any

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
    """Whether launches of all cells scatter alike, each cell's from a third of that to three times, or group by group.

    `GROUPS`: the cells of one group scatter alike, by twice, half, or once `sigma`, one group after the other. `KINDS`:
    one cell in three of a group, never the reference, scatters by `Table.loud` times as much as the others. `ONE`: the
    first cell of the table does. `REFERENCE`: each reference does.
    """

    EQUAL = "equal"
    UNEQUAL = "unequal"
    GROUPS = "groups"
    KINDS = "kinds"
    ONE = "one"
    REFERENCE = "reference"


#: What `Spread.GROUPS` multiplies the groups' spreads with: the first is the noisiest.
FACTORS = (2.0, 0.5, 1.0)


class Noise(StrEnum):
    """How launches of one cell scatter: where they are not normal, those of all cells alike."""

    NORMAL = "normal"
    HEAVY = "Student's t, 3 degrees of freedom"
    SKEWED = "exponential"
    MODES = "every 5th launch is slower by 5 standard deviations"


class Against(StrEnum):
    """What a cell is compared with: the reference, which is launched twice a round, or one that is launched once."""

    REFERENCE = "reference"
    ANOTHER = "another"


@dataclass(frozen=True, slots=True)
class Mixture:
    """A `share` of each compared cell's launches is slower by `slower` (0.2: 20 %).

    None of the reference's, unless launches `everywhere` are.
    """

    share: float
    slower: float
    everywhere: bool = False

    @property
    def mean(self) -> float:
        """By how much it raises the mean of a compared cell's logs above the reference's."""
        return 0.0 if self.everywhere else float(self.share * np.log1p(self.slower))


@dataclass(frozen=True, slots=True)
class Table:
    """What a run would find: `groups` groups of `others` cells and a reference, all of them equally fast.

    `sigma` is the standard deviation of the logs of launches of one cell. Each of a group's others is compared with its
    reference, or each second one with the one before it. In `turns` all launches of a group's round meet the same
    machine. Where cells scatter by different amounts, the samples within launches do too if `seen`, and alike if not.

    If `memory` is above 0, the machine's speed is also an AR(1) process with a standard deviation of 5 %: after that
    many rounds, its correlation is 1/e. Each launch of the first round is slower by its own share, uniform up to
    `first`. Logs of centres are rounded to multiples of `resolution`.
    """

    groups: int
    others: int
    sigma: float
    spread: Spread = Spread.EQUAL
    drift: Drift = Drift.NONE
    noise: Noise = Noise.NORMAL
    against: Against = Against.REFERENCE
    mixture: Mixture | None = None
    turns: bool = False
    loud: float = 5.0
    seen: bool = True
    memory: float = 0.0
    first: float = 0.0
    resolution: float = 0.0

    @property
    def per_group(self) -> int:
        """How many comparisons a group has."""
        return self.others if self.against is Against.REFERENCE else self.others // 2

    @property
    def comparisons(self) -> int:
        """How many comparisons the table has."""
        return self.groups * self.per_group

    @property
    def truth(self) -> float:
        """The log-ratio that an interval should hold."""
        return -self.mixture.mean if self.mixture else 0.0


#: Noise that the rules may not expect, by name: what each changes of a `table` whose launches scatter by 3 %.
UNEXPECTED: Mapping[str, Mapping[str, Any]] = {
    "normal": {},
    "Student's t, 3 degrees of freedom": {"noise": Noise.HEAVY},
    "exponential": {"noise": Noise.SKEWED},
    "every 5th launch is slower by 5 standard deviations": {"noise": Noise.MODES},
    "AR(1), correlation 1/e after 1.5 rounds": {"memory": 1.5},
    "AR(1), correlation 1/e after 0.25 rounds": {"memory": 0.25},
    "10 % slower over the run": {"drift": Drift.LINEAR},
    "first round slower by up to 5 %": {"first": 0.05},
    "first round slower by up to 10 %": {"first": 0.10},
    "rounded to 1 %": {"sigma": 0.005, "resolution": 0.01},
    "rounded to 3 %": {"sigma": 0.005, "resolution": 0.03},
    "two modes 1:1, 3 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.5, 0.03, everywhere=True)},
    "two modes 1:1, 8 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.5, 0.08, everywhere=True)},
    "two modes 4:1, 8 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.2, 0.08, everywhere=True)},
    "two modes 1:1, 8 % apart, not the reference": {"sigma": 0.005, "mixture": Mixture(0.5, 0.08)},
    "two modes 4:1, 8 % apart, not the reference": {"sigma": 0.005, "mixture": Mixture(0.2, 0.08)},
    "the references vary 3 times as much": {"spread": Spread.REFERENCE, "loud": 3.0, "seen": False},
    "one cell varies 3 times as much, for its launches and its samples": {"spread": Spread.ONE, "loud": 3.0},
    "one cell varies 5 times as much, for its launches and its samples": {"spread": Spread.ONE, "loud": 5.0},
    "one cell varies 3 times as much, for its launches only": {"spread": Spread.ONE, "loud": 3.0, "seen": False},
    "one cell varies 5 times as much, for its launches only": {"spread": Spread.ONE, "loud": 5.0, "seen": False},
}


def table(comparisons: int, sigma: float, *, against: Against = Against.REFERENCE, **changes: object) -> Table:
    """A table of 1, 4, 16, 32 or 128 comparisons: groups of some environments, as in a matrix."""
    groups, others = {1: (1, 1), 4: (2, 2), 16: (4, 4), 32: (8, 4), 128: (16, 8)}[comparisons]
    others *= 1 if against is Against.REFERENCE else 2
    return Table(groups, others, sigma, against=against, **changes)  # type: ignore[arg-type]


def launches(table: Table, rounds: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Logs of centres, shape (groups, others + 2, rounds): the others, the reference, and its second launch.

    Round by round, group by group, each group's launches in a random order, as the harness makes them. Last, what the
    samples of a launch, five of them, show that it scatters by: the median over the rounds, shape (groups, others + 2).
    """
    cells = table.others + 2
    sigmas = _sigmas(table, draw)
    logs = _noise(table.noise, (table.groups, cells, rounds), draw) * sigmas[:, :, None]
    if table.mixture:
        mixed = cells if table.mixture.everywhere else table.others
        hit = draw.random((table.groups, mixed, rounds)) < table.mixture.share
        logs[:, :mixed] += hit * np.log1p(table.mixture.slower)
    places = draw.permuted(np.tile(np.arange(cells), (rounds, table.groups, 1)), axis=2)
    if table.turns:
        places = np.full_like(places, cells // 2)
    begun = np.arange(rounds * table.groups).reshape(rounds, table.groups, 1) * cells
    times = (begun + places) / (rounds * table.groups * cells)
    drifting = drift(table.drift, rounds, draw)
    within = np.median(np.sqrt(draw.chisquare(4.0, logs.shape) / 4.0), axis=2) * (sigmas if table.seen else table.sigma)
    logs += np.moveaxis(drifting(times), 0, -1)
    if table.memory:
        logs += np.moveaxis(_remembered(times * rounds / table.memory, draw), 0, -1)
    if table.first:
        logs[:, :, 0] += np.log1p(draw.uniform(0.0, table.first, logs.shape[:2]))
    if table.resolution:
        at = draw.random()
        logs = (np.round(logs / table.resolution + at) - at) * table.resolution
    return logs, within


def _remembered(times: Floats, draw: np.random.Generator) -> Floats:
    """An AR(1) process with a standard deviation of 5 %, whose correlation is 1/e after a time of 1."""
    order = np.argsort(times, axis=None)
    kept = np.exp(-np.diff(times.ravel()[order], prepend=-np.inf))
    steps = draw.normal(size=kept.size) * 0.05 * np.sqrt(1.0 - kept**2)
    values = np.empty(kept.size)
    pairs = zip(kept.tolist(), steps.tolist(), strict=True)
    values[order] = list(accumulate(pairs, lambda before, pair: before * pair[0] + pair[1], initial=0.0))[1:]  # type: ignore[misc, index]
    return values.reshape(times.shape)


def _noise(kind: Noise, shape: tuple[int, ...], draw: np.random.Generator) -> Floats:
    """What launches scatter by, in units of `sigma`; of `MODES`, without the modes."""
    if kind is Noise.HEAVY:
        return np.asarray(draw.standard_t(3, shape) / np.sqrt(3.0))
    if kind is Noise.SKEWED:
        return draw.exponential(size=shape)
    normal = draw.normal(size=shape)
    return normal + 5.0 * (draw.random(shape) < 0.2) if kind is Noise.MODES else normal


def blocks(table: Table, rounds: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Logs of centres of two cells measured one after the other, as other tools do: two arrays of shape (rounds,)."""
    first, second = np.arange(rounds) / (2 * rounds), 0.5 + np.arange(rounds) / (2 * rounds)
    drifting = drift(table.drift, rounds, draw)
    one, other = (draw.normal(size=rounds) * table.sigma + drifting(times) for times in (first, second))
    if table.mixture:
        other = other + (draw.random(rounds) < table.mixture.share) * np.log1p(table.mixture.slower)
    return one, other


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
        sigmas *= np.exp(draw.uniform(-np.log(3.0), np.log(3.0), shape))
    elif table.spread is Spread.GROUPS:
        sigmas *= np.resize(FACTORS, table.groups)[:, None]
    elif table.spread is Spread.KINDS:
        sigmas[:, :-1:3] *= table.loud
    elif table.spread is Spread.ONE:
        sigmas[0, 0] *= table.loud
    elif table.spread is Spread.REFERENCE:
        sigmas[:, -1] *= table.loud
    return np.concatenate([sigmas, sigmas[:, -1:]], axis=1)
