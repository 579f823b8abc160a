"""Exports a history as files for git, from which it can be rebuilt, and in the formats of other tools."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from harness.files import write_atomically
from harness.history import summary
from harness.history.database import read_lines
from harness.history.index import History, parse_decision, parse_note
from harness.model.defaults import LEVEL
from harness.model.errors import NothingSelectedError, UsageError, explain_unwritable
from harness.model.history import Series, SeriesPoint
from harness.model.texts import escape, format_plain
from harness.report.escape import dump_json
from harness.report.format import level


def write_folder(history: History, folder: Path) -> int:
    """Write notes, decisions, and YYYY-MM/RUN.json for each run that has no file yet. Return the number of new files.

    Raises CannotRunHereError if the folder can't be written.
    """
    with explain_unwritable(folder, "Choose another folder with --git."):
        written_count = sum(summary.write(run_summary, folder) for run_summary in history.summaries())
        for name, records in (("notes", history.notes()), ("decisions", history.decisions())):
            lines = "".join(json.dumps(asdict(entry)) + "\n" for entry in records)
            if lines:
                write_atomically(folder / f"{name}.jsonl", lines)
    return written_count


def find_summaries(folder: Path) -> list[Path]:
    """Return the paths of the runs that `write_folder` wrote. Raises UsageError if there are none."""
    paths = sorted(folder.glob("[0-9][0-9][0-9][0-9]-[0-9][0-9]/*.json"))
    if not paths:
        raise UsageError(
            f"{folder} doesn't contain summaries of runs.",
            "To write summaries: harness history export --git DIR. To read the folders of runs instead, pass "
            "--results.",
        )
    return paths


def add_notes_and_decisions(history: History, folder: Path) -> None:
    """Add to a history the notes and decisions in a folder that `write_folder` wrote."""
    for document in read_lines(folder / "notes.jsonl"):
        note = parse_note(document, folder / "notes.jsonl")
        history.note(note.when, note.text)
    for document in read_lines(folder / "decisions.jsonl"):
        history.decide(parse_decision(document, folder / "decisions.jsonl"))


def render(format: str, series: Sequence[Series]) -> str:
    """Return the series in one of `FORMATS`. Raises NothingSelectedError if the result would be empty."""
    return FORMATS[format](series)


def _format_otava(series: Sequence[Series]) -> str:
    """Return a CSV of ratios, with a row per run and a column per series.

    Runs without a ratio for one of the series are left out, because otava doesn't accept gaps:
    https://github.com/apache/otava/blob/master/docs/CSV.md
    """
    compared = [one_series for one_series in series if any(point.log_ratio is not None for point in one_series.points)]
    columns = [
        {point.run: format_plain(_get_ratio(point), 6) for point in one_series.points if point.log_ratio is not None}
        for one_series in compared
    ]
    first_points = compared[0].points if compared else []
    complete_points = [point for point in first_points if all(point.run in column for column in columns)]
    if not complete_points:
        raise NothingSelectedError(
            "No run has a ratio in every series, and otava accepts no gaps.",
            "Choose series with -s (scenario), -e (environment) or -a (axis).",
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with_machine = len({one_series.key.machine for one_series in compared}) > 1
    writer.writerow(["time", "run", "commit", *(_format_name(one_series, with_machine) for one_series in compared)])
    for point in complete_points:
        ratios = [column[point.run] for column in columns]
        writer.writerow([point.started, point.run, escape(point.origin.commit), *ratios])
    return text.getvalue()


def _format_benchmark_action(series: Sequence[Series]) -> str:
    """Return the newest run in the format `customSmallerIsBetter` of github-action-benchmark.

    See report/formats/benchmark_action.py.
    """
    with_machine = len({one_series.key.machine for one_series in series}) > 1
    return dump_json(
        [
            {
                # the action writes names in backticks into a table, so `|` and backticks can't be escaped
                "name": _format_name(one_series, with_machine).translate({ord("|"): "¦", ord("`"): "'"}),
                "unit": "× the reference's time",
                "value": _get_ratio(point),
                **(
                    {"range": " to ".join(format_plain(math.exp(end), 4) for end in ends)}
                    if (ends := _get_interval(point))
                    else {}
                ),
                "extra": f"run: {point.run}\nrounds: {point.rounds}",
            }
            for one_series, point in _find_newest_points(series)
        ]
    )


def _format_bencher(series: Sequence[Series]) -> str:
    """Return the newest run in Bencher's format: https://bencher.dev/docs/reference/bencher-metric-format/."""
    with_machine = len({one_series.key.machine for one_series in series}) > 1
    metrics = {}
    for newest_series, point in _find_newest_points(series):
        ends = zip(("lower_value", "upper_value"), map(math.exp, _get_interval(point)), strict=False)
        metrics[_format_name(newest_series, with_machine)] = {"ratio": {"value": _get_ratio(point), **dict(ends)}}
    return dump_json(metrics)


