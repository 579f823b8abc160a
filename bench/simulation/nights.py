"""Nights of which the truth is known: what our change points say of them, and other tools' rules beside them.

A night is `ROUNDS` paired rounds of a cell and its reference on one machine. What the machine does to both (it gets
slower, it swings, it is another host) moves their times, and their ratio only by a tenth of that: no two pieces of work
are slowed by quite the same.
"""

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import numpy as np
from otava.analysis import compute_change_points
from scipy.special import betaincinv, gammaincinv

from bench.simulation.machine import Floats
from harness.analysis.statistics import student
from harness.history.alerts import IssueStep, TrackedIssue, find_alerts, plan_steps
from harness.history.alerts import Kind as Action
from harness.history.change_cache import ChangeCache
from harness.history.confirm import decide_finding
from harness.history.index import History
from harness.history.states import SeriesFinding, State, find_changes, judge_series
from harness.model.history import (
    CellPoint,
    Decision,
    Key,
    MeasuredSeries,
    Measurer,
    Origin,
    Series,
    SeriesPoint,
    SeriesSoftware,
    Summary,
)
from harness.model.launch import Status
from harness.model.run import Machine

NIGHTS, ROUNDS = 100, 5
#: No rule is asked before so many nights.
FIRST = 10
#: The spread of one paired round's log ratio, and of what a whole night does to the ratio.
ROUND, NIGHT = 0.02, 0.005
#: A change is found if its night is missed by no more.
NEAR = 5
#: It is to be found within so many nights.
SOON = 5


class Kind(StrEnum):
    """What a machine does over the nights."""

    STILL = "still"
    DRIFT = "drift"
    SPIKES = "spikes"
    HOSTS = "random hosts"
    REPLACED = "machine replaced"
    DRIVER = "new driver"


_ORIGINS = {driver: Origin(driver, "kit", "file", "lock", "image", "lock") for driver in ("old", "new")}


@dataclass(frozen=True, slots=True)
class Nights:
    """Log times and log ratios of nights, with the ratios' standard errors; another machine or driver from `cut` on."""

    kind: Kind
    times: Floats
    ratios: Floats
    errors: Floats
    cut: int

    def series(self, points: Sequence[SeriesPoint]) -> list[Series]:
        """What a history has of the first nights, of which these are the points."""
        count = len(points)
        key = Key("m-1", "step", "cpu", (), "tf2.1", "tf1.14")
        if self.kind is Kind.REPLACED and count > self.cut:
            return [Series(key, points[: self.cut]), Series(replace(key, machine="m-2"), points[self.cut :])]
        return [Series(key, points)]

    def point(self, night: int) -> SeriesPoint:
        """What a history has of a night."""
        ratio, half = float(self.ratios[night]), float(self.errors[night]) * student(ROUNDS - 1)
        driver = "new" if self.kind is Kind.DRIVER and night >= self.cut else "old"
        origin = _ORIGINS[driver]
        seconds = math.exp(float(self.times[night]))
        ends = (ratio - half, ratio + half)
        return SeriesPoint(f"run-{night}", _day(night), ratio, *ends, ROUNDS, seconds, None, None, "ok", origin)


def nights(
    kind: Kind, draw: np.random.Generator, *, step: float = 0.0, at: int = 0, noise: float = 1.0, cut: int | None = None
) -> Nights:
    """Nights with a step (log scale) of the cell's time from night `at` on; `noise` times as noisy as usual."""
    moved = draw.normal(size=NIGHTS) * 0.01  # the machine's own
    apart = np.zeros(NIGHTS)
    cut = NIGHTS // 2 + int(draw.integers(-15, 15)) if cut is None else cut
    if kind is not Kind.STILL:
        day = np.arange(NIGHTS)
        moved = moved + 0.10 * day / NIGHTS + 0.03 * np.sin(2.0 * np.pi * day / 30.0 + draw.uniform(0.0, 6.3))
    if kind is Kind.SPIKES:
        # one night in thirty is disturbed, and the cell by more than its reference
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


#: A rule says at which nights it sees the time change, once it has the nights before each count, from a first count
#: on: (count, index) pairs, in the order of the counts.
Rule = Callable[[Nights, Floats, int], Iterable[tuple[int, int]]]


def ours(of: Nights, values: Floats, first: int = FIRST, known: ChangeCache | None = None) -> Iterator[tuple[int, int]]:
    """What is suspected, by the history's own states."""
    points = [of.point(night) for night in range(values.size)]
    for count in range(first, values.size + 1):
        for series in of.series(points[:count]):
            began = int(series.points[0].run.removeprefix("run-"))
            judgement = judge_series(series, known=known)
            for change, finding in zip(judgement.changes, judgement.findings, strict=True):
                if finding.state is State.SUSPECTED:
                    yield count, began + change.index


