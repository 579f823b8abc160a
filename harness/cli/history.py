"""`harness history`."""

import json as codec
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion, options
from harness.cli.messages import format_columns, say, tell
from harness.cli.report import save
from harness.files import get_cache_dir
from harness.history.request import ConfirmRequest, SeriesRequest
from harness.model.defaults import MARGIN
from harness.model.errors import Exit, HarnessError, NothingSelectedError, UsageError
from harness.model.launch import Clock
from harness.model.texts import counted, escape
from harness.session.options import read_whole

if TYPE_CHECKING:
    from harness.history.alerts import IssueStep
    from harness.history.index import History
    from harness.model.history import HistoryEntry, Series, SeriesPoint, Summary

app = typer.Typer(
    help="Record and show results of the same cells over time.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

#: The number of runs in a batch, which are read and then added. Other processes can use the history between batches.
_BATCH_SIZE = 200

#: The largest number of scenarios and environments that an error lists.
_MOST_NAMES = 8

#: If this many newest runs of a machine all have different machine ids, the machine probably loses its id.
_NEW_IDS = 3

#: The largest value of --days: 100 years.
_MOST_DAYS = 36_500

_FOLDER_ADVICE = "Choose another folder with --results."

Results = Annotated[Path, options.make_option("results")]

Today = Annotated[
    str | None,
    typer.Option("--today", metavar="DATE", help="Use this date instead of today's date."),
]


@app.command()
def add(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...", help="Folders of runs, or summaries of runs.", autocompletion=completion.complete_runs
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Add every run in the folder of --results.")] = False,
    results: Results = Path("results"),
) -> None:
    """Add finished runs to the history. Runs that are already in the history are skipped."""
    if not runs and not all_:
        raise UsageError("No run is specified.", "Pass folders of runs, such as results/RUN, or use --all.")
    paths = [*(runs or []), *(_find_run_folders(results) if all_ else [])]
    _exit_if_left_out(_add_runs(paths))


@app.command(name="list")
def list_runs(json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON.")] = False) -> None:
    """List the runs, the notes and the confirmations."""
    from harness.history.index import History  # noqa: PLC0415 - `harness --help` needs none of it

    with History.open(told=say) as history:
        runs, notes = history.runs(), history.notes()
        # if a search followed a confirmation, its result is in a second decision
        decisions = [*{(entry.key, entry.since, entry.run): entry for entry in history.decisions()}.values()]
        location = history.name
    if json:
        document: dict[str, list[Any]] = {"runs": runs, "notes": notes, "decisions": decisions}
        typer.echo(
            codec.dumps({name: [asdict(record) for record in records] for name, records in document.items()}, indent=2)
        )
        return
    if not runs:
        say(f"The history {location} is empty. To add the runs in results/: harness history add --all")
    rows = [
        (run.run, _format_minute(run.started), ", ".join(machine.shown for machine in run.machines), run.suite or "-")
        for run in runs
    ]
    point_counts = [counted(run.points, "point") for run in runs]
    for line in format_columns([(*row, count) for row, count in zip(rows, point_counts, strict=True)] if rows else []):
        tell(escape(line))
    for note in notes:
        tell(escape(f"{note.when}: {note.text}"))
    for entry in decisions:
        verdict = "confirmed" if entry.confirmed else "refuted"
        size = f"{entry.ratio:.3f}× ({entry.low:.3f} to {entry.high:.3f}) side by side"
        sides_note = f", between {' and '.join(entry.sides)}" if entry.sides and entry.confirmed else ""
        line = f"{entry.key.cell}, since {entry.since}: {verdict}, {size}{sides_note} ({entry.run})"
        tell(escape(f"{_format_minute(entry.when)}: {line}"))


@app.command()
@options.of(SeriesRequest)
def show(
    request: SeriesRequest,
    *,
    points: Annotated[
        bool, typer.Option("--points", help="Show the value of each run, not only of the last run.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the series as JSON.")] = False,
) -> None:
    """Show time series: the ratio of a cell to its baseline, by run."""
    from harness.history.index import History  # noqa: PLC0415 - `harness --help` needs none of it

    with History.open(told=say) as history:
        selection = _find_series(history, request)
    if json:
        typer.echo(codec.dumps([_make_document(entry) for entry in selection], indent=2))
    elif points:
        for series in selection:
            tell("\n".join([_format_name(series), *(f"  {line}" for line in format_columns([*_make_rows(series)]))]))
    else:
        rows = [(_format_name(entry), counted(len(entry.points), "run"), *_make_rows(entry)[-1]) for entry in selection]
        tell("\n".join(format_columns(rows)))


@app.command()
def note(
    when: Annotated[str, typer.Argument(metavar="DATE", help="A date or time, such as 2026-11-22.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note.")],
) -> None:
    """Add a note to a date. Charts and lists show the note."""
    from harness.history.index import History  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.summary import convert_to_utc  # noqa: PLC0415

    try:
        datetime.fromisoformat(when)
    except ValueError:
        raise UsageError(f"Invalid date {when!r}.", "Example: 2026-11-22 or 2026-11-22T04:10:00Z.") from None
    if not text.strip():
        raise UsageError("The text of the note is empty.", 'Example: harness history note 2026-11-22 "driver 575"')
    with History.open(told=say) as history:
        history.note(when if len(when) == 10 else convert_to_utc(when), text.strip())


@app.command()
@options.of(SeriesRequest)
def report(
    request: SeriesRequest,
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The file to write. Default: history.html.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="[html|md]",
            autocompletion=lambda: ["html", "md"],
            help="html: a page with all series. md: the changes. Default: md if --since is passed or FILE ends with "
            ".md, otherwise html.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="RUN|DATE",
            help="With md: show changes since this run or date. Default: since the earlier report in FILE, or since "
            "the second newest run.",
        ),
    ] = None,
) -> None:
    """Write history.html, or print the changes.

    With `--format md`, it prints the changes since an earlier run as Markdown.
    """
    from harness.history import page  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.change_cache import ChangeCache  # noqa: PLC0415
    from harness.history.index import History  # noqa: PLC0415
    from harness.history.states import judge_all  # noqa: PLC0415
    from harness.report.html import assets  # noqa: PLC0415
    from harness.store.folder import pause_garbage_collection  # noqa: PLC0415

    kind = format or ("md" if since or (output and output.suffix == ".md") else "html")
    if kind not in ("html", "md"):
        raise UsageError(f"Unknown format: {kind!r}.", "Use html or md.")
    if since and kind == "html":
        raise UsageError("--since selects changes for Markdown only.", "Add --format md.")
    pool = ThreadPoolExecutor(1)
    if kind == "html":
        # another process bundles this script, which takes one or two seconds unless the script is cached
        pool.submit(assets.make_vega_script, get_cache_dir())
    with pause_garbage_collection():  # a year has hundreds of thousands of points, and all stay in use
        with History.open(told=say) as history:
            runs, notes, decisions = history.runs(), history.notes(), history.decisions()
            # the site has a page before the first nightly run too
            is_empty = kind == "html" and not runs and request == SeriesRequest()
            selection = [] if is_empty else _find_series(history, request)
            if is_empty:
                say(f"The history {history.name} is empty. To add the runs in results/: harness history add --all")
        cache = ChangeCache.load_user_cache()
        current_series = judge_all(selection, decisions, known=cache)
        pool.shutdown()
        if kind == "html":
            text = page.render(current_series, runs, notes, MARGIN, cache=get_cache_dir())
            output = output or Path("history.html")
        else:
            from harness.history import changes  # noqa: PLC0415 - the page needs none of it

            last_run = changes.find_start(runs, since or "", _read_earlier_report(output))
            earlier_decisions = changes.cut_decisions(decisions, last_run) if last_run else []
            earlier_series = (
                judge_all(changes.cut_series(selection, last_run), earlier_decisions, known=cache) if last_run else []
            )
            text = changes.render(earlier_series, current_series, last_run, runs, notes)
    cache.save()
    if output:
        save(output, text.encode())
        say(f"History: {output}")
    else:
        typer.echo(text, nl=False)


