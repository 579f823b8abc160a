"""A simulated machine whose speed drifts, and its launches in the order of a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Drift(StrEnum):
    """The kinds of drift of the machine's speed during a run. Each changes the speed by about 10 %."""

    NONE = "none"
    LINEAR = "linear"
    STEPS = "steps"
    PERIODIC = "periodic"


class Spread(StrEnum):
    """The variability of the cells, relative to the standard deviation `sigma`.

    `EQUAL`: all cells have `sigma`. `UNEQUAL`: each cell has a third of `sigma` to three times `sigma`. `GROUPS`: all
    cells of a group have the same, by turns twice, half and once `sigma`. `KINDS`: one of three cells of a group, never
    the baseline, has `Table.loud` times `sigma`. `ONE`: the first cell of the table has it. `REFERENCE`: each baseline
    has it.
    """

    EQUAL = "equal"
    UNEQUAL = "unequal"
    GROUPS = "groups"
    KINDS = "kinds"
    ONE = "one"
    REFERENCE = "reference"


#: The factors on `sigma` for the groups in `Spread.GROUPS`. The first group varies most.
FACTORS = (2.0, 0.5, 1.0)


class Noise(StrEnum):
    """The distribution of the launches of a cell. If it isn't normal, all cells have the same variability."""

    NORMAL = "normal"
    HEAVY = "Student's t, 3 degrees of freedom"
    SKEWED = "exponential"
    MODES = "every 5th launch is slower by 5 standard deviations"


class Against(StrEnum):
    """The cell with which a cell is compared: the baseline, launched twice per round, or a cell launched once."""

    REFERENCE = "reference"
    ANOTHER = "another"


@dataclass(frozen=True, slots=True)
class Mixture:
    """A `share` of the launches of each compared cell is slower by `slower` (0.2: 20 %).

    If `everywhere` is true, this also holds for the baseline's launches.
    """

    share: float
    slower: float
    everywhere: bool = False

    @property
    def mean(self) -> float:
        """The increase of the mean log of a compared cell, relative to the baseline."""
        return 0.0 if self.everywhere else float(self.share * np.log1p(self.slower))