def otava(p: float, least: float) -> Rule:
    """apache-otava, with a significance and a least change."""

    def rule(series: Nights, values: Floats, first: int = FIRST) -> Iterator[tuple[int, int]]:
        times = np.exp(values).tolist()
        for count in range(first, values.size + 1):
            points, _ = compute_change_points(times[:count], window_len=50, max_pvalue=p, min_magnitude=least)
            yield from ((count, int(point.index)) for point in points)

    return rule


def asv(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """asv's regressions of 5 %: levels by the least sum of distances, of as many as its criterion says.

    After asv/step_detect.py: k levels minimise ln(sum) + 4 k ln n / n; here by the exact search, of at most five, of
    two nights at least, with even weights. A change is told where the last level is more than 5 % off the one before.
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
    """Perfherder's: t above 7 and a change of 2 %, of the 12 to 24 nights before and the 12 from a night on.

    After treeherder's perfalert: the nights weigh less the farther they are, and a neighbour's t is not larger.
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
    """A night that is 5 % slower than the one before."""
    return [
        (night + 1, night)
        for night in range(first - 1, values.size)
        if values[night] - values[night - 1] > math.log(1.05)
    ]


def one_of_week(of: Nights, values: Floats, first: int = FIRST) -> list[tuple[int, int]]:
    """A night that is 5 % slower than the median of the seven before."""
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
    "5 % slower than the night before": one_night,
    "5 % slower than the week's median": one_of_week,
}


def false_alarms(rule: Rule, of: Nights, values: Floats) -> int:
    """How many changes a rule tells of a series that has none. One change told twice counts once."""
    reported: list[int] = []
    for _, index in rule(of, values, FIRST):
        if all(abs(index - earlier) > NEAR for earlier in reported):
            reported.append(index)
    return len(reported)


def delay(rule: Rule, of: Nights, values: Floats, at: int) -> int | None:
    """After how many nights a rule tells that the time changed at `at`; None where it does not."""
    return next((count - at for count, index in rule(of, values, at + 1) if abs(index - at) <= NEAR), None)


def false_count(name: str, of: str, kind: Kind, seed: int, trials: Sequence[int]) -> int:
    """How many false alarms a rule gives in all, of the times or the ratios of series with these numbers."""
    courses = (nights(kind, np.random.default_rng([seed, trial])) for trial in trials)
    return sum(
        false_alarms(RULES[name], course, course.times if of == "times" else course.ratios) for course in courses
    )


def at_most(count: int) -> float:
    """The mean of a Poisson count, which is so many or fewer with 5 %."""
    return float(gammaincinv(count + 1.0, 0.95))


