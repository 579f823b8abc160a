"""The results of replays as Markdown: false alerts, detected planted steps, and steps between versions of a line."""

import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.replay import nights
from bench.replay.rules import ASV, FIRST, NEAR, RULES, Report, asv_reports, delay, distinct, harness_reports, is_hit
from bench.replay.stages import replay_steps
from bench.simulation.nights import between
from harness.history.folder import History
from harness.history.states import State
from harness.model.history import Decision, Series

#: The number of nightly runs within which a step counts as found soon.
SOON = 3

TIMES, RATIOS = "times", "ratios"

#: Reports by rule and kind of values, for each series.
Reports = Mapping[tuple[str, str], Sequence[Sequence[Report]]]


@dataclass(frozen=True, slots=True)
class Replay:
    """A stored replay: its plan, its nightly runs so far, their time series, and the confirmations."""

    name: str
    plan: nights.ReplayPlan
    records: Sequence[nights.ReplayedNight]
    series: Sequence[Series]
    decisions: Sequence[Decision]

    @property
    def steps(self) -> list[tuple[nights.PlantedStep, int] | None]:
        """The planted step of each series, with the index of its first point; None if the replay hasn't reached it."""
        by_name = {step.name: step for step in self.plan.planted}
        night_of = {record.run: record.night for record in self.records}
        steps: list[tuple[nights.PlantedStep, int] | None] = []
        for one_series in self.series:
            step = by_name.get(one_series.key.scenario)
            # a nightly run that measured nothing has no point
            places = [at for at, point in enumerate(one_series.points) if step and night_of[point.run] >= step.night]
            steps.append((step, places[0]) if step and places else None)
        return steps


def read(folder: Path) -> Replay:
    """Read a replay from its folder, without its runs."""
    plan, records = nights.read_plan(folder), nights.read_records(folder)
    # a nightly run that was interrupted may have left a run in the history, and was measured again
    runs = {record.run for record in records if record.run}
    history = History(folder / nights.HISTORY)
    series = [_measured(one_series, runs) for one_series in history.series() if one_series.key.reference]
    decisions = list({(decision.key, decision.since): decision for decision in history.decisions()}.values())
    return Replay(folder.name, plan, records, series, decisions)


def _measured(series: Series, runs: Collection[str]) -> Series:
    """Return the points of these runs that have a ratio."""
    return replace(
        series, points=[point for point in series.points if point.run in runs and point.log_ratio is not None]
    )


def page(replays: Sequence[Replay], asv: str = "") -> str:
    """Return the results of several replays as Markdown."""
    parts = ["## Nightly runs that were replayed", "", *_overview(replays)]
    for replay in replays:
        reports = judge(replay.series, len(replay.series), asv)
        parts += ["", f"## {replay.name}", "", *_variability(replay)]
        if replay.plan.planted:
            parts += ["", *_planted(replay, reports)]
        elif replay.plan.is_line:
            parts += ["", *_line(replay, reports)]
        else:
            parts += ["", *_same(replay, reports)]
            parts += ["", *(line for percent in (5, 10) for line in _computed(replay, percent, asv))]
            parts += ["", *_stages(replay)]
    return "\n".join(parts)


def judge(series: Sequence[Series], count: int, asv: str = "") -> Reports:
    """Return the reports of each rule for each series of a history with `count` series, after each nightly run."""
    states = {"harness, the screen": (State.WATCH, State.SUSPECTED), "harness, without the screen": (State.SUSPECTED,)}
    reports: dict[tuple[str, str], list[list[Report]]] = {
        (name, RATIOS): [list(harness_reports(one_series, selected, count)) for one_series in series]
        for name, selected in states.items()
    }
    for kind in (TIMES, RATIOS):
        values = [_values(one_series, kind) for one_series in series]
        if asv:
            reports[ASV, kind] = asv_reports(asv, values)
        for name, rule in RULES.items():
            reports[name, kind] = [list(rule(row)) for row in values]
    return reports


def _values(series: Series, kind: str) -> list[float]:
    if kind == RATIOS:
        return [point.log_ratio or 0.0 for point in series.points]
    return [math.log(point.seconds) for point in series.points if point.seconds]