@app.command()
def alarm(
    issues: Annotated[
        Path | None,
        typer.Option("--issues", metavar="FILE", help="The existing issues, as gh issue list --json prints them."),
    ] = None,
    nightly: Annotated[
        Path | None,
        typer.Option(
            "--nightly",
            metavar="FILE",
            help="The file nightly.toml, with the machines and the rules for accepted and muted changes.",
        ),
    ] = None,
    night: Annotated[
        str,
        typer.Option(
            "--night",
            metavar="NAME",
            help="The name of the measured nightly run in nightly.toml. Default: all nightly runs.",
        ),
    ] = "",
    failures: Annotated[
        Path | None,
        typer.Option(
            "--failures",
            metavar="DIR",
            help="A folder with files NIGHT--MACHINE/failure. Each file contains the reason why a machine measured "
            "nothing. A file named idle marks a machine that had nothing to measure.",
        ),
    ] = None,
    *,
    today: Today = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the necessary steps as JSON, for .github/nightly/issues.")
    ] = False,
) -> None:
    """Print a GitHub issue for each confirmed slowdown.

    With --nightly, it also prints an issue for each machine that has sent no
    result for three days. It doesn't open issues. The nightly workflow opens them with gh.
    """
    from harness.history import alerts  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.index import History  # noqa: PLC0415
    from harness.history.nightly_file import read_nightly_file  # noqa: PLC0415
    from harness.history.overdue import (  # noqa: PLC0415
        find_idle_machines,
        find_overdue,
        find_recent_machines,
        read_failures,
    )

    existing_issues = alerts.read_issues(issues) if issues else []
    now = _read_today(today)
    try:
        file = read_nightly_file(nightly) if nightly else None
        selected_file = file.select(night) if file else None
    except UsageError as error:
        # without the file, nobody knows which slowdowns are accepted, or which machines it plans
        with History.open(told=say) as history:
            runs = history.runs()
        errors = dict.fromkeys(find_recent_machines(runs), str(error))
        overdue_alerts = find_overdue(errors, runs, errors, now, str(nightly))
        _print_steps(alerts.plan_steps(overdue_alerts, existing_issues), as_json=as_json)
        raise
    with History.open(told=say) as history:
        decisions, runs = history.decisions(), history.runs() if file else []
        # only these series can have an alert, and all series of a year take a second
        series = history.series(only={decision.key for decision in decisions if decision.confirmed})
        confirmed_alerts = alerts.find_alerts(
            series,
            decisions,
            summary=history.summary,
            rules=file.rules if file else (),
            machines=file.machines if file else None,
            today=now.date(),
        )
    unplanned: set[str] = set()
    if file and selected_file:
        unplanned = {*file.machines} - {*selected_file.machines}
        errors = read_failures(failures) if failures else {}
        idle_machines = find_idle_machines(failures, selected_file.nights) if failures else set()
        measuring = [machine for machine in selected_file.machines if machine not in idle_machines]
        confirmed_alerts = [*find_overdue(measuring, runs, errors, now, str(nightly)), *confirmed_alerts]
    file_name = str(nightly) if nightly else ""
    steps = alerts.plan_steps(confirmed_alerts, existing_issues, file=file_name, unplanned=unplanned)
    if not steps and not as_json:
        say("No slowdown is confirmed, so there is nothing to report.")
    _print_steps(steps, as_json=as_json)


