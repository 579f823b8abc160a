"""Simulated histories of several series: suspicions, confirmations and issues in each nightly run."""

import math
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench.simulation.nights import FIRST, NEAR, NIGHTS, ROUND, ROUNDS, SOON, Kind, Nights, day, nights
from harness.analysis.statistics import student
from harness.history.alerts import find_alerts
from harness.history.confirm import decide_finding
from harness.history.folder import History
from harness.history.issues import IssueAction as Action
from harness.history.issues import IssueStep, TrackedIssue, plan_steps
from harness.history.states import SeriesFinding, State, find_changes
from harness.model.history import CellPoint, Decision, MeasuredSeries, Measurer, SeriesSoftware, Summary
from harness.model.launch import Status
from harness.model.run import Machine


@dataclass(frozen=True, slots=True)
class Whole:
    """The results of one or several histories: years of series, false suspicions, and issues without a real change.

    Also the number of real changes, how many of them were suspected within five nightly runs, how many were confirmed,
    how many have exactly one issue, and how often issues were edited.
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
    """Simulate the whole process: each nightly run is added to a history, changes are detected, confirmed and reported.

    Half of the history's cells become 5 % slower at some nightly run. After each nightly run, up to three suspicions
    are measured again (ten paired rounds of both sides), and the issues of a repository are updated.
    """
    draw = np.random.default_rng([seed, number])
    cut = NIGHTS // 2 + int(draw.integers(-15, 15))
    ats = [_at(kind, cut, draw) if cell % 2 else None for cell in range(cells)]
    courses = [nights(kind, draw, step=math.log(1.05) if at else 0.0, at=at or 0, cut=cut) for at in ats]
    suspected: dict[tuple[int, bool], int] = {}
    confirmed: set[int] = set()
    issues = Issues()
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for night in range(NIGHTS):
            history.add(_summary(courses, ats, night))
            if night + 1 < FIRST:
                continue
            series, decided = history.series(), 0
            for finding in find_changes(series, history.decisions()):
                cell, is_true = int(finding.key.scenario[1:]), _is_true(ats, finding.key.scenario, finding.started)
                if finding.state is State.SUSPECTED:
                    suspected.setdefault((cell, is_true), night + 1)
                    if decided < 3:
                        decided += 1
                        _confirm(history, finding, math.log(1.05) if is_true else 0.0, draw, night)
                if finding.state is State.CONFIRMED and is_true:
                    confirmed.add(cell)
            for step in plan_steps(find_alerts(series, history.decisions()), issues.open):
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
    """Return the index of a change, not near a new machine or driver, at which the history starts a new segment."""
    while True:
        at = int(draw.integers(30, 80))
        if kind not in (Kind.REPLACED, Kind.DRIVER) or not cut - SOON <= at < cut + FIRST:
            return at


def _is_true(ats: Sequence[int | None], scenario: str, started: str) -> bool:
    """Return whether a change reported at a nightly run (an ISO 8601 date) is real."""
    at = ats[int(scenario[1:])]
    began = datetime.fromisoformat(started).replace(hour=4, tzinfo=UTC)
    return at is not None and abs(began - datetime.fromisoformat(day(at))) <= timedelta(days=NEAR)


_TITLE = re.compile(r"Slower since (\S+): (s\d+) in .*")


class Issues:
    """The open issues of a repository, which nobody closes. `edits` counts changes of their texts."""

    def __init__(self) -> None:
        """Start without issues."""
        self.open: list[TrackedIssue] = []
        self.edits = 0

    def do(self, step: IssueStep) -> None:
        """Execute a step that the alert rules request."""
        if step.kind is Action.OPEN:
            self.open.append(TrackedIssue(len(self.open) + 1, step.alert.title, step.alert.text))
        elif step.kind is Action.EDIT and step.issue:
            self.edits += 1
            self.open[step.issue.number - 1] = TrackedIssue(step.issue.number, step.alert.title, step.alert.text)


def _confirm(history: History, finding: SeriesFinding, truth: float, draw: np.random.Generator, night: int) -> None:
    """Measure both sides again, and return the decision."""
    logs = truth + draw.normal(size=10) * ROUND
    mean, half = float(logs.mean()), student(9) * float(logs.std(ddof=1)) / math.sqrt(10.0)
    decision = decide_finding(mean, mean - half, mean + half, finding.ratio, 0.03)
    if decision is not None:
        ends = (math.exp(mean), math.exp(mean - half), math.exp(mean + half))
        key, since, suspects = finding.key, finding.since, finding.suspects
        history.decide(Decision(key, since, list(suspects), decision, f"confirm-{night}", day(night), *ends))


def _summary(courses: Sequence[Nights], ats: Sequence[int | None], night: int) -> Summary:
    """Return a nightly run of all cells. Each cell is a separate scenario, whose file changes when its time changes."""
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
        f"run-{night}", day(night), "1", "", "", 0.03, "1 CPU", "tf1.14", "kit", [measurer], software, scenarios, points
    )
