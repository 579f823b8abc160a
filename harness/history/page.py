"""The history as one self-contained page: findings, an index of all series, and a chart of each series.

If there are too many points, the page has the newest ones of each series, and states how many are left out.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from harness import __version__
from harness.analysis.distributions import Floats
from harness.environments.requested import is_line
from harness.history import chart, phrases
from harness.history.detection import ChangePoint
from harness.history.phrases import SeriesNames
from harness.history.segments import SegmentBoundary, find_count_changes
from harness.history.series import parse_time
from harness.history.states import JudgedSeries, SeriesFinding
from harness.model.defaults import LEVEL
from harness.model.history import HistoryEntry, Key, Note, SeriesPoint
from harness.model.texts import counted
from harness.report import escape, format
from harness.report.escape import escape_terminal
from harness.report.html import assets
from harness.report.phrases import format_count
from harness.report.templates import make_environment

#: The page stores each log ratio times LOG, rounded to a whole number.
LOG = 100_000

#: The number of points above which series are shortened, and the number of points that each series keeps.
POINTS, FEWEST = 300_000, 30

#: The largest number of listed series per cause. The other ones are counted.
LISTED_SERIES = 12

#: The scripts and style sheets, below templates/html.
SCRIPTS = (
    *("format.js", "table.js", "tables.js", "tooltip.js", "embed.js"),
    *("history/points.js", "history/sparkline.js", "history/chart.js", "history/series.js", "history/page.js"),
)
STYLES = ("page.css", "controls.css", "tables.css", "charts.css", "history/history.css", "print.css")

#: Labels of the facts about the run under the pointer.
WORDS = {
    "run": "run",
    "began": "began, UTC",
    "ratio": "ratio",
    "interval": f"{format.level(LEVEL)} interval",
    "time": "time per step",
    "cut": "changed",
    "mark": "changed",
    "version": "version",
    "reason": "no result",
}


# all series of a run have the same versions
_escape_words = lru_cache(maxsize=50_000)(escape_terminal)


class SeriesData(NamedTuple):
    """A series on the page. `templates/html/history/points.js` describes the fields."""

    anchor: str
    name: str
    parts: Sequence[str]
    runs: Sequence[int]
    ratio: Sequence[int | None]
    down: Sequence[int]
    up: Sequence[int]
    seconds: Sequence[float | None]
    breaks: Sequence[tuple[int, str, str]]
    changes: Sequence[tuple[int, int, int, str]]
    levels: Sequence[tuple[int, int, int]]
    state: str
    since: int | None
    size: int | None
    told: str
    left: int


@dataclass(frozen=True, slots=True)
class SeriesLink:
    """A series in a finding: its anchor on the page, its name and a description. The anchor is empty for a count."""

    anchor: str
    name: str
    told: str


@dataclass(frozen=True, slots=True)
class CauseItem:
    """The findings with one cause. `moved` is slower or faster. If `is_quiet`, no finding needs attention."""

    title: str
    moved: str
    is_quiet: bool
    text: str
    links: Sequence[SeriesLink]


def render(
    series: Sequence[JudgedSeries],
    entries: Sequence[HistoryEntry],
    notes: Sequence[Note],
    margin: float,
    *,
    cache: Path | None = None,
) -> str:
    """Return the page about some series and their changes, as HTML.

    `entries` are the runs of the history. Differences below `margin` (a share, such as 0.03) aren't shown. `cache` is
    a folder for files that can be rebuilt.
    """
    from markupsafe import Markup

    page_series = sorted(series, key=phrases.rank)
    length = max(FEWEST, POINTS // max(1, len(series)))
    names = phrases.make_names([judged.series.key for judged in series], entries)
    first_script, last_script = assets.make_script(assets.FIRST), assets.make_script(SCRIPTS)
    vega_script = assets.make_vega_script(cache)
    jinja = make_environment(_escape_text)
    filters: Mapping[str, Callable[..., Any]] = {
        "trusted": Markup,
        "lines": lambda text: Markup(escape.escape_entities(text)),
    }
    jinja.filters.update(filters)
    return jinja.get_template("history.html.j2").render(
        title=format_title(entries),
        head=f"harness {__version__}, {counted(len(entries), 'run')}",
        answer=phrases.describe_counts(series),
        causes=[_make_item(cause, names) for cause in phrases.group_by_cause(series)],
        note=_describe_left_out(series, length),
        margin=format.share(margin),
        words=json.dumps(WORDS),
        data=_dump_data(_make_data(page_series, names, notes, margin, length)),
        charts=_dump_data({"beside": chart.LEFT + chart.RIGHT, "chart": chart.make_specification()}),
        policy=assets.make_policy([first_script, vega_script, last_script]),
        style=assets.read_files(STYLES),
        first=first_script,
        vega=vega_script,
        last=last_script,
    )


def format_title(entries: Sequence[HistoryEntry]) -> str:
    """Return the title, such as `History of 7 runs on 1 machine, 16 Nov 2026 to 22 Nov 2026`."""
    if not entries:
        return "A history without runs"
    machines = {machine.id for entry in entries for machine in entry.machines}
    days = list(dict.fromkeys(phrases.format_day(entry.started) for entry in (entries[0], entries[-1])))
    return f"History of {counted(len(entries), 'run')} on {counted(len(machines), 'machine')}, {' to '.join(days)}"


def make_anchor(key: Key) -> str:
    """Return the anchor of a series. It is the same in every page of a history, for links from other pages."""
    text = json.dumps([getattr(key, field) for field in key.__dataclass_fields__])
    return f"s-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _describe_left_out(series: Sequence[JudgedSeries], length: int) -> str:
    """Return a sentence about runs that the page leaves out; empty if it has all runs."""
    count = sum(len(judged.series.points) > length for judged in series)
    words = f"For {count:,} series, the page shows the newest {length:,} runs. Change detection used all runs."
    return words if count else ""


def _make_item(members: Sequence[SeriesFinding], names: SeriesNames) -> CauseItem:
    """Return the item for the findings with one cause."""
    first = members[0]

    def link(finding: SeriesFinding) -> SeriesLink:
        state_note = f", {finding.state.value}" if finding.state is not first.state else ""
        decision_note = f"; in one run {phrases.format_change(finding.decision)}" if finding.decision else ""
        description = f": {phrases.format_change(finding)}{state_note}{decision_note}"
        return SeriesLink(make_anchor(finding.key), names.texts[finding.key], description)

    links = [link(finding) for finding in members[:LISTED_SERIES]]
    if len(members) > LISTED_SERIES:
        links.append(SeriesLink("", f"and {len(members) - LISTED_SERIES:,} more", ""))
    return CauseItem(
        title=phrases.format_title(members),
        moved=phrases.describe_direction(first),
        is_quiet=first.state not in phrases.ORDER[:3],
        text=f"{phrases.describe_suspects(members)} {phrases.explain_state(first.state)}",
        links=links,
    )


def _make_data(
    series: Sequence[JudgedSeries], names: SeriesNames, notes: Sequence[Note], margin: float, length: int
) -> Mapping[str, Any]:
    """Return the data for the page's scripts, as JSON values."""
    runs = {point.run: point.started for judged in series for point in judged.series.points[-length:]}
    run_ids = sorted(runs, key=lambda run: (parse_time(runs[run]), run))
    places = {run: place for place, run in enumerate(run_ids)}
    return {
        "margin": margin,
        "states": [*(state.value for state in phrases.ORDER), ""],
        "columns": [escape_terminal(name) for name in names.columns],
        "runs": [(escape_terminal(run), _convert_to_seconds(runs[run])) for run in run_ids],
        "notes": [
            (_convert_to_seconds(note.when), escape_terminal(note.text))
            for note in sorted(notes, key=lambda note: _convert_to_seconds(note.when))
        ],
        "series": [_make_series_data(judged, names, places, length)._asdict() for judged in series],
    }


