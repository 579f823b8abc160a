"""The two stages of nightly runs on stored series: the screen, and confirmations whose results are drawn.

A confirmation has the true change, plus the mean of the deviations of as many nightly runs as it has rounds, drawn from
the series itself. This is too careful: rounds of one run agree better than nightly runs do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.replay.rules import FIRST
from harness.analysis.looks import compute_last_share
from harness.analysis.statistics import student
from harness.history.confirm import decide_finding
from harness.history.levels import MAD
from harness.history.states import SeriesFinding, State, judge_all
from harness.model.defaults import ALPHA, CONFIRM_ROUNDS, CONFIRMATIONS, MARGIN, MOST_CONFIRM_ROUNDS
from harness.model.history import Decision, Series

#: The states of changes that the next run measures side by side.
_OPEN = (State.SUSPECTED, State.WATCH, State.LIKELY)


@dataclass(frozen=True, slots=True)
class Event:
    """A confirmation: the number of nightly runs at that time, the first slower one, and the resulting state.

    `state` is None if the result was unclear after `rounds` rounds.
    """

    count: int
    index: int
    state: State | None
    rounds: int


class Stages:
    """The nightly runs of one series of a history with `count` series. A change by `log` (log scale) starts at `at`."""

    def __init__(self, series: Series, count: int, seed: int, log: float = 0.0, at: int = 10**9) -> None:
        points = [
            point._replace(**{name: getattr(point, name) + log for name in ("log_ratio", "low", "high")})
            if index >= at and point.low is not None
            else point._replace(log_ratio=(point.log_ratio or 0.0) + (log if index >= at else 0.0))
            for index, point in enumerate(series.points)
        ]
        self.series, self.log, self.at, self.count = replace(series, points=points), log, at, count
        self.draw = np.random.default_rng([seed, at])
        original = np.array([point.log_ratio or 0.0 for point in series.points])
        self.deviations = original - np.median(original)
        spread = MAD * float(np.median(np.abs(self.deviations)))
        self.deviations = self.deviations[np.abs(self.deviations) < 3.5 * spread]
        self.decisions: list[Decision] = []
        self.events: list[Event] = []

    def run(self, first: int, end: int) -> None:
        """Run the nightly jobs with `first` to `end` stored runs."""
        for count in range(max(FIRST, first), end + 1):
            series = replace(self.series, points=self.series.points[:count])
            # a share of the budget has the same threshold as the whole budget for all series
            (judged,) = judge_all([series], self.decisions, confirmations=CONFIRMATIONS / self.count)
            for finding in judged.findings:
                is_new = finding.decision is None or finding.decision.run < series.points[-1].run
                if finding.state in _OPEN and is_new and finding.ratio > 1.0:
                    self._confirm(series, finding, count)

    def _confirm(self, series: Series, finding: SeriesFinding, count: int) -> None:
        runs = [point.run for point in series.points]
        index = runs.index(finding.since)
        truth = self.log if self.at < count and index <= self.at + 3 else 0.0
        values = np.array([])
        is_confirmed = None
        while is_confirmed is None and values.size < MOST_CONFIRM_ROUNDS:
            values = np.append(values, truth + self.draw.choice(self.deviations, CONFIRM_ROUNDS))
            looks = range(CONFIRM_ROUNDS, values.size + 1, CONFIRM_ROUNDS)
            level = 1.0 - ALPHA * compute_last_share(looks)
            half = student(values.size - 1, level) * float(values.std(ddof=1)) / math.sqrt(values.size)
            log = float(values.mean())
            is_confirmed = decide_finding(log, log - half, log + half, finding.ratio, MARGIN)
        state = None
        if is_confirmed is not None:
            ratios = [math.exp(value) for value in (log, log - half, log + half)]
            suspects = list(finding.suspects)
            decision = Decision(
                finding.key, finding.since, suspects, is_confirmed, runs[-1], series.points[-1].started, *ratios
            )
            self.decisions.append(decision)
            (judged,) = judge_all([series], self.decisions, confirmations=CONFIRMATIONS / self.count)
            state = next((entry.state for entry in judged.findings if entry.decision == decision), State.REFUTED)
        self.events.append(Event(count, index, state, values.size))


def replay_steps(
    all_series: Sequence[Series], percent: int, count: int, nights: int = 5
) -> tuple[list[Event], list[list[tuple[int, Event]]]]:
    """Return the events without a change, and the events after each step, with the number of runs since the step."""
    log, unchanged, changed = math.log1p(percent / 100.0), [], []
    for number, series in enumerate(all_series):
        stages = Stages(series, count, number)
        history: list[tuple[list[Decision], int]] = []
        for night in range(FIRST, len(series.points) + 1):
            history.append((list(stages.decisions), night))
            stages.run(night, night)
        unchanged += stages.events
        for at in range(10, len(series.points) - 2):
            step = Stages(series, count, number, log, at)
            step.decisions = list(history[at + 1 - FIRST][0])
            step.run(at + 1, min(len(series.points), at + nights))
            changed.append([(event.count - at, event) for event in step.events])
    return unchanged, changed
