"""`harness history`."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion, options
from harness.cli.history_reports import alarm, find_series, open_history, report
from harness.cli.messages import format_columns, say, tell, tell_json, tell_lines
from harness.history.request import ConfirmRequest, SeriesRequest
from harness.model.errors import Exit, HarnessError, UsageError
from harness.model.launch import Clock
from harness.model.texts import counted, escape

if TYPE_CHECKING:
    from harness.model.history import Decision, HistoryEntry, Series, SeriesPoint, Summary

app = typer.Typer(
    help="Record and show results of the same cells over time.", no_args_is_help=True, rich_markup_mode=None
)

#: If this many newest runs of a machine all have different machine ids, the machine probably loses its id.
_NEW_IDS = 3

_FOLDER_ADVICE = "Choose another folder with --results."

Results = Annotated[Path, options.make_option("results")]


@app.command()
def add(
    runs: Annotated[
        list[Path] | None, completion.RunFolderArgument(metavar="[RUN]...", help="Folders of runs.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Add every run in the folder of --results.")] = False,
    results: Results = Path("results"),
) -> None:
    """Add finished runs to the history. Runs that are already in the history are skipped."""
    from harness.history.summary import load_summary  # noqa: PLC0415 - `harness --help` needs none of it

    if not runs and not all_:
        raise UsageError("No run is specified.", "Pass folders of runs, such as results/RUN, or use --all.")
    paths = [*(runs or []), *(_find_run_folders(results) if all_ else [])]
    history, summaries = open_history(), []
    for path in paths:
        try:
            summaries.append(load_summary(path))
        except HarnessError as error:
            say(f"Left out: {error}")
    # merged runs first, because the history then has their parts
    added = [summary for summary in sorted(summaries, key=lambda entry: -len(entry.merged)) if history.add(summary)]
    for name in _find_renewed_machines(history.runs()):
        say(
            f"The machine {name} had a different id in each of its last {_NEW_IDS} runs, so each run starts new "
            "time series. To continue the series of one machine, set HARNESS_MACHINE_ID, or id in nightly.toml."
        )
    newest_summary = max(added, key=lambda summary: summary.started, default=None)
    if newest_summary and (problem := _find_baseline_problem(newest_summary)):
        say(f"{problem} As the first -e of the run, pass an environment that doesn't change, such as -e tf2.15.")
    old_count = len(summaries) - len(added)
    remark = f", {old_count} {'was' if old_count == 1 else 'were'} already in it" if old_count else ""
    typer.echo(f"{counted(len(added), 'run')} added to {history.path}{remark}.")
    if left_out_count := len(paths) - len(summaries):
        say(f"{counted(left_out_count, 'run')} left out.")
        raise typer.Exit(Exit.CELLS_FAILED)


@app.command(name="list")
def list_runs(json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON.")] = False) -> None:
    """List the runs, the notes and the confirmations.

    If files of the history are damaged, it lists the others, and exits with code 1.
    """
    history = open_history()
    runs, notes, decisions = history.runs(), history.notes(), history.decisions()
    if json:
        document: dict[str, list[Any]] = {"runs": runs, "notes": notes, "decisions": decisions}
        tell_json({name: [asdict(record) for record in records] for name, records in document.items()})
    else:
        if not runs:
            say(f"The history {history.path} is empty. To add the runs in results/: harness history add --all")
        note_lines = [f"{note.when}: {note.text}" for note in notes]
        for line in [*_format_runs(runs), *note_lines, *map(_format_decision, decisions)]:
            tell(escape(line))
    if history.left_out:
        raise typer.Exit(Exit.CELLS_FAILED)


def _format_runs(runs: Sequence["HistoryEntry"]) -> list[str]:
    """Return a line per run."""
    rows = [
        (
            *(run.run, _format_minute(run.started), ", ".join(machine.shown for machine in run.machines)),
            *(run.suite or "-", counted(run.points, "point")),
        )
        for run in runs
    ]
    return format_columns(rows)


def _format_decision(decision: "Decision") -> str:
    verdict = "confirmed" if decision.confirmed else "refuted"
    size = f"{decision.ratio:.3f}× ({decision.low:.3f} to {decision.high:.3f}) side by side"
    sides = f", between {' and '.join(decision.sides)}" if decision.sides and decision.confirmed else ""
    change = f"{decision.key.cell}, since {decision.since}"
    return f"{_format_minute(decision.when)}: {change}: {verdict}, {size}{sides} ({decision.run})"


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
    selection = find_series(open_history(), request)
    if json:
        tell_json([_make_document(entry) for entry in selection])
    elif points:
        for series in selection:
            lines = format_columns([_make_row(series, point) for point in series.points])
            tell("\n".join([_format_name(series), *(f"  {line}" for line in lines)]))
    else:
        # the name, which can be long, comes last
        rows = [
            (*_make_row(series, series.points[-1]), counted(len(series.points), "run"), _format_name(series))
            for series in selection
        ]
        tell_lines(format_columns(rows))


@app.command()
def note(
    when: Annotated[str, typer.Argument(metavar="DATE", help="A date or time, such as 2026-11-22.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note.")],
) -> None:
    """Add a note to a date. Charts and lists show the note."""
    from harness.history.series import convert_to_utc  # noqa: PLC0415 - `harness --help` needs none of it

    try:
        moment = convert_to_utc(when)
    except (ValueError, OverflowError):
        raise UsageError(f"Invalid date {when!r}.", "Example: 2026-11-22 or 2026-11-22T04:10:00Z.") from None
    if not text.strip():
        raise UsageError("The text of the note is empty.", 'Example: harness history note 2026-11-22 "driver 575"')
    open_history().note(moment[:10] if len(when) <= 10 else moment, text.strip())


app.command()(report)
app.command()(alarm)


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

    files = [Path(scenario) for scenario in request.scenarios if scenario.endswith(".py")]
    stems = [Path(scenario).stem if scenario.endswith(".py") else scenario for scenario in request.scenarios]
    history = open_history()
    selection = find_series(history, replace(request, scenarios=stems))
    suspected = confirm.find_suspected(history, selection, request.confirmations)
    if not (all_suspected or request.scenarios or request.environments or request.axes):
        confirm.refuse_all(suspected)
    raise typer.Exit(confirm.confirm(history, suspected, request, files, wait=wait))


def _find_run_folders(results: Path) -> list[Path]:
    """Return the folders of runs in `results`. Raises UsageError if `results` doesn't exist."""
    try:
        folders = sorted(path for path in results.iterdir() if (path / "run.json").exists())
    except OSError as error:
        raise UsageError(f"{results} cannot be read: {error.strerror}.", _FOLDER_ADVICE) from None
    if not folders:
        raise UsageError(f"{results} doesn't contain any runs.", _FOLDER_ADVICE)
    return folders


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