def _print_steps(steps: Sequence["IssueStep"], *, as_json: bool) -> None:
    if as_json:
        typer.echo(codec.dumps([step.document for step in steps], indent=2))
        return
    for step in steps:
        tell(f"{step.what}\n\n{step.alert.title}\n\n{step.alert.text}\n")


@app.command()
def digest(
    nightly: Annotated[
        Path | None,
        typer.Option(
            "--nightly", metavar="FILE", help="The file nightly.toml, with the rules for accepted and muted changes."
        ),
    ] = None,
    days: Annotated[str, typer.Option("--days", metavar="N", help="The number of days to cover.")] = "7",
    today: Today = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the digest to this file.")
    ] = None,
) -> None:
    """Print a Markdown page about the last days.

    It lists the changes, the accepted and muted changes, and the smallest
    detectable change of each time series.
    """
    from harness.history import digest as page  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.change_cache import ChangeCache  # noqa: PLC0415
    from harness.history.index import History  # noqa: PLC0415
    from harness.history.nightly_file import read_nightly_file  # noqa: PLC0415
    from harness.history.states import judge_all  # noqa: PLC0415

    day_count = read_whole(days, "--days", least=1)
    if day_count > _MOST_DAYS:
        raise UsageError(f"Invalid --days {days!r}: expected a whole number of at most {_MOST_DAYS}.")
    rules = read_nightly_file(nightly).rules if nightly else ()
    with History.open(told=say) as history:
        runs, decisions = history.runs(), history.decisions()
        selection = _find_series(history, SeriesRequest())
    cache = ChangeCache.load_user_cache()
    text = page.render(judge_all(selection, decisions, known=cache), runs, rules, _read_today(today), day_count)
    cache.save()
    if output:
        save(output, text.encode())
    else:
        typer.echo(text, nl=False)


