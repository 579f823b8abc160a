"""The states of changes in a history: watched, suspected, likely, confirmed or refuted.

A change between the results of successive runs is only suspected, because something else may have changed between
the runs. So both sides are measured again in one run (`harness.history.confirm`). If the difference remains there, the
change is likely. It is confirmed if a second such run agrees, or if the series itself is clear (`detection`). A refuted
change isn't suspected again.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from harness.analysis.statistics import student
from harness.history.detection import LEAST, ChangePoint, detect_changes
from harness.history.levels import ValuesAndErrors
from harness.history.screen import Past, find_threshold, measure_step, screen
from harness.history.segments import SegmentBoundary, find_boundaries, find_count_changes, split_segments
from harness.model.defaults import CONFIRMATIONS, FEWEST_ROUNDS, MARGIN
from harness.model.history import Decision, Key, Series, SeriesPoint

#: The largest distance, in runs, between the found place of a change and its true place. Annotations within this
#: distance are suspects, and decisions within this distance apply to the change.
NEAR = 2

#: Returns the changes of each series.
Detector = Callable[[Sequence[ValuesAndErrors]], list[list[ChangePoint]]]


class State(StrEnum):
    """The state of a change. `WATCH`: the screen of the newest runs found it."""

    CONFIRMED = "confirmed"
    LIKELY = "likely"
    SUSPECTED = "suspected"
    WATCH = "watch"
    REFUTED = "refuted"


@dataclass(frozen=True, slots=True)
class SeriesFinding:
    """A change of one series, from the run `since` on, which started at `started`.

    - `ratio`: time(after) / time(before), both relative to the baseline, with its 95 % interval from `low` to `high`
    - `suspects`: the annotations near the change, as texts
    - `cause`: a text that is the same for findings with the same start, machine and suspects
    - `decision`: the result of the last confirmation, if there is one
    - `is_drift`: the change took a month, so it is between the run before `since` and the newest run
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
    is_drift: bool = False


@dataclass(frozen=True, slots=True)
class JudgedSeries:
    """A series with its boundaries and changes, and a finding for each change, in order.

    The `index` of a boundary or a change is a position in the points of the series.
    """

    series: Series
    breaks: Sequence[SegmentBoundary]
    changes: Sequence[ChangePoint]
    findings: Sequence[SeriesFinding]


def judge_all(
    history: Iterable[Series],
    decisions: Sequence[Decision] = (),
    detect: Detector = detect_changes,
    confirmations: float = CONFIRMATIONS,
) -> list[JudgedSeries]:
    """Return the series of a history with their findings.

    If a later change in the same segment reversed a change, both are left out, unless the first one was confirmed.
    `confirmations` is the number of unchanged series that may be measured again per month.
    """
    prepared = [
        (series, boundaries, [_Segment.of(series.points, segment) for segment in split_segments(series, boundaries)])
        for series in history
        for boundaries in [find_boundaries(series)]
    ]
    all_values = [(segment.values, segment.errors) for _, _, segments in prepared for segment in segments]
    found = iter(detect(all_values))  # all at once, which is faster
    threshold = find_threshold(sum(bool(series.key.reference) for series, _, _ in prepared), confirmations)
    judged = []
    for series, boundaries, segments in prepared:
        own_decisions = [decision for decision in decisions if decision.key == series.key]
        changes = [
            _Change(
                _move_to_annotation(change, segment.places, segment.positions, boundaries), segment.positions, source
            )
            for segment in segments
            for change, source in _list_changes(series, segment, next(found), own_decisions, threshold)
        ]
        judged.append(_judge(series, boundaries, changes, own_decisions))
    return judged


def _judge(
    series: Series, boundaries: Sequence[SegmentBoundary], changes: Sequence["_Change"], decisions: Sequence[Decision]
) -> JudgedSeries:
    open_changes: list[tuple[_Change, SeriesFinding]] = []
    for change in changes:
        finding = _make_finding(series, change, boundaries, decisions)
        last_change, last_finding = open_changes[-1] if open_changes else (None, None)
        is_reversed = (
            last_change
            and last_change.positions == change.positions
            and abs(change.point.after - last_change.point.before) <= LEAST
            and change.source is not _Source.SCREENED
        )
        if last_finding and is_reversed and last_finding.state is not State.CONFIRMED:
            open_changes.pop()
        else:
            open_changes.append((change, finding))
    points, findings = [change.point for change, _ in open_changes], [finding for _, finding in open_changes]
    return JudgedSeries(series, boundaries, points, findings)


def find_changes(
    history: Iterable[Series], decisions: Sequence[Decision] = (), confirmations: float = CONFIRMATIONS
) -> list[SeriesFinding]:
    """Return the findings in a history, in the order of its series (see `judge_all`)."""
    judged_series = judge_all(history, decisions, confirmations=confirmations)
    return [finding for judged in judged_series for finding in judged.findings]


class _Source(Enum):
    """The evidence for a change: the series itself, a confirmation, or the screen of the newest runs."""

    SIGNIFICANT = auto()
    DECIDED = auto()
    SCREENED = auto()
    DRIFT = auto()


class _Change(NamedTuple):
    """A change at a position in the series, in the segment with these `positions`."""

    point: ChangePoint
    positions: range
    source: _Source


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


