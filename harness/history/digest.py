"""A Markdown page about the last days of a history: changes, muted series, and smallest detectable changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.history import phrases
from harness.history.detection import compute_detectable_change
from harness.history.levels import FEWEST
from harness.history.nightly_file import SuppressionRule
from harness.history.phrases import SeriesNames
from harness.history.segments import split_segments
from harness.history.states import JudgedSeries, SeriesFinding, State, compute_standard_error
from harness.model.history import HistoryEntry, Key
from harness.model.texts import counted
from harness.report import markdown
from harness.report.blocks import Block, Column, Section, Text, tabulate

#: The number of days that a digest covers.
DAYS = 7

#: The numbers of further runs for which detectable changes are computed: the smallest possible number, and one week.
NIGHTS = (FEWEST, DAYS)

#: The largest number of lines in a table, so that the digest is about one page.
LINES = 15


def render(
    judged: Sequence[JudgedSeries],
    entries: Sequence[HistoryEntry],
    rules: Sequence[SuppressionRule],
    now: datetime,
    days: int = DAYS,
) -> str:
    """Return the digest of the last `days` days before `now`."""
    names = phrases.make_names([each.series.key for each in judged], entries)
    recent_runs = [entry for entry in entries if phrases.parse_time(entry.started) > now - timedelta(days=days)]
    machines = {each.series.key: each.series.points[-1].origin.machine for each in judged}
    start = phrases.parse_time(recent_runs[0].started) if recent_runs else now
    findings = [finding for members in phrases.group_by_cause(judged) for finding in members]
    new_findings = [
        each
        for each in findings
        if each.state in (State.CONFIRMED, State.SUSPECTED)
        and (phrases.parse_time(each.started) >= start or _is_decided_since(each, start))
    ]
    sections = [
        Section(
            f"History: {counted(days, 'day')} to {phrases.format_day(now.isoformat())}",
            "digest",
            list(_make_head(recent_runs, judged)),
        ),
        Section(
            "Slower",
            "slower",
            list(_list_findings([each for each in new_findings if each.ratio > 1.0], names, rules, machines, now)),
        ),
        Section(
            "Fixed or faster",
            "faster",
            list(_list_findings([each for each in new_findings if each.ratio < 1.0], names, rules, machines, now)),
        ),
        Section("Accepted and muted", "muted", list(_list_rules(rules, judged, machines, now))),
        Section("Smallest detectable change", "detectable", list(_format_detectable(judged, names))),
    ]
    return markdown.render_full([section for section in sections if section.blocks])


def _is_decided_since(finding: SeriesFinding, start: datetime) -> bool:
    return finding.decision is not None and phrases.parse_time(finding.decision.when) >= start


def _make_head(recent_runs: Sequence[HistoryEntry], judged: Sequence[JudgedSeries]) -> Iterator[Block]:
    runs_by_machine: dict[str, list[HistoryEntry]] = {}
    for entry in recent_runs:
        for entry_machine in entry.machines:
            runs_by_machine.setdefault(entry_machine.name or entry_machine.id, []).append(entry)
    if not recent_runs:
        yield Text("No runs were added in this period.")
    for machine, runs in sorted(runs_by_machine.items()):
        yield Text(f"{machine}: {counted(len(runs), 'run')}, the newest on {phrases.format_day(runs[-1].started)}.")
    yield Text(phrases.describe_counts(judged))


def _list_findings(
    findings: Sequence[SeriesFinding],
    names: SeriesNames,
    rules: Sequence[SuppressionRule],
    machines: Mapping[Key, str],
    now: datetime,
) -> Iterator[Block]:
    if not findings:
        yield Text("None.")
        return

    def rule(finding: SeriesFinding) -> str:
        for entry in rules:
            if entry.applies(finding.key, finding.started, machines[finding.key], now.date()):
                return f"{entry.kind.value} until {entry.until}: {entry.reason}"
        return ""

    columns: list[Column[SeriesFinding]] = [
        Column("series", lambda finding: names.texts[finding.key]),
        Column("time", phrases.format_change, is_number=True),
        Column("since", lambda finding: phrases.format_day(finding.started)),
        Column("state", lambda finding: finding.state.value),
        Column("rule", rule, is_optional=True),
        Column("suspects", lambda finding: "; ".join(finding.suspects), is_optional=True),
    ]
    yield tabulate("Changes", columns, findings[:LINES], noun="change")
    if len(findings) > LINES:
        yield Text(f"And {len(findings) - LINES:,} more. To see all changes: harness history report -o history.html")


def _list_rules(
    rules: Sequence[SuppressionRule], judged: Sequence[JudgedSeries], machines: Mapping[Key, str], now: datetime
) -> Iterator[Block]:
    if not rules:
        return

    def count_matches(rule: SuppressionRule) -> str:
        count = sum(rule.selects(each.series.key, machines[each.series.key]) for each in judged)
        return f"{count:,}" if count else "none: check the name"

    columns: list[Column[SuppressionRule]] = [
        Column("rule", lambda each: each.kind.value),
        Column("series", lambda each: each.series),
        Column("change of", lambda each: each.since, is_optional=True),
        Column("until", lambda each: f"{each.until}{' (ended)' if each.until < now.date() else ''}"),
        Column("reason", lambda each: each.reason),
        Column("series matched", count_matches, is_number=True),
    ]
    yield tabulate("Rules in nightly.toml", columns, rules, noun="rule")


@dataclass(frozen=True, slots=True)
class _Sensitivity:
    """A series, its number of results, and its detectable change for each value of `NIGHTS`."""

    key: Key
    points: int
    ratios: Sequence[float | None]


def _format_detectable(judged: Sequence[JudgedSeries], names: SeriesNames) -> Iterator[Block]:
    lines = [_compute_sensitivity(entry) for entry in judged if entry.series.key.reference]
    lines.sort(key=lambda entry: (entry.ratios[-1] is None, entry.ratios[-1] or 0.0), reverse=True)
    if not lines:
        return
    columns: list[Column[_Sensitivity]] = [
        Column("series", lambda entry: names.texts[entry.key]),
        Column("results", lambda entry: f"{entry.points:,}", is_number=True),
        *(_make_column(nights, position) for position, nights in enumerate(NIGHTS)),
    ]
    yield Text(
        "In most cases, a slowdown of at least the listed size is found within the number of nightly runs in the "
        "heading. The series with the largest values come first."
    )
    yield tabulate("Detectable changes", columns, lines[:LINES], noun="series")
    if len(lines) > LINES:
        yield Text(f"In the other {len(lines) - LINES:,} series, smaller changes can be detected.")


def _make_column(nights: int, position: int) -> "Column[_Sensitivity]":
    def text(entry: _Sensitivity) -> str:
        ratio = entry.ratios[position]
        return f"{100.0 * (ratio - 1.0):.1f} %" if ratio else f"after {FEWEST} results"

    return Column(f"in {nights} nightly runs", text, is_number=True)


def _compute_sensitivity(judged: JudgedSeries) -> _Sensitivity:
    newest_segment = split_segments(judged.series, judged.breaks)[-1]  # points of earlier segments can't be compared
    results = [
        (point.log_ratio, compute_standard_error(point))
        for index in newest_segment
        if (point := judged.series.points[index]).log_ratio is not None
    ]
    values, errors = [value for value, _ in results], [error for _, error in results]
    return _Sensitivity(
        judged.series.key, len(results), [compute_detectable_change(values, errors, nights) for nights in NIGHTS]
    )
