"""How often intervals over launches contain the true percentile: t intervals, and bootstrap intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from bench.simulation.markdown import format_percent, print_table
from harness.analysis.statistics import student
from harness.model.defaults import LEVEL
from harness.model.scenario import PERCENTILES

Floats = npt.NDArray[np.float64]

#: The number of single steps in a launch, and of resamples in the bootstrap.
STEPS, RESAMPLES = 400, 400


@dataclass(frozen=True, slots=True)
class Machine:
    """Standard deviations of launches and of steps on the log scale; `slow` steps take up to a few times as long.

    `bursts`: the number of slow steps varies between launches. `factor`: all slow steps take this many times as long.
    """

    launches: float
    steps: float = 0.05
    slow: float = 0.02
    bursts: bool = True
    factor: float | None = None


MACHINES: Mapping[str, Machine] = {
    "launches differ by 2 %": Machine(0.02),
    "launches differ by 10 %": Machine(0.10),
    "the same number of slow steps in each launch": Machine(0.02, bursts=False),
    "no slow steps": Machine(0.02, slow=0.0),
    "1 % of steps take 5 times as long": Machine(0.02, slow=0.01, bursts=False, factor=5.0),
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of intervals that contain the true value, for each way to compute them."""

    launches: float
    bootstrap: float


def draw(machine: Machine, launches: int, random: np.random.Generator) -> Floats:
    """Return the seconds of the steps of some launches, of shape (launches, STEPS)."""
    centres = np.exp(random.normal(0.0, machine.launches, (launches, 1)))
    seconds = centres * np.exp(random.normal(0.0, machine.steps, (launches, STEPS)))
    often = machine.slow * np.exp(random.normal(0.0, 0.5 if machine.bursts else 0.0, (launches, 1)))
    is_slow = random.random((launches, STEPS)) < often
    factors = machine.factor or 1.0 + random.exponential(1.0, (launches, STEPS))
    return np.where(is_slow, seconds * factors, seconds)


def coverage(machine: Machine, share: float, launches: int, runs: int, seed: int) -> Coverage:
    """Return how often the intervals of a percentile contain the true value.

    The true value is the geometric mean over launches of a launch's percentile, as in harness.
    """
    random = np.random.default_rng([seed, launches, round(1000 * share)])
    many = np.quantile(draw(machine, 4_000, random), share, axis=1)
    true = float(np.log(many).mean())
    hits = np.array([_hits(draw(machine, launches, random), share, true, random) for _ in range(runs)])
    return Coverage(*hits.mean(axis=0).tolist())


def _hits(seconds: Floats, share: float, true: float, random: np.random.Generator) -> Sequence[bool]:
    logs, count = np.log(np.quantile(seconds, share, axis=1)), len(seconds)
    half = student(count - 1, LEVEL) * float(logs.std(ddof=1)) / np.sqrt(count)
    means = logs[random.integers(0, count, (RESAMPLES, count))].mean(axis=1)
    tails = ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)
    low, high = np.quantile(means, tails)
    return [abs(float(logs.mean()) - true) <= half, bool(low <= true <= high)]


def print_percentiles(runs: int, seed: int) -> None:
    """Print the coverage of both kinds of intervals, for each machine and percentile."""
    print("\n## Percentiles\n")
    rows = []
    for (name, machine), (of, share) in product(MACHINES.items(), PERCENTILES.items()):
        found = [coverage(machine, share, launches, runs, seed) for launches in (3, 5, 10)]
        ways = ([getattr(one, way) for one in found] for way in ("launches", "bootstrap"))
        rows.append([name, of, *(" / ".join(format_percent(share) for share in way) for way in ways)])
    heads = ["t interval, 3 / 5 / 10 launches", "bootstrap, 3 / 5 / 10 launches"]
    print_table(["machine", "of", *heads], rows)