@app.command()
@options.of(ConfirmRequest)
def confirm(
    request: ConfirmRequest,
    *,
    all_suspected: Annotated[bool, typer.Option("--all-suspected", help="Measure all suspected changes.")] = False,
    wait: options.Wait = False,
) -> None:
    """Measure both sides of a suspected change again.

    It measures both sides in one run, and adds the verdict to the history.
    """
    from harness.cli import confirm  # noqa: PLC0415 - not needed for --help
    from harness.history.index import History  # noqa: PLC0415

    files = [Path(scenario) for scenario in request.scenarios if scenario.endswith(".py")]
    stems = [Path(scenario).stem if scenario.endswith(".py") else scenario for scenario in request.scenarios]
    with History.open(told=say) as history:
        selection = _find_series(history, replace(request, scenarios=stems))
        suspicion = confirm.Suspicion.of(history, selection, has_search=bool(request.search))
    if not (all_suspected or request.scenarios or request.environments or request.axes):
        suspicion.refuse()
    raise typer.Exit(confirm.confirm(suspicion, request, files, wait=wait))


@app.command()
def rebuild(
    results: Results = Path("results"),
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Also add the summaries that `export --git` wrote to this folder."),
    ] = None,
) -> None:
    """Rebuild the index from the folders of runs. A run whose folder is missing keeps its old entry."""
    from harness.history import export as exported  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.index import History  # noqa: PLC0415

    # the folder of a run has more information than its summary, so folders come first
    paths = _find_run_folders(results) if results.is_dir() or not source else []
    paths += exported.find_summaries(source) if source else []
    left_out: list[Path] = []
    summaries = list(_load_summaries(paths, left_out))
    run_ids = {summary.run for summary in summaries}
    with ExitStack() as stack:
        # no other process can add a run between reading the old index and writing the new one
        try:
            history = stack.enter_context(History.open(writing=True, told=say))
            summaries += [summary for summary in history.summaries() if summary.run not in run_ids]
            history.clear()
        except UsageError as error:
            say(f"The old index can't be read, so nothing is copied from it. {error.message}")
            stack.close()
            history = stack.enter_context(History.open(fresh=True, told=say))
        added_runs = history.add_all(summaries)
        if source:
            exported.add_notes_and_decisions(history, source)
        typer.echo(f"{history.name} has {counted(len(added_runs), 'run')}.")
    kept_count = len(set(added_runs) - run_ids)
    if kept_count:
        say(f"{counted(kept_count, 'run', 'has')} no folder on this machine, so the data from the old index is kept.")
    _exit_if_left_out(left_out)