def _format_name(series: "Series") -> str:
    key = series.key
    machine = series.points[-1].origin.machine or key.machine
    return escape(f"{key.cell}{f' / {key.versus}' if key.versus else ''} on {machine}")


def _make_row(series: "Series", point: "SeriesPoint") -> tuple[str, ...]:
    """Return the row of a point: date, ratio with interval, time, and for a release line the version."""
    from harness.analysis.statistics import Estimate, Interval  # noqa: PLC0415 - `harness --help` needs none of it
    from harness.environments.requested import is_line  # noqa: PLC0415
    from harness.report import format  # noqa: PLC0415

    ratio = ""
    if point.log_ratio is not None:
        ends = None if point.low is None or point.high is None else Interval(math.exp(point.low), math.exp(point.high))
        ratio = format.ratio(Estimate(math.exp(point.log_ratio), point.rounds, ends))
    version = escape(point.origin.version) if is_line(series.key.environment) else ""
    if point.seconds is None:
        text = f"{point.status}: {point.reason}" if point.reason else point.status
        return _format_minute(point.started), ratio, escape(text), version
    unit = format.unit([point.seconds], Clock.WALL)
    return _format_minute(point.started), ratio, f"{format.number(point.seconds * unit.factor)} {unit.symbol}", version


def _format_minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")


def _make_document(series: "Series") -> dict[str, Any]:
    """Return a time series as JSON values: its key, and each point with the facts about its run."""
    key = {**asdict(series.key), "axes": dict(series.key.axes), "against": dict(series.key.against)}
    return {**key, "points": [{**point._asdict(), "origin": point.origin._asdict()} for point in series.points]}
