"""Reads stored runs: their results, their reports, comparisons of two runs, and gates."""

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.files import get_cache_dir
from harness.model.defaults import MARGIN
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.launch import Launch, Status
from harness.model.run import Run, Stop, StopReason
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report import escape, files, sections
from harness.report.blocks import Figure, Section, Table, Where
from harness.report.charts.drawing import DrawingError, drawer
from harness.report.escape import escape_terminal
from harness.report.formats import render, render_template
from harness.report.sections import measurement, summary
from harness.store.folder import RunFolder, pause_garbage_collection

if TYPE_CHECKING:
    from harness.analysis.runs import Pair

#: A line of a traceback with the file, line and function of a frame.
_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)


class Gate(Enum):
    """The result of a gate, which checks that nothing is slower. NOTHING_JUDGED: no comparison has a verdict."""

    PASSED = "passed"
    SLOWER = "slower"
    NOTHING_JUDGED = "nothing judged"


@dataclass(frozen=True, slots=True)
class Written:
    """The reports of a run: the `files` that were written, and the `sections`, for example to print them."""

    files: Sequence[Path]
    sections: Sequence[Section]


def read(folder: Path | str) -> Results:
    """Read a stored run. Raises UsageError if the folder has no run, or if the run is corrupt."""
    run_folder = RunFolder.open(folder)
    with pause_garbage_collection():
        run = run_folder.read_run()
        launches = run_folder.read_launches(run)
        if run_folder.is_torn:  # a missing result may be in the incomplete line
            run = replace(run, stops={name: _drop_budget_reason(stop) for name, stop in run.stops.items()})
        return load_results(run, launches)


def read_in_place(folder: Path | str) -> Results:
    """Read a stored run as `read` does. Its commands name `folder` if the run isn't in its recorded folder anymore."""
    results = read(folder)
    if Path(results.run.shown_folder).resolve() != Path(folder).resolve():
        results.run = replace(results.run, folder=str(folder))
    return results


def _drop_budget_reason(stop: Stop) -> Stop:
    return replace(stop, reason=StopReason.INTERRUPTED) if stop.reason is StopReason.BUDGET else stop


def is_torn(folder: Path) -> bool:
    """Return whether the stored launches end in an incomplete line, which `read` skips."""
    return RunFolder(folder).is_torn


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error of a scenario: the `path`, `line` and `function` of its last frame, and the error.

    `command` writes a script that does the work of the launch without harness.
    """

    path: Path
    line: int
    function: str
    error: str
    command: str


def find_raised_errors(results: Results) -> list[RaisedError]:
    """Return the distinct errors that scenarios of a local run raised, if their tracebacks were saved."""
    errors = []
    # the scenario of a plain script is a generated file in the cache
    paths = {scenario.name: Path(scenario.script or scenario.path) for scenario in results.run.scenarios}
    for missing_cells in results.missing:
        cell, launch = missing_cells.cells[0], results.found.culprit(missing_cells.cells[0])
        if launch is None or launch.status is not Status.FAILED:
            continue
        traceback = launch.stderr.rpartition("Traceback (most recent call last):")[2]
        path = paths[cell.scenario]
        # in the traceback, the scenario's file is in the folder of the launch
        frames = [(Path(source), int(line), function) for source, line, function in _FRAME.findall(traceback)]
        own_frames = [(path, line, function) for source, line, function in frames if source.name == path.name]
        for file, line, function in (own_frames or frames)[-1:]:
            errors.append(RaisedError(file, line, function, launch.error, _format_bundle_command(results, cell)))
    return errors


def _format_bundle_command(results: Results, cell: Cell) -> str:
    words = ["-s", cell.scenario, "-e", cell.environment]
    words += [word for axis, value in cell.axes.items() for word in ("-a", f"{axis}={value}")]
    return shlex.join(["harness", "bundle", results.run.shown_folder, *words])


def find_newest_runs(count: int = 1, results: Path | str = "") -> list[Path]:
    """Return the folders of the newest runs, oldest first.

    The default of `results` is the project's folder. Raises UsageError if it has fewer than `count` runs.
    """
    results = results or os.environ.get("HARNESS_RESULTS", "results")
    paths = sorted(Path(results).glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns)
    if len(paths) < count:
        raise UsageError(
            f"The folder {results} has {counted(len(paths), 'run') if paths else 'no run'}, but this command needs "
            f"{count}.",
            "Pass the folder of a run, or measure one: harness matrix",
        )
    return [path.parent for path in paths[-count:]]


def load_results(run: Run, launches: Sequence[Launch]) -> Results:
    """Return the results of a run's launches, which notebooks show as the answer with its chart and its table."""
    return Results(run, launches, _format_html, partial(render, "csv"))


def _format_html(results: Results) -> str:
    """Return the answer, the quality of the measurement, the first chart and the main table of the report as HTML."""
    blocks = list(summary.make_first_screen(results))
    sentences = filter(None, [summary.describe_main_result(results), measurement.describe(results)])
    charts = []
    with suppress(DrawingError):  # the table has the same numbers
        charts = [block.picture.svg() for block in blocks if isinstance(block, Figure)][:1]
    tables = [_format_table(block) for block in blocks if isinstance(block, Table)]
    return "".join([*(f"<p>{escape.html(text)}</p>" for text in sentences), *charts, *tables])


def _format_table(table: Table) -> str:
    page_table = table.shown(Where.PAGE)
    header_cells = "".join(f"<th>{escape.html(head.text)}</th>" for head in page_table.heads)
    rows = ["".join(f"<td>{escape.html(entry.text)}</td>" for entry in line.entries) for line in page_table.lines]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><caption>{escape.html(page_table.caption)}</caption><tr>{header_cells}</tr>{body}</table>"