@app.command()
@options.of(SeriesRequest)
def export(
    request: SeriesRequest,
    *,
    git: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write one file per run, the notes and the decisions to this folder."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            autocompletion=completion.complete_history_formats,
            help="For the newest run: bencher or benchmark-action. For all runs: openmetrics or otava.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write with --format. Default: stdout."),
    ] = None,
) -> None:
    """Export the history for git, or time series for other tools."""
    from harness.history import export as exported  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.history.index import History  # noqa: PLC0415

    if (git is None) == (format is None):
        raise UsageError("The command needs either --git or --format.", "Use --git DIR or --format NAME.")
    if format is not None and format not in exported.FORMATS:
        raise UsageError(f"Unknown format: {format!r}.", f"Use one of {', '.join(exported.FORMATS)}.")
    with History.open(told=say) as history:
        if git is not None:
            typer.echo(f"{counted(exported.write_folder(history, git), 'run')} written to {git}.")
            return
        selection = _find_series(history, request)
    text = exported.render(str(format), selection)
    if output:
        save(output, text.encode())
    else:
        typer.echo(text, nl=False)


def _find_series(history: "History", request: SeriesRequest) -> list["Series"]:
    """Return the selected series. Raises NothingSelectedError if there are none."""
    selection = history.series(request.scenarios, request.environments, request.axes)
    if selection:
        return selection
    keys = [series.key for series in history.series()]
    if not keys:
        raise NothingSelectedError(f"The history {history.name} is empty.", "Add runs with: harness history add --all")
    known_names = [[*dict.fromkeys(key.scenario for key in keys)], [*dict.fromkeys(key.environment for key in keys)]]
    known_names = [[*names[:_MOST_NAMES], *(["…"] if len(names) > _MOST_NAMES else [])] for names in known_names]
    raise NothingSelectedError(
        f"No series in the history {history.name} matches the options.",
        f"Its scenarios: {', '.join(known_names[0])}. Its environments: {', '.join(known_names[1])}. To show all "
        "series: harness history show",
    )


def _find_run_folders(results: Path) -> list[Path]:
    """Return the folders of runs in `results`. Raises UsageError if `results` doesn't exist."""
    try:
        folders = sorted(path for path in results.iterdir() if (path / "run.json").exists())
    except OSError as error:
        raise UsageError(f"{results} cannot be read: {error.strerror}.", _FOLDER_ADVICE) from None
    if not folders:
        raise UsageError(f"{results} doesn't contain any runs.", _FOLDER_ADVICE)
    return folders


def _load_summaries(paths: Iterable[Path], left_out: list[Path]) -> Iterator["Summary"]:
    """Yield the summaries of runs. For an invalid run, print the error and append its folder to `left_out`."""
    from harness.history import summary  # noqa: PLC0415 - `harness --help` needs none of it

    for path in paths:
        try:
            yield summary.load_summary(path)
        except HarnessError as error:
            left_out.append(path)
            say(f"Left out: {error}")


def _add_runs(paths: Sequence[Path]) -> list[Path]:
    """Add runs, and print their number. Return the runs that were left out."""
    from harness.history.index import History  # noqa: PLC0415 - `harness --help` needs none of it

    left_out: list[Path] = []
    read_count = added_count = 0
    newest_summary = None
    for start in range(0, len(paths), _BATCH_SIZE):
        summaries = list(_load_summaries(paths[start : start + _BATCH_SIZE], left_out))
        with History.open(writing=True, told=say) as history:
            added_runs = history.add_all(summaries)
            location, runs = history.name, history.runs()
        read_count, added_count = read_count + len(summaries), added_count + len(added_runs)
        new_summaries = [summary for summary in summaries if summary.run in added_runs]
        newest_summary = max([*new_summaries, *filter(None, [newest_summary])], key=_get_start, default=None)
    for name in _find_renewed_machines(runs) if paths else ():
        say(
            f"The machine {name} had a different id in each of its last {_NEW_IDS} runs, so each run starts new "
            "time series. To continue the series of one machine, set HARNESS_MACHINE_ID, or id in nightly.toml."
        )
    if newest_summary and (problem := _find_baseline_problem(newest_summary)):
        say(f"{problem} As the first -e of the run, pass an environment that doesn't change, such as -e tf2.15.")
    old_count = read_count - added_count
    remark = f", {old_count} {'was' if old_count == 1 else 'were'} already in it" if old_count else ""
    typer.echo(f"{counted(added_count, 'run')} added to {location}{remark}.")
    return left_out