def _format_openmetrics(series: Sequence[Series]) -> str:
    """Return OpenMetrics 1.0 with the time of each point: https://prometheus.io/docs/specs/om/open_metrics_spec/."""
    percent = level(LEVEL)
    families: list[tuple[str, str, str, Callable[[SeriesPoint], float | None]]] = [
        (
            "harness_ratio",
            "",
            "The time of a cell relative to its baseline.",
            lambda point: _convert_from_log(point.log_ratio),
        ),
        (
            "harness_ratio_low",
            "",
            f"The lower end of the {percent} interval of the ratio.",
            lambda point: _convert_from_log(point.low),
        ),
        (
            "harness_ratio_high",
            "",
            f"The upper end of the {percent} interval of the ratio.",
            lambda point: _convert_from_log(point.high),
        ),
        ("harness_step_seconds", "seconds", "The time of a step.", lambda point: point.seconds),
    ]
    lines = []
    for name, unit, description, value_of in families:
        lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {description}"]
        for one_series in series:
            labels = _format_labels(one_series)
            lines += [
                f"{name}{labels} {value!r} {datetime.fromisoformat(point.started).timestamp():.0f}"
                for point in one_series.points
                if (value := value_of(point)) is not None
            ]
    return "\n".join([*lines, "# EOF", ""])


def _format_labels(series: Series) -> str:
    key = series.key
    labels: dict[str, str] = {
        "machine": key.machine,
        "scenario": key.scenario,
        "device": key.device,
        "environment": key.environment,
        "reference": key.versus,
        "way": key.way,
        **{f"axis_{re.sub('[^a-zA-Z0-9_]', '_', axis)}": value for axis, value in key.axes},
    }
    # escape control characters, because a terminal would execute them; OpenMetrics itself escapes only line feeds
    escaped_labels = {
        name: re.sub(r'([\\"])', r"\\\1", escape(value, keep="\n")).replace("\n", r"\n")
        for name, value in labels.items()
        if value
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped_labels.items()) + "}"


def _find_newest_points(series: Sequence[Series]) -> list[tuple[Series, SeriesPoint]]:
    """Return the points of each machine's newest run that have a ratio, with their series."""
    newest_runs: dict[str, tuple[str, str]] = {}
    for one_series in series:
        newest_point = one_series.points[-1]
        machine = one_series.key.machine
        newest_runs[machine] = max(newest_runs.get(machine, ("", "")), (newest_point.started, newest_point.run))
    newest = [
        (member, point)
        for member in series
        if (point := member.points[-1]).run == newest_runs[member.key.machine][1] and point.log_ratio is not None
    ]
    if not newest:
        raise NothingSelectedError(
            "The newest run doesn't have a ratio in these series.", "To list the series: harness history show"
        )
    return newest


def _format_name(series: Series, with_machine: bool) -> str:
    key = series.key
    machine = f" on {series.points[-1].origin.machine or key.machine}" if with_machine else ""
    return escape(f"{key.cell} / {key.versus}{machine}")


def _get_ratio(point: SeriesPoint) -> float:
    assert point.log_ratio is not None, "a point without a ratio can't be exported"
    return math.exp(point.log_ratio)


def _get_interval(point: SeriesPoint) -> tuple[float, ...]:
    """Return the ends of the interval on the log scale; empty if the point has no interval."""
    return () if point.low is None or point.high is None else (point.low, point.high)


def _convert_from_log(log: float | None) -> float | None:
    return None if log is None else math.exp(log)


#: The formats of `harness history export --format`.
FORMATS: Mapping[str, Callable[[Sequence[Series]], str]] = {
    "bencher": _format_bencher,
    "benchmark-action": _format_benchmark_action,
    "openmetrics": _format_openmetrics,
    "otava": _format_otava,
}
