"""CPU contention with a known loss: interleaved launches, and the times of launches after the correction.

Each sample of a launch contains 0.05 s of its own work. The kernel's counters are simulated with their resolution: the
CPU time of a process and the time for which it was ready in nanoseconds, and the use of the CPU in ticks of 10 ms.

`simulate_tables` simulates tables of comparisons in which the subtracted time is wrong.
"""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import product

import numpy as np
import numpy.typing as npt

from bench.simulation.harness_rules import MARGIN, RunEnd, end_run, judge_table
from bench.simulation.machine import Table, launches, table
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.interference import compute_possible_error, estimate_unchecked_share
from harness.analysis.rounds import OWN_SHARE, compute_mean, compute_subtracted_share
from harness.analysis.statistics import half_widths
from harness.analysis.verdicts import Verdict
from harness.model.defaults import ALPHA
from harness.model.environment import Device
from harness.model.launch import Launch, Role, Sample, Status
from harness.model.scenario import Cell

Floats = npt.NDArray[np.float64]

#: The CPU time of a sample in seconds, its number of steps, the number of interleaved launches, and the length of a
#: kernel tick in seconds.
WORK, STEPS, LAUNCHES, TICK = 0.05, 10, 3, 0.01


@dataclass(frozen=True, slots=True)
class Step:
    """The waiting times of a step, as shares of its work: by itself, and of its threads for each other's CPU.

    Both happen only in a share `of` the samples.
    """

    waits: float = 0.0
    queues: float = 0.0
    of: float = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """Other processes: a loop is `on` and `off` by turns, in seconds, and a process wakes up at times for 5 ms."""

    on: float = 0.0
    off: float = 1.0
    wakes: float = 0.0


KINDS: Mapping[str, Step] = {
    "its threads use the CPU all the time": Step(),
    "it waits during 30 % of its time": Step(waits=0.43),
    "its threads wait for each other": Step(queues=1.0),
    "both": Step(waits=0.43, queues=1.0),
    "both, in one sample of ten": Step(waits=0.43, queues=1.0, of=0.1),
}

LOADS: Mapping[str, Load] = {
    "none": Load(),
    "a process that runs for 5 ms, four times per second": Load(wakes=4.0),
    "a loop that runs for 3 of every 9 s": Load(on=3.0, off=6.0),
    "a loop that runs all the time": Load(on=1.0, off=0.0),
}


@dataclass(frozen=True, slots=True)
class CorrectionErrors:
    """Errors of the log of a launch mean, as mean and standard deviation, after the correction and without it.

    `least` and `most` are the ends of the range that contains 95 % of launches, for the subtracted share minus the
    share that other processes used.
    """

    off: float
    spread: float
    off_by_clock: float
    spread_by_clock: float
    least: float
    most: float


def simulate_launches(step: Step, load: Load, turns: int, launches: int, seed: int) -> CorrectionErrors:
    """Simulate launches with `turns` samples each, and return their errors."""
    draw = np.random.default_rng(seed)
    logs, by_clock, above = [], [], []
    for _ in range(launches):
        launch, alone = _launch(step, load, turns, draw)
        logs.append(math.log(compute_mean(launch) / alone))
        by_clock.append(math.log(launch.mean / alone))
        above.append(compute_subtracted_share(launch) - (1.0 - alone / launch.mean))
    ends = np.quantile(above, (0.025, 0.975))
    return CorrectionErrors(
        float(np.mean(logs)), float(np.std(logs)), float(np.mean(by_clock)), float(np.std(by_clock)), *map(float, ends)
    )


