"""How often a step is reported to change while it is measured, with simulated samples on unstable machines."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from bench.simulation.harness_rules import MARGIN
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.sample_logs import divide
from harness.analysis.trends import find_trends, has_trend
from harness.model.environment import Device
from harness.model.launch import Launch, Role, Sample, Status
from harness.model.scenario import Cell

Floats = npt.NDArray[np.float64]
#: Returns the logs of samples, of shape (launches, samples). The true log is 0.
Draw = Callable[[np.random.Generator, int, int], Floats]


def white(draw: np.random.Generator, launches: int, samples: int) -> Floats:
    """Simulate independent samples with a standard deviation of 5 %."""
    return draw.normal(0.0, 0.05, (launches, samples))


def autoregressive(share: float) -> Draw:
    """Return a simulation whose samples keep a share of the previous sample's deviation. The total deviation is 5 %."""

    def drawn(draw: np.random.Generator, launches: int, samples: int) -> Floats:
        logs = white(draw, launches, samples)
        for at in range(1, samples):
            logs[:, at] = share * logs[:, at - 1] + np.sqrt(1.0 - share**2) * logs[:, at]
        return logs

    return drawn


def walk(size: float) -> Draw:
    """Return a simulation of a random walk that ends `size` away from its start, plus 2 % for each sample."""

    def drawn(draw: np.random.Generator, launches: int, samples: int) -> Floats:
        steps = draw.normal(0.0, size / np.sqrt(samples), (launches, samples))
        return np.asarray(np.cumsum(steps, axis=1) + 0.4 * white(draw, launches, samples))

    return drawn


def waves(draw: np.random.Generator, launches: int, samples: int) -> Floats:
    """Simulate swings of ± 10 % with a period between 20 % of a launch and five launches, plus 2 % for each sample."""
    periods = np.exp(draw.uniform(np.log(0.2), np.log(5.0), (launches, 1)))
    phase = draw.uniform(0.0, 1.0, (launches, 1)) + np.arange(samples) / samples / periods
    return 0.1 * np.sin(2.0 * np.pi * phase) + 0.4 * white(draw, launches, samples)


