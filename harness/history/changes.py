"""The changes in a history since an earlier run, as Markdown for a comment, a job summary or an email."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from harness.analysis.statistics import exp_limited
from harness.history import phrases
from harness.history.phrases import SeriesNames
from harness.history.series import parse_time
from harness.history.states import JudgedSeries, SeriesFinding, judge_all
from harness.model.environment import describe_stale_wheels
from harness.model.errors import UsageError
from harness.model.history import Decision, HistoryEntry, Key, Note, Series
from harness.model.texts import counted
from harness.report import format, markdown
from harness.report.blocks import Block, Bold, Column, Items, Section, Text, tabulate
from harness.report.phrases import list_names

#: GitHub's limit for comments is 65,536 characters.
LIMIT = 60_000


def cut_series(series: Sequence[Series], last: HistoryEntry) -> list[Series]:
    """Return the series without points after the run `last`."""
    end = last.started, last.run
    shortened_series = (
        replace(one_series, points=[point for point in one_series.points if (point.started, point.run) <= end])
        for one_series in series
    )
    return [one_series for one_series in shortened_series if one_series.points]


def find_start(entries: Sequence[HistoryEntry], asked: str = "") -> HistoryEntry | None:
    """Return the run after which a report starts; None if the report covers all runs.

    `asked` is the id of that run, or a date, which means the last run before it. Without `asked`, it is the second
    newest run. Raises UsageError if `asked` is neither a run nor a date.
    """
    if not asked:
        return entries[-2] if len(entries) > 1 else None
    if run := next((entry for entry in entries if entry.run == asked), None):
        return run
    try:
        moment = parse_time(asked)
    except ValueError:
        raise UsageError(
            f"{asked!r} is neither a run of the history nor a date.", "To list the runs: harness history list"
        ) from None
    return next((entry for entry in reversed(entries) if parse_time(entry.started) < moment), None)


def judge_before(
    series: Sequence[Series], decisions: Sequence[Decision], since: HistoryEntry | None
) -> list[JudgedSeries]:
    """Judge the series as of the run `since`. The result is empty without a run."""
    if since is None:
        return []
    start = parse_time(since.started)
    earlier_decisions = [decision for decision in decisions if parse_time(decision.when) <= start]
    return judge_all(cut_series(series, since), earlier_decisions)


def render(
    before: Sequence[JudgedSeries],
    after: Sequence[JudgedSeries],
    since: HistoryEntry | None,
    entries: Sequence[HistoryEntry],
    notes: Sequence[Note],
) -> str:
    """Return the changes of a history as Markdown, within LIMIT. Lines at the end are left out.

    `after` are the series now, and `before` as of the run `since` (empty without a run). `entries` are the runs.
    """
    names = phrases.make_names([judged.series.key for judged in [*after, *before]], entries)
    earlier = {(finding.key, finding.since): finding for judged in before for finding in judged.findings}
    current_findings = [finding for members in phrases.group_by_cause(after) for finding in members]
    changed_findings = [
        finding
        for finding in current_findings
        if (finding.key, finding.since) not in earlier or earlier[finding.key, finding.since].state is not finding.state
    ]
    unchanged = [finding for finding in current_findings if finding not in changed_findings]
    current_keys = {(finding.key, finding.since) for finding in current_findings}
    lost_findings = [finding for key, finding in earlier.items() if key not in current_keys]
    new_runs = [entry for entry in entries if since is None or (entry.started, entry.run) > (since.started, since.run)]
    make_table = _make_table_maker(after, earlier, names)
    start = f"since the run of {phrases.format_day(since.started)}" if since else "all runs"
    sections = [
        Section(f"History: {start}", "changes", list(_make_head(after, new_runs))),
        Section(
            "What changed", "changed", list(_find_changed_blocks(changed_findings, lost_findings, names, make_table))
        ),
        Section("Unchanged findings", "standing", [make_table(unchanged, "Found before")] if unchanged else []),
        Section("Segment boundaries and notes", "breaks", list(_find_boundaries(after, new_runs, notes))),
    ]
    text = markdown.render_full([section for section in sections if section.blocks])
    return markdown.shorten(text, LIMIT, "harness history report -o history.html")


def _make_table_maker(
    after: Sequence[JudgedSeries], earlier: Mapping[tuple[Key, str], SeriesFinding], names: SeriesNames
) -> Callable[[Sequence[SeriesFinding], str], Block]:
    """Return a function that makes a table of findings, with their state in an `earlier` report if it was different."""
    ratios = {judged.series.key: _format_newest(judged) for judged in after}

    def format_earlier_state(finding: SeriesFinding) -> str:
        before = earlier.get((finding.key, finding.since))
        return before.state.value if before and before.state is not finding.state else ""

    def format_decision(finding: SeriesFinding) -> str:
        return phrases.format_change(finding.decision) if finding.decision else ""

    columns: list[Column[SeriesFinding]] = [
        Column("series", lambda finding: names.texts[finding.key]),
        Column("time", phrases.format_change, is_number=True),
        Column("side by side", format_decision, is_number=True, is_optional=True),
        Column("ratio now", lambda finding: ratios[finding.key], is_number=True),
        Column("since", lambda finding: phrases.format_day(finding.started)),
        Column("state", lambda finding: finding.state.value),
        Column("was", format_earlier_state, is_optional=True),
    ]
    return lambda members, caption: tabulate(caption, columns, members, noun="finding")


def _make_head(after: Sequence[JudgedSeries], new_runs: Sequence[HistoryEntry]) -> Iterator[Block]:
    if not new_runs:
        yield Text("No run was added since then.")
    elif len(new_runs) == 1:
        yield Text(f"1 new run: {new_runs[0].run}.")
    else:
        yield Text(f"{counted(len(new_runs), 'run')}: {new_runs[0].run} to {new_runs[-1].run}.")
    yield Text(phrases.describe_counts(after))
    newest_points = [judged.series.points[-1] for judged in after]
    sentences = (
        sentence
        for point in newest_points
        for sentence in describe_stale_wheels(point.origin.version, parse_time(point.started).date())
    )
    yield from map(Text, dict.fromkeys(sentences))


def _find_changed_blocks(
    changed_findings: Sequence[SeriesFinding],
    lost_findings: Sequence[SeriesFinding],
    names: SeriesNames,
    make_table: Callable[[Sequence[SeriesFinding], str], Block],
) -> Iterator[Block]:
    """Yield the changed findings, which are in the order of their causes, and the findings that no longer exist."""
    for _, group in groupby(changed_findings, key=lambda finding: finding.cause):
        members = list(group)
        yield Text(
            [
                Bold(f"{phrases.format_title(members)}."),
                f" {phrases.describe_suspects(members)} {phrases.explain_state(members[0].state)}",
            ]
        )
        yield make_table(members, "Series")
    if lost_findings:
        texts = [
            f"{names.texts[lost.key]} ({phrases.format_change(lost)}, {lost.state.value})" for lost in lost_findings
        ]
        yield Text(f"No longer found: {list_names(texts)}.")
    if not changed_findings and not lost_findings:
        yield Text("No series changed its state.")


def _format_newest(judged: JudgedSeries) -> str:
    """Format the newest ratio of a series; empty if it has none."""
    logs = [point.log_ratio for point in judged.series.points if point.log_ratio is not None]
    return format.factor(exp_limited(logs[-1])) if logs else ""


def _find_boundaries(
    after: Sequence[JudgedSeries], new_runs: Sequence[HistoryEntry], notes: Sequence[Note]
) -> Iterator[Block]:
    """Yield the segment boundaries at the new runs, and the notes since the first new run."""
    runs = {entry.run: entry for entry in new_runs}
    boundaries = Counter(
        (run, boundary.is_cut, boundary.words)
        for judged in after
        for boundary in judged.breaks
        if (run := judged.series.points[boundary.index].run) in runs
    )
    items = [
        f"Before the run of {phrases.format_day(runs[run].started)}: {words} ({count:,} series"
        f"{'; runs before and after it are not compared' if is_cut else ''})"
        for (run, is_cut, words), count in sorted(boundaries.items(), key=lambda item: (-item[1], item[0]))
    ]
    start = min((parse_time(entry.started) for entry in new_runs), default=None)
    items += [
        f"Note of {phrases.format_day(note.when)}: {note.text}"
        for note in notes
        if start and parse_time(note.when) >= start
    ]
    if items:
        yield Items(items)