def _launch(step: Step, load: Load, turns: int, draw: np.random.Generator) -> tuple[Launch, float]:
    """Return one launch, and the time that its step would take without contention."""
    has = draw.random(turns) < step.of if step.of < 1.0 else np.ones(turns, bool)
    alone = WORK * (1.0 + step.waits * has)
    # the launches of a turn run one after the other; the other launches take as long as this one
    begins = np.arange(turns) * LAUNCHES * alone + draw.uniform(0.0, load.on + load.off)
    loop = WORK * _share_on(load, begins, WORK)  # as much as the launch itself, while both want the CPU
    wakes = 0.005 * draw.poisson(load.wakes * alone)
    held_up = loop + wakes
    wall = alone + held_up
    waited = held_up + WORK * step.queues * has
    busy = WORK + held_up + step.waits * WORK * has * _share_on(load, begins, WORK)
    samples = [Sample(float(seconds), STEPS, WORK) for seconds in wall]
    resources = {
        "steady_pieces": float(turns),
        "steady_seconds": float(wall.sum()),
        "steady_cpu_seconds": WORK * turns,
        "steady_waited_seconds": float(min(waited.sum(), (wall - WORK).sum())),
        "steady_own_cpus": 1.0,
        "steady_own_cpus_busy_seconds": float(_ticks(busy, draw).sum()),
        "steady_own_cpus_steal_seconds": 0.0,
    }
    launch = Launch(
        status=Status.OK,
        samples=samples,
        resources=resources,
        group="",
        round=1,
        attempt=0,
        order=0,
        role=Role.MEASURE,
        cell=Cell("simulated", {}, "simulated", Device.CPU),
        started="",
    )
    return launch, float(alone.sum()) / (STEPS * turns)


def _share_on(load: Load, begins: Floats, length: float) -> Floats:
    """Return, for each start, the share of the following time during which the loop runs."""
    period = load.on + load.off
    grid = begins[:, None] + np.linspace(0.0, length, 11)[None, :]
    return np.asarray((grid % period < load.on).mean(axis=1))


def _ticks(seconds: Floats, draw: np.random.Generator) -> Floats:
    """Return the time that the kernel counts for these seconds: whole ticks, the last of which is random."""
    whole, rest = np.divmod(seconds, TICK)
    return np.asarray(TICK * (whole + (draw.random(seconds.shape) < rest / TICK)))


class Wrong(StrEnum):
    """The errors of the subtracted time, with their standard deviation."""

    NOT = "right"
    LAUNCH = "for each launch, wrong by 20 % of the time taken"
    CELL = "for each cell, wrong by 20 % of the time taken"
    UNSEEN = "for each cell, wrong by 6 % of the loss, not recorded"


class Varies(StrEnum):
    """The share of other processes: the same for all launches, for the launches of a round, or for one launch."""

    STEADY = "steady"
    ROUNDS = "by round"
    LAUNCHES = "by launch"


@dataclass(frozen=True, slots=True)
class TableResults:
    """The results of tables, without or with the possible error in their intervals.

    - false: the share of tables of equal cells with any reported difference
    - edge: the same for tables whose cells differ by the margin
    - covered: the share of comparisons whose individual 95 % interval contains the true ratio
    - found: for each effect, the share of slower cells whose verdict is *slower*
    """

    false: float
    edge: float
    covered: float
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """A core of which other processes use `share`. If it `varies`, it is between nothing and twice as much."""

    share: float
    varies: Varies
    wrong: Wrong


def simulate_tables(
    table: Table, rounds: int, tables: int, shared: Shared, effects: tuple[float, ...], *, seed: int
) -> tuple[TableResults, TableResults, float]:
    """Judge tables without and with the possible error of the subtracted time. Also return the mean possible error.

    Contention multiplies the cells' times by 1/(1 - taken), and the recorded loss is subtracted.
    """
    draw = np.random.default_rng(seed)
    runs, errors = [], []
    for _ in range(tables):
        centres, within = launches(table, rounds, draw)
        logs, losses = _recorded(centres, shared, draw)
        runs.append(end_run(table, logs, within))
        errors.append(_possible_errors(logs, losses))
    zeros = [np.zeros_like(error) for error in errors]
    return _judged(runs, zeros, effects), _judged(runs, errors, effects), float(np.mean(errors))


