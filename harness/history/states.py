"""The states of changes in a history: tentative, suspected, confirmed or refuted.

A change between the results of successive runs is only suspected, because something else may have changed between
the runs. It is confirmed if both sides were measured again in one run (`harness.history.confirm`), and the difference
remained. A refuted change isn't suspected again.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from harness.analysis.statistics import student
from harness.history.detection import LEAST, ChangePoint, SeriesChanges, detect_changes
from harness.history.levels import ValuesAndErrors
from harness.history.segments import SegmentBoundary, find_boundaries, split_segments
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.history import Decision, Key, Series, SeriesPoint

#: The largest distance, in runs, between the found place of a change and its true place. Annotations within this
#: distance are suspects, and decisions within this distance apply to the change.
NEAR = 2

#: Returns the changes of each series.
Detector = Callable[[Sequence[ValuesAndErrors]], list[SeriesChanges]]


class State(StrEnum):
    """The state of a change. `WATCH` stands for a tentative change."""

    CONFIRMED = "confirmed"
    SUSPECTED = "suspected"
    WATCH = "watch"
    REFUTED = "refuted"


@dataclass(frozen=True, slots=True)
class SeriesFinding:
    """A change of one series, from the run `since` on, which started at `started`.

    - `ratio`: time(after) / time(before), both relative to the baseline, with its 95 % interval from `low` to `high`
    - `suspects`: the annotations near the change, as texts
    - `cause`: a text that is the same for findings with the same start, machine and suspects
    - `decision`: the result of the last confirmation, if the change is confirmed or refuted
    """

    key: Key
    state: State
    since: str
    started: str
    ratio: float
    low: float
    high: float
    suspects: Sequence[str]
    cause: str
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class JudgedSeries:
    """A series with its boundaries and changes, and a finding for each change, in order.

    The `index` of a boundary or a change is a position in the points of the series.
    """

    series: Series
    breaks: Sequence[SegmentBoundary]
    changes: Sequence[ChangePoint]
    findings: Sequence[SeriesFinding]


def judge_series(series: Series, decisions: Sequence[Decision] = (), detect: Detector = detect_changes) -> JudgedSeries:
    """Return a series with its findings, as `judge_all` does for several."""
    (judged,) = judge_all([series], decisions, detect)
    return judged


def judge_all(
    history: Iterable[Series], decisions: Sequence[Decision] = (), detect: Detector = detect_changes
) -> list[JudgedSeries]:
    """Return the series of a history with their findings.

    If a later change in the same segment reversed a change, both are left out, unless the first one was confirmed.
    """
    prepared = [
        (series, boundaries, [_Segment.of(series.points, segment) for segment in split_segments(series, boundaries)])
        for series in history
        for boundaries in [find_boundaries(series)]
    ]
    all_values = [(segment.values, segment.errors) for _, _, segments in prepared for segment in segments]
    found = iter(detect(all_values))  # all at once, which is faster
    return [
        _judge(series, boundaries, [(segment, next(found)) for segment in segments], decisions)
        for series, boundaries, segments in prepared
    ]


def _judge(
    series: Series,
    boundaries: Sequence[SegmentBoundary],
    segments: Sequence[tuple["_Segment", SeriesChanges]],
    decisions: Sequence[Decision],
) -> JudgedSeries:
    own_decisions = [decision for decision in decisions if decision.key == series.key]
    open_changes: list[tuple[ChangePoint, SeriesFinding]] = []
    for segment, detected in segments:
        for change, is_watched in _select_changes(series.points, segment, boundaries, detected):
            finding = _make_finding(series, change, boundaries, own_decisions, is_watched=is_watched)
            last_change, last_finding = open_changes[-1] if open_changes else (None, None)
            distance = abs(change.after - last_change.before) if last_change else math.inf
            is_reversed = last_change and last_change.index in segment.positions and distance <= LEAST
            if last_finding and is_reversed and not is_watched and last_finding.state is not State.CONFIRMED:
                open_changes.pop()
            else:
                open_changes.append((change, finding))
    changes, findings = [change for change, _ in open_changes], [finding for _, finding in open_changes]
    return JudgedSeries(series, boundaries, changes, findings)


def find_changes(history: Iterable[Series], decisions: Sequence[Decision] = ()) -> list[SeriesFinding]:
    """Return the findings in a history, in the order of its series."""
    return [finding for judged in judge_all(history, decisions) for finding in judged.findings]


class _Segment(NamedTuple):
    """The points of a segment that have a result: their positions in the series, their log ratios and errors."""

    positions: range
    places: Sequence[int]
    values: Sequence[float]
    errors: Sequence[float]

    @classmethod
    def of(cls, points: Sequence[SeriesPoint], segment: range) -> "_Segment":
        places = [index for index in segment if points[index].log_ratio is not None]
        values = [points[index].log_ratio or 0.0 for index in places]
        return cls(segment, places, values, [compute_standard_error(points[index]) for index in places])


def _select_changes(
    points: Sequence[SeriesPoint],
    segment: _Segment,
    boundaries: Sequence[SegmentBoundary],
    detected: SeriesChanges,
) -> list[tuple[ChangePoint, bool]]:
    """Return the changes in a segment, moved to the nearest annotation, and whether each is tentative."""
    significant = detected.significant
    # only the last tentative change counts, because its level continues until today
    watched_changes = [
        change
        for change in detected.tentative[-1:]
        if all(abs(change.index - other.index) > NEAR for other in significant)
    ]
    watched_changes = watched_changes if segment.positions.stop == len(points) else []
    return [
        (_move_to_annotation(change, segment.places, segment.positions, boundaries), change in watched_changes)
        for change in [*significant, *watched_changes]
    ]


def compute_standard_error(point: SeriesPoint) -> float:
    """Return the standard error of a point's log ratio, from its interval; 0 if it isn't known.

    From two rounds, it isn't known. Of points with the same variability, the largest 5 % of such errors are at least 30
    times the smallest 5 %, so weights from them only add noise. The differences between points show the variability.
    """
    if point.low is None or point.high is None or point.rounds < FEWEST_ROUNDS:
        return 0.0
    return max(0.0, point.high - point.low) / 2.0 / student(point.rounds - 1)


def _move_to_annotation(
    change: ChangePoint, places: Sequence[int], segment: range, boundaries: Sequence[SegmentBoundary]
) -> ChangePoint:
    """Return the change at its position in the series, or at the nearest annotation if one is near."""
    previous_place, place = places[change.index - 1], places[change.index]

    def measure_distance(mark: int) -> int:
        # runs without a result may be between the annotation and the change
        return 0 if previous_place < mark <= place else min(abs(mark - place), abs(mark - previous_place - 1))

    marks = [
        boundary.index
        for boundary in boundaries
        if boundary.index in segment[1:] and measure_distance(boundary.index) <= NEAR
    ]
    return replace(change, index=min(marks, key=measure_distance, default=place))


def _make_finding(
    series: Series,
    change: ChangePoint,
    boundaries: Sequence[SegmentBoundary],
    decisions: Sequence[Decision],
    *,
    is_watched: bool,
) -> SeriesFinding:
    key, point = series.key, series.points[change.index]
    marks = [boundary for boundary in boundaries if boundary.index == change.index and not boundary.is_cut]
    suspects = [mark.words for mark in marks]
    is_moving = bool(marks) and all(mark.is_version for mark in marks)
    state = State.WATCH if is_watched else State.SUSPECTED
    newest_decision = None
    run_places = {other.run: index for index, other in enumerate(series.points)}
    version_places = {entry.origin.version: index for index, entry in reversed(list(enumerate(series.points)))}
    for decision in decisions:
        places = [
            run_places.get(decision.since, -math.inf),
            *(version_places.get(entry, -math.inf) for entry in decision.pair[1:]),
        ]
        is_near = any(abs(entry - change.index) <= NEAR for entry in places)
        # a release line has a new version in each run, so only the places can show whether it is the same change
        is_same = (list(decision.suspects) == suspects and bool(suspects)) or (is_moving and is_near)
        if is_same or (is_near and not suspects and not decision.suspects):
            state, newest_decision = State.CONFIRMED if decision.confirmed else State.REFUTED, decision
    # a changed file affects all environments
    environments = [] if any(suspect.startswith("the file of") for suspect in suspects) else [key.environment]
    pair = [" → ".join(newest_decision.pair)] if newest_decision and newest_decision.pair else []
    cause = " | ".join([key.machine, *environments, *(pair or suspects or [point.run])])
    return SeriesFinding(
        key, state, point.run, point.started, change.ratio, change.low, change.high, suspects, cause, newest_decision
    )