@dataclass(frozen=True, slots=True)
class Table:
    """A table to simulate: `groups` groups, each with a baseline and `others` other cells, all equally fast.

    `sigma` is the standard deviation of the logs of a cell's launches. Each of the other cells is compared with its
    baseline, or every second cell with the one before it. In `turns`, the machine has the same speed for all launches
    of a group in a round. If cells have different variability, the samples within launches show it if `seen` is true.

    If `memory` is above 0, the machine's speed is also an AR(1) process with a standard deviation of 5 %. After
    `memory` rounds, its correlation is 1/e. Each launch of the first round is slower by a random share, uniform up to
    `first`. Logs of launch means are rounded to multiples of `resolution`. A share of launches, `missing`, fails: their
    logs are NaN.
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
    missing: float = 0.0

    @property
    def per_group(self) -> int:
        """The number of comparisons per group."""
        return self.others if self.against is Against.REFERENCE else self.others // 2

    @property
    def comparisons(self) -> int:
        """The number of comparisons in the table."""
        return self.groups * self.per_group

    @property
    def truth(self) -> float:
        """The true log ratio, which an interval should contain."""
        return -self.mixture.mean if self.mixture else 0.0


#: Noise that violates assumptions of the rules, by name, as arguments of `table`. Launches have a deviation of 3 %.
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
    "two modes 1:1, 5 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.5, 0.05, everywhere=True)},
    "two modes 1:1, 8 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.5, 0.08, everywhere=True)},
    "two modes 4:1, 8 % apart, all cells": {"sigma": 0.005, "mixture": Mixture(0.2, 0.08, everywhere=True)},
    "two modes 1:1, 8 % apart, not the baseline": {"sigma": 0.005, "mixture": Mixture(0.5, 0.08)},
    "two modes 4:1, 8 % apart, not the baseline": {"sigma": 0.005, "mixture": Mixture(0.2, 0.08)},
    "5 % of launches fail": {"missing": 0.05},
    "10 % of launches fail": {"missing": 0.10},
    "the baselines vary 3 times as much": {"spread": Spread.REFERENCE, "loud": 3.0, "seen": False},
    "one cell varies 3 times as much, for its launches and its samples": {"spread": Spread.ONE, "loud": 3.0},
    "one cell varies 5 times as much, for its launches and its samples": {"spread": Spread.ONE, "loud": 5.0},
    "one cell varies 3 times as much, for its launches only": {"spread": Spread.ONE, "loud": 3.0, "seen": False},
    "one cell varies 5 times as much, for its launches only": {"spread": Spread.ONE, "loud": 5.0, "seen": False},
}


def table(comparisons: int, sigma: float, *, against: Against = Against.REFERENCE, **changes: object) -> Table:
    """Return a table of 1, 4, 16, 32 or 128 comparisons, in groups of a few environments, as in a matrix."""
    groups, others = {1: (1, 1), 4: (2, 2), 16: (4, 4), 32: (8, 4), 128: (16, 8)}[comparisons]
    others *= 1 if against is Against.REFERENCE else 2
    return Table(groups, others, sigma, against=against, **changes)  # type: ignore[arg-type]


def launches(table: Table, rounds: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the logs of launch means, and the variability that samples within launches show.

    The logs have the shape (groups, others + 2, rounds): the other cells, the baseline, and its second launch. As in
    harness, launches are in a random order within each group, group by group and round by round. The variability has
    the shape (groups, others + 2): the median over rounds of the standard deviation of five samples.
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
    if table.missing:
        logs[draw.random(logs.shape) < table.missing] = np.nan
    return logs, within


def _remembered(times: Floats, draw: np.random.Generator) -> Floats:
    """Return an AR(1) process with a standard deviation of 5 %, whose correlation is 1/e after a time of 1."""
    order = np.argsort(times, axis=None)
    kept = np.exp(-np.diff(times.ravel()[order], prepend=-np.inf))
    steps = draw.normal(size=kept.size) * 0.05 * np.sqrt(1.0 - kept**2)
    values = np.empty(kept.size)
    pairs = zip(kept.tolist(), steps.tolist(), strict=True)
    values[order] = list(accumulate(pairs, lambda before, pair: before * pair[0] + pair[1], initial=0.0))[1:]  # type: ignore[misc, index]
    return values.reshape(times.shape)


def _noise(kind: Noise, shape: tuple[int, ...], draw: np.random.Generator) -> Floats:
    """Return the noise of launches in units of `sigma`; for `MODES`, without the modes."""
    if kind is Noise.HEAVY:
        return np.asarray(draw.standard_t(3, shape) / np.sqrt(3.0))
    if kind is Noise.SKEWED:
        return draw.exponential(size=shape)
    normal = draw.normal(size=shape)
    return normal + 5.0 * (draw.random(shape) < 0.2) if kind is Noise.MODES else normal


def blocks(table: Table, rounds: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the logs of launch means of two cells, measured one after the other, as two arrays of shape (rounds,).

    Other tools measure in this way.
    """
    first, second = np.arange(rounds) / (2 * rounds), 0.5 + np.arange(rounds) / (2 * rounds)
    drifting = drift(table.drift, rounds, draw)
    one, other = (draw.normal(size=rounds) * table.sigma + drifting(times) for times in (first, second))
    if table.mixture:
        other = other + (draw.random(rounds) < table.mixture.share) * np.log1p(table.mixture.slower)
    return one, other


def drift(kind: Drift, rounds: int, draw: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return how much slower the machine is at some times, on the log scale. Time 1 is the end of the run."""
    if kind is Drift.LINEAR:
        return lambda times: 0.1 * times
    if kind is Drift.STEPS:
        at, height = draw.random(3), draw.choice([-0.05, 0.05], 3)
        return lambda times: np.asarray((times[..., None] > at) @ height)
    if kind is Drift.PERIODIC:
        # the period is half a round to four rounds: with a fixed order, such a drift would look like a difference
        waves, phase = rounds / draw.uniform(0.5, 4.0), draw.random()
        return lambda times: np.asarray(0.05 * np.sin(2.0 * np.pi * (waves * times + phase)))
    return np.zeros_like


def _sigmas(table: Table, draw: np.random.Generator) -> Floats:
    """Return the standard deviation of each cell, of shape (groups, others + 2). The baseline has it twice."""
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