def _recorded(centres: Floats, shared: Shared, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the logs of launch means after the subtraction, and the subtracted losses, in the shape of `centres`."""
    (groups, cells, rounds), share, wrong = centres.shape, shared.share, shared.wrong
    varying = {Varies.STEADY: None, Varies.ROUNDS: (groups, 1, rounds), Varies.LAUNCHES: centres.shape}[shared.varies]
    met = share if varying is None else np.minimum(draw.uniform(0.0, 2.0 * share, varying), 0.95)
    lost = -np.log1p(-np.broadcast_to(met, centres.shape))
    off = draw.normal(size=centres.shape if wrong is Wrong.LAUNCH else (groups, cells - 1, 1))
    if wrong is not Wrong.LAUNCH:
        # the last two launches of a round are of the reference
        off = np.concatenate([off, off[:, -1:]], axis=1)
    if wrong in (Wrong.NOT, Wrong.UNSEEN):
        return centres + (0.06 * off * lost if wrong is Wrong.UNSEEN else 0.0), lost
    recorded = np.clip(met * (1.0 + 0.2 * off), 0.0, 0.97)
    subtracted = np.where(recorded > OWN_SHARE, -np.log1p(-recorded), 0.0) + np.zeros_like(centres)
    return centres + lost - subtracted, subtracted


def _possible_errors(logs: Floats, losses: Floats) -> Floats:
    """Return the possible error of each comparison with the baseline."""
    _, cells, rounds = logs.shape
    labels, numbers = np.indices((cells, rounds))
    places, at = np.minimum(labels, cells - 2).ravel().tolist(), numbers.ravel().tolist()
    errors = []
    for here, lost in zip(logs, losses, strict=True):
        share = estimate_unchecked_share(places, at, here.ravel().tolist(), lost.ravel().tolist())
        *others, one, two = lost.mean(axis=1).tolist()
        errors += [compute_possible_error(loss, (one + two) / 2.0, share) for loss in others]
    return np.array(errors)


def _judged(runs: list[RunEnd], errors: list[Floats], effects: tuple[float, ...]) -> TableResults:
    different, edge, covered, slower = [], [], [], []
    for run, error in zip(runs, errors, strict=True):
        equal, at_edge, *rest = (judge_table(run, effect, error) for effect in (0.0, MARGIN, *map(math.log1p, effects)))
        different.append(any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in equal))
        edge.append(any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in at_edge))
        covered.append(np.mean(np.abs(run.logs.mean) <= half_widths(run.logs, ALPHA) + error))
        slower.append([np.mean([verdict is Verdict.SLOWER for verdict in verdicts]) for verdicts in rest])
    shares = np.mean(slower, axis=0).tolist()
    return TableResults(float(np.mean(different)), float(np.mean(edge)), float(np.mean(covered)), tuple(shares))


def print_correction_errors(launches: int, seed: int) -> None:
    """Print the errors of the times of launches, without and with the correction."""
    print("\n## Accuracy of the CPU contention correction\n")
    rows = []
    for (step, kind), (load, others), turns in product(KINDS.items(), LOADS.items(), (12, 30)):
        figures = simulate_launches(kind, others, turns, launches, seed)
        by_clock = f"{figures.off_by_clock:+.1%} ± {figures.spread_by_clock:.1%}"
        judged = f"{figures.off:+.1%} ± {figures.spread:.1%}"
        rows.append([step, load, str(turns), by_clock, judged, f"{figures.least:+.1%} to {figures.most:+.1%}"])
    print_table(
        [
            "the step",
            "other processes",
            "turns",
            "error of the wall-clock time",
            "error of the corrected time",
            "subtracted too much",
        ],
        rows,
    )


def print_wrong_corrections(tables: int, seed: int) -> None:
    """Print how a wrong correction changes the verdicts of tables."""
    print("\n## A wrong correction for CPU contention\n")
    effects, sizes = (0.10, 0.20, 0.50), ((1, 3), (16, 3), (16, 5))
    kinds = [*product((0.1, 0.3, 0.5), [Varies.STEADY], Wrong, sizes)]
    kinds += product([0.3], [Varies.ROUNDS, Varies.LAUNCHES], Wrong, sizes[1:])
    rows = []
    for share, varies, wrong, (comparisons, rounds) in kinds:
        count = 4 * tables if comparisons == 1 else tables
        kind = table(comparisons, 0.02, turns=True)
        before, after, error = simulate_tables(kind, rounds, count, Shared(share, varies, wrong), effects, seed=seed)
        both = zip((*astuple(before)[:3], *before.found), (*astuple(after)[:3], *after.found), strict=True)
        shown = [f"{format_percent(one)} → {format_percent(two)}" for one, two in both]
        rows.append([f"{share:.0%}, {varies}", wrong, str(comparisons), str(rounds), format_percent(error), *shown])
    heads = [
        "CPU share lost",
        "what is subtracted",
        "comparisons",
        "rounds",
        "wider by",
        "false alarms",
        "wrong difference",
    ]
    print_table([*heads, "coverage", *(f"{effect:.0%} slower" for effect in effects)], rows)