def _make_series_data(judged: JudgedSeries, names: SeriesNames, places: Mapping[str, int], length: int) -> SeriesData:
    key, all_points, finding = judged.series.key, judged.series.points, phrases.find_last(judged)
    skipped = max(0, len(all_points) - length)
    points = all_points[skipped:]
    # None becomes NaN
    ratios, lows, highs = np.array([(point.log_ratio, point.low, point.high) for point in points], np.float64).T
    breaks = [boundary for boundary in judged.breaks if boundary.index > skipped]
    changes = [change for change in judged.changes if change.index > skipped]
    return SeriesData(
        anchor=make_anchor(key),
        name=escape_terminal(names.texts[key]),
        parts=[escape_terminal(part) for part in names.parts[key]],
        runs=[places[point.run] for point in points],
        ratio=[
            None if point.log_ratio is None else log for point, log in zip(points, _round_logs(ratios), strict=True)
        ],
        down=_round_logs(np.maximum(ratios - lows, 0.0)),
        up=_round_logs(np.maximum(highs - ratios, 0.0)),
        seconds=[None if point.seconds is None else float(f"{point.seconds:.4g}") for point in points],
        breaks=[
            (index - skipped, kind, _escape_words(words))
            for index, kind, words in _list_point_facts(judged, breaks, skipped)
        ],
        changes=[
            (change.index - skipped, _round_log(change.before), _round_log(change.after), phrases.format_change(change))
            for change in changes
        ],
        levels=[
            (start - skipped, end - skipped, _round_log(level))
            for start, end, level in _list_levels(
                all_points, skipped, [boundary.index for boundary in breaks if boundary.is_cut], changes
            )
        ],
        state=str(phrases.ORDER.index(finding.state) if finding else len(phrases.ORDER)),
        since=places.get(finding.since) if finding else None,
        size=_round_log(math.log(finding.ratio)) if finding else None,
        told=escape_terminal(phrases.describe_series(judged), escape.PARAGRAPH_CHARACTERS),
        left=skipped,
    )


