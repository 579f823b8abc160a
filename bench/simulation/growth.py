"""How accurately a slope shows the memory that a process keeps per call, with several kinds of allocators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.simulation.markdown import format_percent, print_table
from harness.analysis.comparisons import is_beyond
from harness.analysis.quantities import PIECE, get_later_half, growth_difference, linear, slope

Floats = npt.NDArray[np.float64]
Points = Sequence[tuple[float, float]]

#: The number of readings and of calls in a launch, and the bytes that each call of a leak keeps.
CALLS, LEAK = np.linspace(0.0, 1000.0, 21), 1000.0
KIB = 1024.0

#: Returns the memory of processes, of shape (launches, points), from the bytes that their calls have kept.
Allocator = Callable[[np.random.Generator, Floats], Floats]


def noisy(draw: np.random.Generator, kept: Floats) -> Floats:
    """Simulate readings with an error of 32 KiB."""
    return kept + draw.normal(0.0, 32.0 * KIB, kept.shape)


def pieces(size: float) -> Allocator:
    """Simulate an allocator that requests memory in pieces. Part of a piece is used before the first call."""

    def held(draw: np.random.Generator, kept: Floats) -> Floats:
        return np.asarray(np.ceil((kept + draw.uniform(0.0, size, (len(kept), 1))) / size) * size)

    return held


def once(draw: np.random.Generator, kept: Floats) -> Floats:
    """Simulate one allocation of 4 MiB, at any call of half of the launches, and readings with an error of 32 KiB."""
    late = (draw.random((len(kept), 1)) < 0.5) * (draw.uniform(0.0, CALLS[-1], (len(kept), 1)) < CALLS)
    return noisy(draw, kept) + 4096.0 * KIB * late


def filling(draw: np.random.Generator, kept: Floats) -> Floats:
    """Simulate a pool of 2 MiB that fills during the first calls, 67 % of it in 100 calls, and errors of 32 KiB."""
    return noisy(draw, kept) + 2048.0 * KIB * (1.0 - np.exp(-CALLS / 100.0))


def freed(draw: np.random.Generator, kept: Floats) -> Floats:
    """Simulate memory that accumulates to 4 MiB and is freed every 130 calls, at different calls in each launch."""
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
    """Return the slope over the second half of the calls, computed by harness."""
    return slope(get_later_half(points))


def least_squares(points: Points) -> float:
    """Return the least-squares slope over the second half of the calls."""
    x, y = np.array(get_later_half(points)).T
    x = x - x.mean()
    return float(x @ y / (x @ x))


@dataclass(frozen=True, slots=True)
class GrowthResult:
    """The results of runs with one allocator: the mean reported growth in bytes per call, and the interval's coverage.

    `found` is the share of runs whose interval is above the margin. `apart` is the share in which the control's
    interval, for the difference to a second launch in each round, is beyond the margin.
    """

    mean: float
    covered: float
    found: float
    apart: float


def simulate_growth(
    allocator: Allocator,
    leak: float,
    rounds: int,
    runs: int,
    seed: int,
    *,
    fit: Callable[[Points], float | None] = ours,
    margin: float = 0.0,
) -> GrowthResult:
    """Simulate runs with one launch per round. Each call keeps `leak` bytes, with ± 2 % between launches.

    The control is a second launch in each round.
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
    return GrowthResult(
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


def print_growth(runs: int, seed: int) -> None:
    """Print how accurate the slopes are with each allocator, with and without a leak."""
    print("\n## Memory growth\n")
    margin = PIECE / float(CALLS[-1] / 2.0)
    rows = []
    for name, allocator in ALLOCATORS.items():
        for leak in (0.0, LEAK):
            ways = [
                simulate_growth(allocator, leak, 5, runs, seed, fit=fit, margin=margin)
                for fit in (ours, slope, least_squares)
            ]
            numbers = [text for way in ways for text in (f"{round(way.mean):,} B", format_percent(way.covered))]
            ours_too = [format_percent(ways[0].found), format_percent(ways[0].apart)]
            rows.append([name, f"{leak:,.0f} B", *numbers[:2], *ours_too, *numbers[2:]])
    heads = [
        "reported",
        "the interval contains it",
        "reported as growth",
        "control",
        "over all calls",
        "contains it",
        "by least squares",
        "contains it",
    ]
    print_table(["memory", "kept per call", *heads], rows)
