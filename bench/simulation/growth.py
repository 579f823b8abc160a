"""How well a slope tells what a process keeps of each call: the memory of launches, on allocators of several kinds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analysis.comparisons import is_beyond
from harness.analysis.quantities import get_later_half, growth_difference, linear, slope

Floats = npt.NDArray[np.float64]
Points = Sequence[tuple[float, float]]

#: Points of a launch, over so many calls, and what each call of a leak keeps, in bytes.
CALLS, LEAK = np.linspace(0.0, 1000.0, 21), 1000.0
KIB = 1024.0

#: Bytes that processes hold beside what they keep, of shape (launches, points), where the kept ones are given.
Allocator = Callable[[np.random.Generator, Floats], Floats]


def noisy(draw: np.random.Generator, kept: Floats) -> Floats:
    """Each reading is off by 32 KiB."""
    return kept + draw.normal(0.0, 32.0 * KIB, kept.shape)


def pieces(size: float) -> Allocator:
    """Memory comes in pieces, of which part of one is taken before the first call."""

    def held(draw: np.random.Generator, kept: Floats) -> Floats:
        return np.asarray(np.ceil((kept + draw.uniform(0.0, size, (len(kept), 1))) / size) * size)

    return held


def once(draw: np.random.Generator, kept: Floats) -> Floats:
    """In half of the launches something of 4 MiB is allocated once, at any call, and readings are off by 32 KiB."""
    late = (draw.random((len(kept), 1)) < 0.5) * (draw.uniform(0.0, CALLS[-1], (len(kept), 1)) < CALLS)
    return noisy(draw, kept) + 4096.0 * KIB * late


def filling(draw: np.random.Generator, kept: Floats) -> Floats:
    """A pool of 2 MiB fills in the first calls, to two thirds after 100, and readings are off by 32 KiB."""
    return noisy(draw, kept) + 2048.0 * KIB * (1.0 - np.exp(-CALLS / 100.0))


def freed(draw: np.random.Generator, kept: Floats) -> Floats:
    """Every 130 calls 4 MiB that have gathered are freed, at other calls in each launch."""
    return kept + 4096.0 * KIB * ((CALLS / 130.0 + draw.uniform(0.0, 1.0, (len(kept), 1))) % 1.0)


ALLOCATORS: Mapping[str, Allocator] = {
    "each reading has an error of 32 KiB": noisy,
    "pieces of 128 KiB": pieces(128.0 * KIB),
    "pieces of 256 KiB": pieces(256.0 * KIB),
    "pieces of 1 MiB": pieces(1024.0 * KIB),
    "4 MiB at once, in half of the launches": once,
    "a pool of 2 MiB is filled first": filling,
    "4 MiB accumulate and are then freed": freed,
}


def ours(points: Points) -> float | None:
    """The slope of the later half, as the harness tells it."""
    return slope(get_later_half(points))


def least_squares(points: Points) -> float:
    """The slope of the later half from which the squares of the distances are least."""
    x, y = np.array(get_later_half(points)).T
    x = x - x.mean()
    return float(x @ y / (x @ x))


@dataclass(frozen=True, slots=True)
class Told:
    """Of runs on one allocator: the mean growth that is told, in bytes a call, and how often its interval is right.

    `found` is how often the interval lies above 0 by more than `margin`, `apart` how often that of the difference to a
    second launch in each round, the control, lies beyond it.
    """

    mean: float
    covered: float
    found: float
    apart: float


def told(
    allocator: Allocator,
    leak: float,
    rounds: int,
    runs: int,
    seed: int,
    *,
    fit: Callable[[Points], float | None] = ours,
    margin: float = 0.0,
) -> Told:
    """Runs of so many rounds, one launch each, of which each call keeps `leak` bytes, by 2 % more or less a launch.

    A control is another launch in each round.
    """
    draw = np.random.default_rng(seed)
    slopes, again = (_slopes(allocator, leak, rounds * runs, draw, fit) for _ in range(2))
    estimates = [linear(slopes[at : at + rounds]) for at in range(0, len(slopes), rounds)]
    ends = [
        (estimate.value, estimate.interval.low, estimate.interval.high)
        for estimate in estimates
        if estimate and estimate.interval
    ]
    controls = [
        growth_difference(dict(enumerate(again[at : at + rounds])), dict(enumerate(slopes[at : at + rounds])))
        for at in range(0, len(slopes), rounds)
    ]
    return Told(
        mean=float(np.mean([value for value, _, _ in ends])),
        covered=float(np.mean([low - 1e-6 <= leak <= high + 1e-6 for _, low, high in ends])),
        found=float(np.mean([low > margin for _, low, _ in ends])),
        apart=float(np.mean([is_beyond(control, margin) for control in controls])),
    )


def _slopes(
    allocator: Allocator, leak: float, launches: int, draw: np.random.Generator, fit: Callable[[Points], float | None]
) -> list[float]:
    rates = leak * (1.0 + 0.02 * draw.normal(size=(launches, 1)))
    memory = allocator(draw, rates * CALLS)
    return [fit(list(zip(CALLS.tolist(), course, strict=True))) or 0.0 for course in memory.tolist()]