def _list_point_facts(
    judged: JudgedSeries, breaks: Sequence[SegmentBoundary], start: int
) -> list[tuple[int, str, str]]:
    """Return the facts that the page shows at points from `start` on: boundaries, versions and missing results.

    A release line has a new version at each point, so a new version isn't shown as a boundary.
    """
    facts = [
        (boundary.index, "cut" if boundary.is_cut else "mark", boundary.words)
        for boundary in breaks
        if not boundary.is_version
    ]
    points = list(enumerate(judged.series.points))[start:]
    if is_line(judged.series.key.environment):
        facts += [(index, "version", point.origin.version) for index, point in points if point.origin.version]
    facts += [(index, "reason", point.reason) for index, point in points if point.reason]
    facts += [
        (index, "mark", f"calls per step ({format_count(before)} → {format_count(after)})")
        for index, before, after in find_count_changes(judged.series.points)
        if index > start
    ]
    return sorted(facts, key=lambda fact: fact[0])


def _list_levels(
    points: Sequence[SeriesPoint], first: int, cuts: Sequence[int], changes: Sequence[ChangePoint]
) -> Iterator[tuple[int, int, float]]:
    """Yield start, end and log ratio of each level of the points from `first` on. A cut or a change ends a level."""
    changes_by_start = {change.index: change for change in changes if change.index not in cuts}
    for start, end in pairwise(sorted({first, *cuts, *changes_by_start, len(points)})):
        logs = [point.log_ratio for point in points[start:end] if point.log_ratio is not None]
        if logs and start in changes_by_start:
            yield start, end, changes_by_start[start].after
        elif logs:
            yield start, end, changes_by_start[end].before if end in changes_by_start else median(logs)


def _round_log(value: float) -> int:
    return round(value * LOG)


def _round_logs(values: Floats) -> list[int]:
    """Return `_round_log` of each value, and 0 for NaN."""
    rounded: list[int] = np.rint(np.nan_to_num(values) * LOG).astype(np.int64).tolist()
    return rounded


def _convert_to_seconds(timestamp: str) -> int:
    """Return seconds since 1970."""
    return round(parse_time(timestamp).timestamp())


def _dump_data(data: Mapping[str, Any]) -> str:
    """Return the data as JSON without `<`, for a script element."""
    from pydantic_core import to_json  # four times as fast as json.dumps

    return to_json(data, inf_nan_mode="null").decode().replace("<", "\\u003c")


def _escape_text(text: str) -> str:
    """Escape a text or attribute for HTML, on one line, with a non-breaking space before each percent sign."""
    return escape.html(text, escape.PARAGRAPH_CHARACTERS).replace(" %", "\u00a0%")