def _list_changes(
    series: Series,
    segment: _Segment,
    significant: Sequence[ChangePoint],
    decisions: Sequence[Decision],
    threshold: float,
) -> list[tuple[ChangePoint, _Source]]:
    """Return the changes in a segment, in order. Their `index` is a position in the points that have a result."""
    runs = [series.points[place].run for place in segment.places]
    changes = [(change, _Source.SIGNIFICANT) for change in significant]
    changes += [(change, _Source.DECIDED) for change in _find_decided(runs, segment, significant, decisions)]
    past = _describe_past(runs, [change.index for change, _ in changes], decisions)
    is_newest = segment.positions.stop == len(series.points)
    if is_newest and (suspicion := screen(segment.values, threshold, past)):
        changes.append((suspicion.change, _Source.DRIFT if suspicion.is_drift else _Source.SCREENED))
    elif is_newest and (index := _find_more_work(series, segment, past)):
        changes.append((measure_step(segment.values, past.level, index, len(runs)), _Source.SCREENED))
    return sorted(changes, key=lambda change: change[0].index)


def _find_more_work(series: Series, segment: _Segment, past: Past) -> int:
    """Return the place of the newest increase of the work counts that no confirmation has seen; 0 if there is none.

    Counts have no noise, so one run is enough. Whether the work takes time is for a confirmation to say. As in the
    screen, only the newest three runs count.
    """
    places = [
        segment.places.index(index)
        for index, before, after in find_count_changes(series.points)
        if index in segment.places[1:] and after > (1.0 + MARGIN) * before
    ]
    first = max(1, past.fresh, past.level + 1, len(segment.places) - 3)
    return max((place for place in places if place >= first), default=0)


def _find_decided(
    runs: Sequence[str], segment: _Segment, significant: Sequence[ChangePoint], decisions: Sequence[Decision]
) -> list[ChangePoint]:
    """Return the confirmed changes of a segment that the series itself doesn't show."""
    refuted = {decision.since for decision in decisions if not decision.confirmed}
    places = sorted(
        {
            runs.index(decision.since)
            for decision in decisions
            if decision.confirmed and decision.since in runs[1:] and decision.since not in refuted
        }
    )
    shown = [change.index for change in significant]
    places = [place for place in places if all(abs(place - index) > NEAR for index in shown)]
    edges = [0, *sorted([*places, *shown]), len(runs)]
    return [
        measure_step(segment.values, *edges[edges.index(place, 1) - 1 : edges.index(place, 1) + 2]) for place in places
    ]


def _describe_past(runs: Sequence[str], levels: Sequence[int], decisions: Sequence[Decision]) -> Past:
    """Return what the screen needs. Runs are named after their starts, and a decision saw all earlier runs."""
    last = decisions[-1] if decisions else None
    fresh = sum(run <= last.run for run in runs) if last else 0
    is_refuted = last and not last.confirmed and last.since in runs
    return Past(max(levels, default=0), fresh, runs.index(last.since) if last and is_refuted else None)


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
    series: Series, change: _Change, boundaries: Sequence[SegmentBoundary], decisions: Sequence[Decision]
) -> SeriesFinding:
    key, step, point = series.key, change.point, series.points[change.point.index]
    marks = [boundary for boundary in boundaries if boundary.index == step.index and not boundary.is_cut]
    suspects = [mark.words for mark in marks]
    own_decisions = _select_decisions(series, step.index, marks, decisions)
    newest_decision = own_decisions[-1] if own_decisions else None
    # a changed file affects all environments
    environments = [] if any(suspect.startswith("the file of") for suspect in suspects) else [key.environment]
    pair = next((" → ".join(entry.pair) for entry in reversed(own_decisions) if entry.pair), "")
    cause = " | ".join([key.machine, *environments, *([pair] if pair else suspects or [point.run])])
    return SeriesFinding(
        key,
        _find_state(change.source, own_decisions),
        point.run,
        point.started,
        step.ratio,
        step.low,
        step.high,
        suspects,
        cause,
        newest_decision,
        change.source is _Source.DRIFT,
    )


def _select_decisions(
    series: Series, index: int, marks: Sequence[SegmentBoundary], decisions: Sequence[Decision]
) -> list[Decision]:
    """Return the decisions on the change at this position, which has these annotations."""
    suspects = [mark.words for mark in marks]
    is_moving = bool(marks) and all(mark.is_version for mark in marks)
    run_places = {other.run: place for place, other in enumerate(series.points)}
    version_places = {entry.origin.version: place for place, entry in reversed(list(enumerate(series.points)))}
    selected = []
    for decision in decisions:
        places = [
            run_places.get(decision.since, -math.inf),
            *(version_places.get(entry, -math.inf) for entry in decision.pair[1:]),
        ]
        is_near = any(abs(entry - index) <= NEAR for entry in places)
        if not decision.confirmed and series.points[index].run > decision.run:
            continue  # a later change can't be refuted
        # a release line has a new version in each run, so only the places can show whether it is the same change
        is_same = (list(decision.suspects) == suspects and bool(suspects)) or (is_moving and is_near)
        if is_same or (is_near and not suspects and not decision.suspects):
            selected.append(decision)
    return selected


def _find_state(source: _Source, decisions: Sequence[Decision]) -> State:
    """Return the state of a change with these decisions, the last of which counts."""
    if not decisions:
        return State.SUSPECTED if source is _Source.SIGNIFICANT else State.WATCH
    if not decisions[-1].confirmed:
        return State.REFUTED
    runs = {decision.run for decision in decisions if decision.confirmed}
    return State.CONFIRMED if len(runs) > 1 or source is _Source.SIGNIFICANT else State.LIKELY