def _overview(replays: Iterable[Replay]) -> list[str]:
    lines = [
        "| replay | environment | nightly runs | days | series | time, median (longest) | confirmations and searches |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for replay in replays:
        measured = [record for record in replay.records if record.run]
        if not measured:
            continue
        seconds = [record.seconds for record in measured]
        days = f"{measured[0].day} to {measured[-1].day}" if replay.plan.is_line else "any"
        entries = [
            replay.name,
            f"`{replay.plan.environment}`",
            f"{len(measured)} of {len(replay.records)}",
            days,
            str(len(replay.series)),
            f"{statistics.median(seconds):.0f} s ({max(seconds):.0f} s)",
            f"{sum(record.confirm_seconds for record in measured):.0f} s",
        ]
        lines.append(f"| {' | '.join(entries)} |")
    missing = [
        f"- {entry.name}, {record.day}: {record.reason}"
        for entry in replays
        for record in entry.records
        if record.reason
    ]
    return [*lines, *(["", *missing] if missing else [])]


def _variability(replay: Replay) -> list[str]:
    """Return a table of the differences between successive nightly runs, without the steps between levels."""

    def deviation(values: Sequence[float]) -> str:
        differences = [abs(b - a) for a, b in pairwise(values)]
        return f"{100 * 1.4826 * statistics.median(differences) / math.sqrt(2):.1f} %" if differences else "-"

    return [
        "| series | nightly runs | standard deviation of the ratio | of the time |",
        "| --- | --- | --- | --- |",
        *(
            f"| {_name(one_series)} | {len(one_series.points)} | {deviation(_values(one_series, RATIOS))} | "
            f"{deviation(_values(one_series, TIMES))} |"
            for one_series in replay.series
            if one_series.key.scenario not in {step.name for step in replay.plan.planted[1:]}
        ),
    ]


def _same(replay: Replay, reports: Reports) -> list[str]:
    points = sum(len(one_series.points) for one_series in replay.series)
    confirmed = sum(decision.confirmed for decision in replay.decisions)
    issues = sum(len(record.opened) for record in replay.records)
    return [
        f"The same wheel in each: {points} points in {len(replay.series)} series. "
        f"harness confirmed {confirmed} changes and opened {issues} issues.",
        "",
        "| rule | of | false alerts |",
        "| --- | --- | --- |",
        *(f"| {rule} | {kind} | {_count(rows)} |" for (rule, kind), rows in reports.items()),
    ]


def _planted(replay: Replay, reports: Reports) -> list[str]:
    sizes = sorted({step.percent for step in replay.plan.planted})
    head = " | ".join(f"{size} %: found within {SOON} | found later | missed" for size in sizes)
    lines = [f"| rule | of | {head} | false alerts |", f"| --- | --- | {' | '.join(['---'] * 3 * len(sizes))} | --- |"]
    rows: dict[tuple[str, str], Sequence[Sequence[Report]]] = dict(reports)
    rows["harness, confirmed side by side", RATIOS] = _confirmed(replay)
    for (rule, kind), reported in rows.items():
        entries, false = [], 0
        for size in sizes:
            delays = []
            for row, planted in zip(reported, replay.steps, strict=True):
                if planted and planted[0].percent == size:
                    at = planted[1]
                    delays.append(delay(row, at))
                    false += len(distinct([report for report in row if not is_hit(report, at)]))
            soon = sum(waits is not None and waits <= SOON for waits in delays)
            later = sum(waits is not None and waits > SOON for waits in delays)
            entries += [_share(soon, len(delays)), str(later), str(delays.count(None))]
        lines.append(f"| {rule} | {kind} | {' | '.join(entries)} | {false} |")
    return lines


def _confirmed(replay: Replay) -> list[list[Report]]:
    """Return the confirmed slowdowns of each series, with the number of nightly runs at that time."""
    reported: list[list[Report]] = [[] for _ in replay.series]
    for number, one_series in enumerate(replay.series):
        place = {point.run: index for index, point in enumerate(one_series.points)}
        for decision in replay.decisions:
            if (
                decision.key == one_series.key
                and decision.confirmed
                and decision.ratio > 1.0
                and decision.since in place
            ):
                # runs are named after their start: the last one before the confirmation suspected the change
                count = sum(point.run <= decision.run for point in one_series.points)
                reported[number].append((count, place[decision.since]))
    return reported


def _computed(replay: Replay, percent: int, asv: str) -> list[str]:
    """Return how many steps each rule finds if steps are added to the measured values, at each place in each series."""
    changed: list[tuple[Series, int]] = [
        (_slower(one_series, at, percent), at)
        for one_series in replay.series
        for at in range(max(FIRST, 10), len(one_series.points) - SOON + 1)
    ]
    if not changed:
        return []
    reports = judge(
        [replace(changed_series, points=changed_series.points[: at + SOON]) for changed_series, at in changed],
        len(replay.series),
        asv,
    )

    def soon(by_series: Sequence[Sequence[Report]]) -> int:
        return sum(delay(row, at) is not None for row, (_, at) in zip(by_series, changed, strict=True))

    return [
        f"{percent} % added to the measured values from each nightly run on, in turn:",
        "",
        f"| rule | of | found within {SOON} |",
        "| --- | --- | --- |",
        *(
            f"| {rule} | {kind} | {_share(soon(reported), len(changed))} |"
            for (rule, kind), reported in reports.items()
        ),
        "",
    ]


def _stages(replay: Replay) -> list[str]:
    """Return a table of the added steps that both stages find, and of confirmations without a change."""
    agreed = (State.LIKELY, State.CONFIRMED)
    lines = [
        "| series | added | suspected within 3 | likely within 3 | confirmed within 3 | within 5 | "
        "confirmations without a change | likely | confirmed |",
        f"| {' | '.join(['---'] * 9)} |",
    ]
    halves = {
        "first half": replay.series[: len(replay.series) // 2],
        "second half": replay.series[len(replay.series) // 2 :],
    }
    for (name, series), percent in itertools.product(halves.items(), (5, 10)):
        unchanged, changed = replay_steps(series, percent, len(replay.series))

        def count(nights: int, states: Sequence[State | None], changed: Sequence[Any] = changed) -> str:
            hits = sum(any(wait <= nights and event.state in states for wait, event in events) for events in changed)
            return f"{hits} of {len(changed)}"

        entries = [name, f"{percent} %", count(SOON, [*State, None]), count(SOON, agreed), count(SOON, agreed[1:])]
        entries += [count(5, agreed[1:]), str(len(unchanged))]
        entries += [str(sum(event.state is state for event in unchanged)) for state in agreed]
        lines.append(f"| {' | '.join(entries)} |")
    return lines


def _slower(series: Series, at: int, percent: int) -> Series:
    more = math.log1p(percent / 100.0)

    def add(value: float | None) -> float | None:
        return None if value is None else value + more

    points = [
        point._replace(
            log_ratio=add(point.log_ratio),
            low=add(point.low),
            high=add(point.high),
            seconds=point.seconds * math.exp(more) if point.seconds else None,
        )
        if index >= at
        else point
        for index, point in enumerate(series.points)
    ]
    return replace(series, points=points)


def _line(replay: Replay, reports: Reports) -> list[str]:
    slower = _confirmed(replay)
    lines = [
        "| series | from | to | suspected: time after / before | confirmed | interval | wheels | probability "
        "| commits |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one_series in replay.series:
        for decision in (decision for decision in replay.decisions if decision.key == one_series.key):
            runs = [point.run for point in one_series.points]
            # a nightly run that was interrupted, and measured again, has no point
            at = runs.index(decision.since) if decision.since in runs else -1
            lines.append(
                f"| {_name(one_series)} | {_version(one_series, at - 1)} | {_version(one_series, at)} | "
                f"{_levels(one_series, at)} | {'yes' if decision.confirmed else 'no'}, {decision.ratio:.3f} | "
                f"{decision.low:.3f} to {decision.high:.3f} | {' and '.join(decision.sides)} | "
                f"{'' if decision.probability is None else f'{100 * decision.probability:.0f} %'} | "
                f"{', '.join(decision.commits)} |"
            )
    total = sum(map(len, slower))
    lines += ["", "| rule | of | reports | of confirmed slowdowns | others |", "| --- | --- | --- | --- | --- |"]
    for (rule, kind), reported in reports.items():
        hits = sum(
            any(abs(index - true) <= NEAR for _, index in row)
            for row, truths in zip(reported, slower, strict=True)
            for _, true in truths
        )
        others = sum(
            all(abs(index - true) > NEAR for _, true in truths)
            for row, truths in zip(reported, slower, strict=True)
            for _, index in distinct(row)
        )
        lines.append(f"| {rule} | {kind} | {_count(reported)} | {hits} of {total} | {others} |")
    return lines


def _count(reported: Sequence[Sequence[Report]]) -> int:
    """Return the number of distinct reports of several series."""
    return sum(len(distinct(row)) for row in reported)


def _version(series: Series, at: int) -> str:
    """Return the version of a point, or its day if the history has no version; `-` if the series has no such point."""
    if not 0 <= at < len(series.points):
        return "-"
    point = series.points[at]
    return point.origin.version or point.started[:10]


def _levels(series: Series, at: int, nearest: int = 5) -> str:
    values = _values(series, RATIOS)
    if not 0 < at < len(values):
        return "-"
    before, after = values[max(0, at - nearest) : at], values[at : at + nearest]
    return f"{math.exp(statistics.median(after) - statistics.median(before)):.3f}"


def _name(series: Series) -> str:
    return " ".join([series.key.scenario, *(f"{axis}={value}" for axis, value in series.key.axes)])


def _share(count: int, of: int) -> str:
    if not of:
        return "-"
    low, high = between(count, of)
    return f"{count} of {of} ({100 * low:.0f} % to {100 * high:.0f} %)"