def _get_start(summary: "Summary") -> str:
    return summary.started


def _find_baseline_problem(summary: "Summary") -> str:
    """Return why no change can be found in a history of such runs, as a sentence; empty if its baseline is suitable."""
    from harness.environments.requested import is_line  # noqa: PLC0415 - `harness --help` needs none of it

    if not any(point.reference for point in summary.points):
        return f"The run {summary.run} has no ratio to a baseline, so the history can't find changes in such runs."
    # `latest` changes a few times a year
    if summary.reference != "latest" and is_line(summary.reference):
        return (
            f"The baseline of the run {summary.run} is {summary.reference}, which changes often. With each version, "
            "all time series start again, so the history can't find changes."
        )
    return ""


def _find_renewed_machines(runs: Sequence["HistoryEntry"]) -> list[str]:
    """Return the names of machines whose newest runs all have different machine ids."""
    ids: dict[str, list[str]] = {}
    for run in runs:
        for machine in run.machines:
            ids.setdefault(machine.name, []).append(machine.id)
    newest_ids = {name: machine_ids[-_NEW_IDS:] for name, machine_ids in ids.items() if name}
    return [name for name, machine_ids in newest_ids.items() if len(set(machine_ids)) == _NEW_IDS]


def _exit_if_left_out(left_out: Sequence[Path]) -> None:
    if left_out:
        say(f"{counted(len(left_out), 'run')} left out.")
        raise typer.Exit(Exit.CELLS_FAILED)


def _format_name(series: "Series") -> str:
    key = series.key
    machine = series.points[-1].origin.machine or key.machine
    return escape(f"{key.cell}{f' / {key.versus}' if key.versus else ''} on {machine}")


def _read_earlier_report(output: Path | None) -> str:
    """Return the text in the file of an earlier report; empty if the file doesn't exist."""
    with suppress(OSError, UnicodeDecodeError):
        return output.read_text(encoding="utf-8") if output else ""
    return ""


def _make_rows(series: "Series") -> list[tuple[str, ...]]:
    """Return a row per point: date, ratio with interval, time, and for a release line the version."""
    from harness.environments.requested import is_line  # noqa: PLC0415 - `harness --help` needs none of it

    has_line = is_line(series.key.environment)
    return [_make_row(point, is_line=has_line) for point in series.points]


def _make_row(point: "SeriesPoint", *, is_line: bool) -> tuple[str, ...]:
    from harness.analysis.statistics import Estimate, Interval  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.report import format  # noqa: PLC0415

    ratio = ""
    if point.log_ratio is not None:
        ends = None if point.low is None or point.high is None else Interval(math.exp(point.low), math.exp(point.high))
        ratio = format.ratio(Estimate(math.exp(point.log_ratio), point.rounds, ends))
    version = escape(point.origin.version) if is_line else ""
    if point.seconds is None:
        text = f"{point.status}: {point.reason}" if point.reason else point.status
        return _format_minute(point.started), ratio, escape(text), version
    unit = format.unit([point.seconds], Clock.WALL)
    return _format_minute(point.started), ratio, f"{format.number(point.seconds * unit.factor)} {unit.symbol}", version


def _read_today(today: str | None) -> datetime:
    """Return the end of the day `today` in UTC, or the current time if it is empty. Raises UsageError."""
    if not today:
        return datetime.now(UTC)
    try:
        return datetime.combine(date.fromisoformat(today), time.max, UTC)
    except ValueError:
        raise UsageError(f"Invalid --today {today!r}.", "Use a date, such as 2026-11-22.") from None


def _format_minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")


def _make_document(series: "Series") -> dict[str, Any]:
    """Return a time series as JSON values: its key, and each point with the facts about its run."""
    key = {**asdict(series.key), "axes": dict(series.key.axes), "against": dict(series.key.against)}
    return {**key, "points": [{**point._asdict(), "origin": point.origin._asdict()} for point in series.points]}
