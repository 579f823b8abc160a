"""Simulated nightly runs with known changes: the changes that harness and the rules of other tools report.

A nightly run has `ROUNDS` paired rounds of a cell and its baseline on one machine. Changes of the machine (it gets
slower, its speed swings, it is another host) affect both times. They change the ratio 10 % as much, because two pieces
of work never slow down by exactly the same factor.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import numpy as np
from otava.analysis import compute_change_points
from scipy.special import betaincinv, gammaincinv

from bench.simulation.machine import Floats
from harness.analysis.statistics import student
from harness.history.detection import detect_changes
from harness.history.states import Detector, State, judge_all
from harness.model.history import Key, Origin, Series, SeriesPoint

NIGHTS, ROUNDS = 100, 5
#: The number of nightly runs before a rule is applied for the first time.
FIRST = 10
#: The standard deviation of the log ratio of a paired round, and the additional one between nightly runs.
ROUND, NIGHT = 0.02, 0.005
#: The largest distance in nightly runs between a change and a report that counts as its detection.
NEAR = 5
#: A change counts as found soon within this number of nightly runs.
SOON = 5


class Kind(StrEnum):
    """The behavior of a machine over the nightly runs."""

    STILL = "still"
    DRIFT = "drift"
    SPIKES = "spikes"
    HOSTS = "random hosts"
    REPLACED = "machine replaced"
    DRIVER = "new driver"


_ORIGINS = {driver: Origin(driver, "kit", "file", "lock", "image", "lock") for driver in ("old", "new")}


@dataclass(frozen=True, slots=True)
class Nights:
    """Log times and log ratios of nightly runs, and the ratios' standard errors.

    From `cut` on, the machine or the driver is a new one, if the kind has such a change.
    """

    kind: Kind
    times: Floats
    ratios: Floats
    errors: Floats
    cut: int

    def series(self, points: Sequence[SeriesPoint]) -> list[Series]:
        """Return the series in a history of the first nightly runs, which have these points."""
        count = len(points)
        key = Key("m-1", "step", "cpu", (), "tf2.1", "tf1.14")
        if self.kind is Kind.REPLACED and count > self.cut:
            return [Series(key, points[: self.cut]), Series(replace(key, machine="m-2"), points[self.cut :])]
        return [Series(key, points)]

    def point(self, night: int) -> SeriesPoint:
        """Return the point of a nightly run in a history."""
        ratio, half = float(self.ratios[night]), float(self.errors[night]) * student(ROUNDS - 1)
        driver = "new" if self.kind is Kind.DRIVER and night >= self.cut else "old"
        origin = _ORIGINS[driver]
        seconds = math.exp(float(self.times[night]))
        ends = (ratio - half, ratio + half)
        return SeriesPoint(f"run-{night}", day(night), ratio, *ends, ROUNDS, seconds, None, None, "ok", origin)


def nights(
    kind: Kind, draw: np.random.Generator, *, step: float = 0.0, at: int = 0, noise: float = 1.0, cut: int | None = None
) -> Nights:
    """Return nightly runs. From `at` on, the cell is slower by a step (log scale). `noise` multiplies the noise."""
    moved = draw.normal(size=NIGHTS) * 0.01  # changes of the machine's speed
    apart = np.zeros(NIGHTS)
    cut = NIGHTS // 2 + int(draw.integers(-15, 15)) if cut is None else cut
    if kind is not Kind.STILL:
        day = np.arange(NIGHTS)
        moved = moved + 0.10 * day / NIGHTS + 0.03 * np.sin(2.0 * np.pi * day / 30.0 + draw.uniform(0.0, 6.3))
    if kind is Kind.SPIKES:
        # interference in one of thirty nightly runs slows the cell more than its baseline
        struck = draw.random(NIGHTS) < 1.0 / 30.0
        moved = moved + struck * draw.exponential(0.3, NIGHTS)
        apart = apart + struck * draw.exponential(0.2, NIGHTS)
    if kind is Kind.HOSTS:
        moved = moved + (draw.normal(size=4) * 0.10)[draw.integers(4, size=NIGHTS)]
    if kind in (Kind.REPLACED, Kind.DRIVER):
        later = np.arange(NIGHTS) >= cut
        moved, apart = moved - 0.3 * later, apart + 0.05 * later
    truth = 0.1 * moved + apart + step * (np.arange(NIGHTS) >= at) + draw.normal(size=NIGHTS) * NIGHT * noise
    rounds = truth + draw.normal(size=(ROUNDS, NIGHTS)) * ROUND * noise
    errors = rounds.std(axis=0, ddof=1) / math.sqrt(ROUNDS)
    ratios = rounds.mean(axis=0)
    return Nights(kind, moved + ratios, ratios, errors, cut)


#: A rule gets the values of the first nightly runs, from a first number on, and reports changes: pairs of the number
#: of nightly runs that it had and the index of the change, in the order of these numbers.
Rule = Callable[[Nights, Floats, int], Iterable[tuple[int, int]]]


def ours(
    of: Nights, values: Floats, first: int = FIRST, detect: Detector = detect_changes
) -> Iterator[tuple[int, int]]:
    """Yield the changes that harness suspects, with the code of the history."""
    points = [of.point(night) for night in range(values.size)]
    for count in range(first, values.size + 1):
        for series in of.series(points[:count]):
            began = int(series.points[0].run.removeprefix("run-"))
            (judgement,) = judge_all([series], detect=detect)
            for change, finding in zip(judgement.changes, judgement.findings, strict=True):
                if finding.state is State.SUSPECTED:
                    yield count, began + change.index


def otava(p: float, least: float) -> Rule:
    """Return the rule of apache-otava, with a significance and a smallest change."""

    def rule(series: Nights, values: Floats, first: int = FIRST) -> Iterator[tuple[int, int]]:
        times = np.exp(values).tolist()
        for count in range(first, values.size + 1):
            points, _ = compute_change_points(times[:count], window_len=50, max_pvalue=p, min_magnitude=least)
            yield from ((count, int(point.index)) for point in points)

    return rule


def asv(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """Return asv's regressions: the last of the fitted levels is more than 5 % above or below the one before.

    The levels minimize the sum of distances, and their number k minimizes ln(sum) + 4 k ln n / n, as in
    asv/step_detect.py. Here, the search is exact, with at most five levels of at least two nightly runs each, and with
    equal weights.
    """
    n, most, fewest = values.size, 5, 2
    levels = np.unique(values)
    sums = np.vstack([np.zeros(levels.size), np.abs(values[:, None] - levels).cumsum(axis=0)])
    lost = np.full((n + 1, n + 1), np.inf)
    for a in range(n):
        lost[a, a + fewest :] = (sums[a + fewest :] - sums[a]).min(axis=1)
    best = [lost[0]]
    begun = []
    for _ in range(1, most):
        whole = best[-1][:, None] + lost
        begun.append(whole.argmin(axis=0))
        best.append(whole.min(axis=0))
    reported = []
    for count in range(first, n + 1):
        scores = [
            math.log(max(costs[count], 1e-12)) + 4.0 * k * math.log(count) / count for k, costs in enumerate(best)
        ]
        k = int(np.argmin(scores))
        if k:
            last = int(begun[k - 1][count])
            before = int(begun[k - 2][last]) if k > 1 else 0
            if abs(np.median(values[last:count]) - np.median(values[before:last])) > math.log(1.05):
                reported.append((count, last))
    return reported


def perfherder(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """Return Perfherder's changes: t is above 7 and the change is at least 2 %.

    It compares the 12 to 24 nightly runs before a nightly run with the 12 from it on. As in treeherder's perfalert,
    more distant nightly runs have smaller weights, and t must not be larger at an adjacent nightly run.
    """
    back, fore = 24, 12

    def t(at: int, end: int) -> tuple[float, float]:
        sides = values[max(0, at - back) : at][::-1], values[at : min(end, at + fore)]
        means, parts = [], []
        for side in sides:
            mean = float(np.average(side, weights=1.0 - np.arange(side.size) / side.size))
            means.append(mean)
            parts.append(float(((side - mean) ** 2).sum()) / max(1, side.size - 1) / side.size)
        return abs(means[1] - means[0]) / math.sqrt(sum(parts)), abs(means[1] - means[0])

    reported = []
    for at in range(max(fore, first - fore), values.size - fore + 1):
        here, size = t(at, at + fore)
        if here > 7.0 and size > math.log(1.02) and t(at - 1, at + fore)[0] <= here >= t(at + 1, at + fore)[0]:
            reported.append((at + fore, at))
    return reported


def one_night(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """Return nightly runs that are 5 % slower than the one before."""
    return [
        (night + 1, night)
        for night in range(first - 1, values.size)
        if values[night] - values[night - 1] > math.log(1.05)
    ]


def one_of_week(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """Return nightly runs that are 5 % slower than the median of the seven before."""
    return [
        (night + 1, night)
        for night in range(first - 1, values.size)
        if values[night] - float(np.median(values[night - 7 : night])) > math.log(1.05)
    ]


RULES: dict[str, Rule] = {
    "harness": ours,
    "otava, its defaults": otava(0.001, 0.0),
    "otava, p < 1e-5 and 3 %": otava(1e-5, 0.03),
    "asv, 5 %": asv,
    "Perfherder, t > 7 and 2 %": perfherder,
    "5 % slower than the previous nightly run": one_night,
    "5 % slower than the week's median": one_of_week,
}


def false_alarms(rule: Rule, of: Nights, values: Floats) -> int:
    """Return how many changes a rule reports for a series without any. A change that is reported twice counts once."""
    reported: list[int] = []
    for _, index in rule(of, values, FIRST):
        if all(abs(index - earlier) > NEAR for earlier in reported):
            reported.append(index)
    return len(reported)


def delay(rule: Rule, of: Nights, values: Floats, at: int) -> int | None:
    """Return after how many nightly runs a rule reports the change at `at`, or None."""
    return next((count - at for count, index in rule(of, values, at + 1) if abs(index - at) <= NEAR), None)


def false_count(name: str, of: str, kind: Kind, seed: int, trials: Sequence[int]) -> int:
    """Return the total number of false alarms of a rule, for the times or the ratios of series with these numbers."""
    courses = (nights(kind, np.random.default_rng([seed, trial])) for trial in trials)
    return sum(
        false_alarms(RULES[name], course, course.times if of == "times" else course.ratios) for course in courses
    )


def at_most(count: int) -> float:
    """Return the mean of a Poisson distribution whose count is at most `count` with a probability of 5 %."""
    return float(gammaincinv(count + 1.0, 0.95))


def between(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper and Pearson)."""
    low = float(betaincinv(count, of - count + 1, 0.025)) if count else 0.0
    return low, float(betaincinv(count + 1, of - count, 0.975)) if count < of else 1.0


def delays(name: str, of: tuple[Kind, float, float], seed: int, trials: Sequence[int]) -> list[int | None]:
    """Return after how many nightly runs a rule reports that the ratio changed, in series with these numbers.

    `of` is the kind of machine, the change of the time (0.05), and the factor on the noise.
    """
    kind, step, noise = of
    waits = []
    for trial in trials:
        draw = np.random.default_rng([seed, trial])
        at = int(draw.integers(30, 80))
        course = nights(kind, draw, step=math.log1p(step), at=at, noise=noise)
        waits.append(delay(RULES[name], course, course.ratios, at))
    return waits


def day(night: int) -> str:
    """Return the start of a nightly run, as text."""
    return (datetime(2026, 1, 1, 4, tzinfo=UTC) + timedelta(days=night)).isoformat()