def between(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Clopper and Pearson)."""
    low = float(betaincinv(count, of - count + 1, 0.025)) if count else 0.0
    return low, float(betaincinv(count + 1, of - count, 0.975)) if count < of else 1.0


def delays(name: str, of: tuple[Kind, float, float], seed: int, trials: Sequence[int]) -> list[int | None]:
    """After how many nights a rule tells that the ratio changed, in series with these numbers.

    `of` is what the nights are, by how much the time changes (0.05), and how many times as noisy as usual it is.
    """
    kind, step, noise = of
    waits = []
    for trial in trials:
        draw = np.random.default_rng([seed, trial])
        at = int(draw.integers(30, 80))
        course = nights(kind, draw, step=math.log1p(step), at=at, noise=noise)
        waits.append(delay(RULES[name], course, course.ratios, at))
    return waits


@dataclass(frozen=True, slots=True)
class Whole:
    """Of a history, or of several together: their years of series, false suspicions, and issues opened for no change.

    Of what did change, how many there are, how many were suspected within five nights, were confirmed, and have exactly
    one issue; and how often an issue was edited after it was opened.
    """

    years: float
    false_suspicions: int
    false_alarms: int
    changes: int
    soon: int
    confirmed: int
    alarmed: int
    edits: int


def whole(kind: Kind, seed: int, number: int, *, cells: int = 8) -> Whole:
    """The whole way, night after night: added to a history, detected, confirmed side by side, alarmed.

    Half of the history's cells become 5 % slower at some night. Each night up to three suspicions are measured again
    (ten paired rounds of both sides), and the issues of a repository are brought up to date.
    """
    draw = np.random.default_rng([seed, number])
    cut = NIGHTS // 2 + int(draw.integers(-15, 15))
    ats = [_at(kind, cut, draw) if cell % 2 else None for cell in range(cells)]
    courses = [nights(kind, draw, step=math.log(1.05) if at else 0.0, at=at or 0, cut=cut) for at in ats]
    suspected: dict[tuple[int, bool], int] = {}
    confirmed: set[int] = set()
    cache, issues = ChangeCache(), Issues()
    with (
        tempfile.TemporaryDirectory() as folder,
        History.open(str(Path(folder) / "history.duckdb"), writing=True) as history,
    ):
        for night in range(NIGHTS):
            history.add(_summary(courses, ats, night))
            if night + 1 < FIRST:
                continue
            series, decided = history.series(), 0
            for finding in find_changes(series, history.decisions(), known=cache):
                cell, is_true = int(finding.key.scenario[1:]), _is_true(ats, finding.key.scenario, finding.started)
                if finding.state is State.SUSPECTED:
                    suspected.setdefault((cell, is_true), night + 1)
                    if decided < 3:
                        decided += 1
                        _confirm(history, finding, math.log(1.05) if is_true else 0.0, draw, night)
                if finding.state is State.CONFIRMED and is_true:
                    confirmed.add(cell)
            for step in plan_steps(find_alerts(series, history.decisions(), cache), issues.open):
                issues.do(step)
    changed = [cell for cell, at in enumerate(ats) if at is not None]
    titles = [_TITLE.fullmatch(issue.title) for issue in issues.open]
    right = Counter(match[2] for match in titles if match and _is_true(ats, match[2], match[1]))
    return Whole(
        years=cells * (NIGHTS - FIRST) / 365.0,
        false_suspicions=sum(not is_true for _, is_true in suspected),
        false_alarms=len(titles) - right.total(),
        changes=len(changed),
        soon=sum(suspected.get((cell, True), NIGHTS + SOON + 1) - (ats[cell] or 0) <= SOON for cell in changed),
        confirmed=len(confirmed),
        alarmed=sum(right[f"s{cell}"] == 1 for cell in changed),
        edits=issues.edits,
    )


def _at(kind: Kind, cut: int, draw: np.random.Generator) -> int:
    """A night to change at; not where another machine or driver hides it, as its numbers begin anew then."""
    while True:
        at = int(draw.integers(30, 80))
        if kind not in (Kind.REPLACED, Kind.DRIVER) or not cut - SOON <= at < cut + FIRST:
            return at


def _is_true(ats: Sequence[int | None], scenario: str, started: str) -> bool:
    """Whether a change that was seen at a night, an ISO 8601 date, is one."""
    at = ats[int(scenario[1:])]
    began = datetime.fromisoformat(started).replace(hour=4, tzinfo=UTC)
    return at is not None and abs(began - datetime.fromisoformat(_day(at))) <= timedelta(days=NEAR)


_TITLE = re.compile(r"Slower since (\S+): (s\d+) in .*")


class Issues:
    """The open issues of a repository, which nobody closes; `edits` counts changes of their texts."""

    def __init__(self) -> None:
        """Begin without an issue."""
        self.open: list[TrackedIssue] = []
        self.edits = 0

    def do(self, step: IssueStep) -> None:
        """Carry out a step."""
        if step.kind is Action.OPEN:
            self.open.append(TrackedIssue(len(self.open) + 1, step.alert.title, step.alert.text))
        elif step.kind is Action.EDIT and step.issue:
            self.edits += 1
            self.open[step.issue.number - 1] = TrackedIssue(step.issue.number, step.alert.title, step.alert.text)


def _confirm(history: History, finding: SeriesFinding, truth: float, draw: np.random.Generator, night: int) -> None:
    """Both sides again, and what is decided."""
    logs = truth + draw.normal(size=10) * ROUND
    mean, half = float(logs.mean()), student(9) * float(logs.std(ddof=1)) / math.sqrt(10.0)
    decision = decide_finding(mean, mean - half, mean + half, finding.ratio, 0.03)
    if decision is not None:
        ends = (math.exp(mean), math.exp(mean - half), math.exp(mean + half))
        key, since, suspects = finding.key, finding.since, finding.suspects
        history.decide(Decision(key, since, list(suspects), decision, f"confirm-{night}", _day(night), *ends))


def _summary(courses: Sequence[Nights], ats: Sequence[int | None], night: int) -> Summary:
    """One night's run of all cells, each a scenario of its own, whose file changes when its time does."""
    points, scenarios = [], {}
    machine = Machine("m-2" if courses[0].kind is Kind.REPLACED and night >= courses[0].cut else "m-1")
    driver = "new" if courses[0].kind is Kind.DRIVER and night >= courses[0].cut else "old"
    for cell, (course, at) in enumerate(zip(courses, ats, strict=True)):
        point = course.point(night)
        name = f"s{cell}"
        scenarios[name] = MeasuredSeries("new" if at is not None and night >= at else "old", name)
        ends = (point.log_ratio, point.low, point.high)
        points.append(
            CellPoint(machine.id, name, "cpu", {}, "tf2.1", Status.OK, "tf1.14", {}, "step", *ends, ROUNDS, 0.01)
        )
    software = {name: SeriesSoftware("lock", "image", {}) for name in ("tf1.14", "tf2.1")}
    measurer = Measurer(machine, driver=driver)
    return Summary(
        f"run-{night}",
        _day(night),
        "1",
        "",
        "",
        0.03,
        "1 CPU",
        "tf1.14",
        "kit",
        [measurer],
        software,
        scenarios,
        points,
    )


def _day(night: int) -> str:
    return (datetime(2026, 1, 1, 4, tzinfo=UTC) + timedelta(days=night)).isoformat()