def report(folder: RunFolder | Path | str, results: Results | None = None, *, full: bool = False) -> Written:
    """Write the reports of a run again: report.md, details.md, report.html and charts/.

    For a run of `harness profile`, the files are profile.md and profile.html. With `full`, report.md has all details,
    without a size limit.
    """
    # if this is called at the end of a run, resuming the run also writes the report
    hint = "harness matrix --resume" if isinstance(folder, RunFolder) else "harness report"
    run_folder = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    # start the chart renderer now: it starts while the launches are read
    with suppress(DrawingError):
        drawer()
    results = results or read(run_folder.path)
    if results.run.plan.profile_calls:
        profiles_by_launch = [(launch, run_folder.read_profiles(launch)) for launch in results.launches]
        from harness.report import profiles  # noqa: PLC0415 - only reports of profiles need it

        profile_report = profiles.ProfileReport(results.run, profiles_by_launch)
        profile_files = files.list_profile_files(profile_report)
        return Written(run_folder.write_reports(profile_files, hint), profile_report.sections())
    all_sections = sections.build(results)
    report_files = files.render_files(results, all_sections, full=full, cache=get_cache_dir())
    return Written(run_folder.write_reports(report_files, hint), all_sections)


def has_numbers(results: Results) -> bool:
    """Return whether any cell has a result, an observation or a profile. Otherwise, the run failed."""
    if results.run.plan.profile_calls:
        return any(launch.status is Status.OK for launch in results.launches)
    return bool(results.found.series or results.found.observed)


def export(folder: Path | str, format: str | Path) -> bytes:
    """Return the report of a run in another tool's format, as bytes.

    `format` is a value of `harness report --format`, or the path of a template. Raises UsageError for a run of
    `harness profile`, and for a template with a mistake.
    """
    results = read_in_place(folder)
    if results.run.plan.profile_calls:
        raise UsageError(
            f"{folder} has profiles instead of measurements. Their report is profile.md and profile.html.",
            "Omit --format and --template.",
        )
    with pause_garbage_collection():
        text = render_template(results, format) if isinstance(format, Path) else render(format, results)
    # encoded here, because CSV has its own line endings, and file formats don't depend on the terminal's encoding
    return text.encode()


def compare(first: Path | str, second: Path | str, *, margin: float = MARGIN, any_host: bool = False) -> "Pair":
    """Compare two stored runs. Differences below `margin`, a share such as 0.03, aren't reported.

    Raises NothingSelectedError if no cell has a result in both runs. Raises UsageError if a folder has no run, if both
    are the same run, if one run measured wall-clock time and the other CPU time, or if the machines differ. To allow
    different machines, pass `any_host`.
    """
    from harness.analysis.run_differences import Aspect  # noqa: PLC0415 - only comparisons need it
    from harness.analysis.runs import Pair  # noqa: PLC0415
    from harness.report.changes import format_fact  # noqa: PLC0415

    pair = Pair(read_in_place(first), read_in_place(second), margin)
    one, other = pair.first, pair.second
    if one.run.id == other.run.id:
        raise UsageError(f"{first} and {second} are the same run.", "Pass two different runs.")
    for path, stored in ((first, one), (second, other)):
        if stored.run.machines:
            raise UsageError(
                f"{path} contains results from several machines. Only runs from one machine can be compared.",
                f"Compare the runs that it was merged from: {', '.join(stored.run.merged)}.",
            )
    if one.run.plan.clock is not other.run.plan.clock:
        raise UsageError(
            f"{first} measured {one.run.plan.clock.time}, and {second} {other.run.plan.clock.time}: they cannot be "
            "compared.",
            f"Measure one of them again, with --clock {other.run.plan.clock} or --clock {one.run.plan.clock}.",
        )
    if pair.machines and not any_host:
        differences = escape_terminal("; ".join(map(format_fact, pair.machines)))
        raise UsageError(
            f"{first} and {second} were measured on different machines: {differences}.",
            "To compare them anyway: --any-host",
        )
    if one.found.series.keys() & other.found.series.keys():
        return pair
    count = len(one.found.cells.keys() & other.found.cells.keys())
    changed_scenarios = [
        difference.subject
        for difference in pair.differences
        if difference.part is Aspect.SCENARIO and difference.name == "axes"
    ]
    raise NothingSelectedError(
        (f"Of {count} common cells, none has a result in both runs." if count else "The runs have no cell in common.")
        + (f" The axes of {', '.join(changed_scenarios)} have changed." if changed_scenarios else ""),
        "For the reasons, see each run's report.md.",
    )


def gate(found: "Results | Pair") -> Gate:
    """Return whether an environment is slower than the baseline, or whether a cell is slower in the second run.

    Only comparisons of environments and of scenario versions count. A comparison along another axis isn't a
    regression: for example, eager mode can be slower than graph mode.
    """
    from harness.report.comparisons import can_regress, list_all_lines  # noqa: PLC0415 - reports don't need it here

    verdicts: set[Verdict | None]
    if isinstance(found, Results):
        verdicts = {line.compared.verdict for line in list_all_lines(found) if can_regress(line.entry)}
    else:
        verdicts = {*found.changes.deciding}
    if not verdicts - {None, Verdict.DIFFERENT_WORK}:
        return Gate.NOTHING_JUDGED
    return Gate.SLOWER if Verdict.SLOWER in verdicts else Gate.PASSED
