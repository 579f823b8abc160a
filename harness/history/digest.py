"""A Markdown page about the last days of a history: changes, rules in nightly.toml, smallest detectable changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.history import changes, phrases
from harness.history.changes import HistoryComparison
from harness.history.detection import compute_detectable_change
from harness.history.levels import FEWEST
from harness.history.nightly_file import SuppressionRule
from harness.history.phrases import SeriesNames
from harness.history.segments import split_segments
from harness.history.states import JudgedSeries, compute_standard_error
from harness.model.history import Key
from harness.model.texts import counted
from harness.report import markdown
from harness.report.blocks import Block, Column, Section, Text, tabulate

#: The numbers of further runs for which detectable changes are computed: the smallest possible number, and one week.
NIGHTS = (FEWEST, 7)

#: The largest number of series with a detectable change in the table.
LINES = 15


def render(comparison: HistoryComparison, rules: Sequence[SuppressionRule], now: datetime, days: int) -> str:
    """Return the digest of the last `days` days before `now`, about the changes since their first run."""
    judged = comparison.after
    names = phrases.make_names([each.series.key for each in judged], comparison.entries)
    machines = {each.series.key: each.series.points[-1].origin.machine for each in judged}
    sections = [
        *changes.build_sections(
            comparison, f"History: {counted(days, 'day')} to {phrases.format_day(now.isoformat())}"
        ),
        Section("Accepted and muted", "muted", list(_list_rules(rules, judged, machines, now))),
        Section("Smallest detectable change", "detectable", list(_format_detectable(judged, names))),
    ]
    return changes.shorten(markdown.render_full([section for section in sections if section.blocks]))


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