def modes(draw: np.random.Generator, launches: int, samples: int) -> Floats:
    """Simulate two speeds: a third of the samples are 60 % slower, some of them in a row, plus 2 % for each sample."""
    slow = np.repeat(draw.random((launches, samples)) < 1.0 / 3.0, max(1, samples // 15), axis=1)[:, :samples]
    return 0.47 * slow + 0.4 * white(draw, launches, samples)


def tail(draw: np.random.Generator, launches: int, samples: int) -> Floats:
    """Simulate launches whose first 10 % is 10 % slower, plus 2 % for each sample."""
    return 0.1 * np.clip(samples / 10.0 - np.arange(samples), 0.0, 1.0) + 0.4 * white(draw, launches, samples)


def load(draw: np.random.Generator, launches: int, samples: int) -> Floats:
    """Simulate another process that starts or stops using half of the CPU, at some time of every second launch."""
    at = draw.uniform(0.0, samples, (launches, 1)) < np.arange(samples)
    is_present = draw.random((launches, 1)) < 0.5
    return 0.69 * np.where(draw.random((launches, 1)) < 0.5, at, ~at) * is_present + 0.4 * white(
        draw, launches, samples
    )


#: Changes of the machine that must not be reported as a trend of the step, by name.
NOISES: Mapping[str, Draw] = {
    "white": white,
    "neighboring samples alike (0.5)": autoregressive(0.5),
    "neighboring samples alike (0.9)": autoregressive(0.9),
    "drift of 10 %": walk(0.1),
    "drift of 40 %": walk(0.4),
    "waves": waves,
    "two speeds": modes,
    "a settling tail": tail,
    "a load comes or goes": load,
}

#: The heading of the columns with the names of `NOISES`.
NOISE_HEAD = "what the machine does"


def false_trends(noise: str, launches: int, samples: int, cells: int, *, seed: int) -> float:
    """Return the share of unchanged cells in which a trend is detected."""
    draw = np.random.default_rng([seed, launches, samples])
    courses = (NOISES[noise](draw, launches, samples) for _ in range(cells))
    return sum(has_trend([[divide(row) for row in logs]], MARGIN) for logs in courses) / cells


def in_turns(slower: float, launches: int, samples: int, cells: int, *, seed: int) -> float:
    """Return the share of unchanged cells with a detected trend, interleaved with two other unchanged cells.

    The machine gets slower in each round, and also drifts by 40 %.
    """
    draw = np.random.default_rng([seed, launches, samples])
    count = 0
    for _ in range(cells):
        machine = walk(0.4)(draw, launches, samples) + np.linspace(0.0, np.log1p(slower), samples)
        block = machine + np.array([white(draw, launches, samples) for _ in range(3)])
        views = [block[0], block[0] - np.median(block[1:], axis=0)]
        count += has_trend([[divide(row) for row in view] for view in views], MARGIN)
    return count / cells


def seen(growth: float, noise: str, launches: int, samples: int, cells: int, *, seed: int) -> float:
    """Return the share of detected trends in cells whose step gets slower by `growth` (0.1: 10 %) over a launch."""
    draw = np.random.default_rng([seed, launches, samples])
    grows = np.log1p(growth * np.linspace(0.0, 1.0, samples))
    courses = (NOISES[noise](draw, launches, samples) + grows for _ in range(cells))
    return sum(has_trend([[divide(row) for row in logs]], MARGIN) for logs in courses) / cells


@dataclass(frozen=True, slots=True)
class Group:
    """Cells whose launches run one after the other, on a machine whose clock speed decreases during every launch.

    Over a launch, all steps get slower by `falls` (0.04: 4 %), with a standard deviation of 10 % of that between cells.
    The steps of the first `growing` cells also get slower by `grows`. Samples have a standard deviation of 1 %.
    """

    cells: int
    falls: float
    growing: int = 0
    grows: float = 0.0


def one_after_the_other(group: Group, launches: int, samples: int, groups: int, *, seed: int) -> tuple[float, float]:
    """Return the shares of cells with a detected trend, for cells whose step doesn't change and for the others.

    A share is NaN if there are no such cells.
    """
    draw = np.random.default_rng([seed, launches, samples])
    names = [Cell("simulated", str(at), Device.CPU, {}) for at in range(group.cells)]
    counts = np.zeros(group.cells)
    for _ in range(groups):
        fall = math.log1p(group.falls) * (1.0 + 0.1 * draw.normal(size=(group.cells, 1, 1)))
        grows = np.where(np.arange(group.cells) < group.growing, math.log1p(group.grows), 0.0)[:, None, None]
        courses = (fall + grows) * np.linspace(0.0, 1.0, samples)
        logs = courses + draw.normal(0.0, 0.01, (group.cells, launches, samples))
        by_cell = {
            cell: [_launch(cell, *numbered) for numbered in enumerate(own)]
            for cell, own in zip(names, logs, strict=True)
        }
        marked = find_trends(by_cell, MARGIN)
        counts += [cell in marked for cell in names]
    still = float(np.mean(counts[group.growing :])) / groups if group.growing < group.cells else math.nan
    return still, float(np.mean(counts[: group.growing])) / groups if group.growing else math.nan


def _launch(cell: Cell, number: int, logs: Floats) -> Launch:
    samples = [Sample(seconds, 1) for seconds in np.exp(logs).tolist()]
    return Launch(
        status=Status.OK,
        samples=samples,
        group="",
        round=number,
        attempt=0,
        order=0,
        role=Role.MEASURE,
        cell=cell,
        started="",
    )


def print_trends(cells: int, seed: int) -> None:
    """Print the shares of detected trends: in unchanged cells, in cells that get slower, and in groups of cells."""
    print("\n## Trends within a launch\n")
    counts, lengths = (1, 2, 3, 5, 10, 20), (3, 10, 30, 200)
    rows = [
        [
            noise,
            *(
                format_percent(max(false_trends(noise, n, length, cells, seed=seed) for length in lengths))
                for n in counts
            ),
        ]
        for noise in NOISES
    ]
    rows.append(
        [
            "turns on a machine that slows by 20 % in each round",
            *(format_percent(max(in_turns(0.2, n, length, cells, seed=seed) for length in lengths)) for n in counts),
        ]
    )
    print_table([NOISE_HEAD, *(f"launches: {n}" for n in counts)], rows)
    print()
    kinds = list(product((0.1, 0.3, 1.0, 5.0), ("white", "drift of 10 %", "drift of 40 %")))
    rows = [
        [f"{growth:.0%}", noise, *(format_percent(seen(growth, noise, n, 30, cells // 4, seed=seed)) for n in counts)]
        for growth, noise in kinds
    ]
    print_table(["step gets slower by", NOISE_HEAD, *(f"launches: {n}" for n in counts)], rows)
    print()
    rows = [
        [
            str(count),
            f"{falls:.0%}",
            *(format_percent(_simulate_falls(Group(count, falls), n, cells, seed)[0]) for n in (3, 5)),
        ]
        for count, falls in product((1, 2, 3, 6, 12), (0.04, 0.06, 0.20))
    ]
    print_table(["cells of the group", "the clock falls by", *(f"launches: {n}" for n in (3, 5))], rows)
    print()
    rows = []
    for (members, growing), falls, grows in product(
        ((1, 1), (2, 1), (3, 1), (3, 2), (6, 1), (6, 2)), (0.0, 0.06), (0.1, 0.2)
    ):
        pairs = [_simulate_falls(Group(members, falls, growing, grows), n, cells // 2, seed) for n in (3, 5)]
        shares = [format_percent(share) if members > growing else "-" for share, _ in pairs] + [
            format_percent(share) for _, share in pairs
        ]
        rows.append([f"{growing} of {members}", f"{grows:.0%}", f"{falls:.0%}", *shares])
    heads = [f"{which}: {n} launches" for which in ("unchanged cells marked", "marked") for n in (3, 5)]
    print_table(["cells that get slower", "by", "the clock falls by", *heads], rows)


def _simulate_falls(group: Group, launches: int, cells: int, seed: int) -> tuple[float, float]:
    """Return the shares of cells with a detected trend, from this total number of cells and 20 samples per launch."""
    return one_after_the_other(group, launches, 20, max(1, cells // group.cells), seed=seed)
