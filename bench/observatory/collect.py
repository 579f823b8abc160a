"""Collects the nightly runs of replays: their series, and their launches in compact form."""

import io
import json
import math
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.examples import read_without_paths
from bench.observatory.records import LAUNCHES, SERIES, NightlyPoint, NightlySeries, read_series, write_series
from bench.observatory.wheels import find_day
from bench.replay import nights
from harness.environments.requested import is_line
from harness.history.folder import History
from harness.history.summary import load_summary
from harness.model.errors import UsageError
from harness.model.history import CellPoint, Summary

#: The key of a series: scenario, axes, line, baseline and machine.
_Key = tuple[str, tuple[tuple[str, str], ...], str, str, str]


def collect(folders: Sequence[Path], series_path: Path = SERIES, launches_path: Path = LAUNCHES) -> str:
    """Add nightly runs to the stored ones, and return a sentence with the number and size of all.

    Each folder is a replay, or has runs with several wheels (measure.py).
    """
    by_run = {
        _get_key(one): {(point.run, point.day): point for point in one.points} for one in _read_stored(series_path)
    }
    runs: dict[str, Path] = {}
    for folder in folders:
        for summary, day in _read_summaries(folder):
            runs[summary.run] = folder / nights.RESULTS / summary.run
            for key, point in _make_points(summary, day):
                by_run.setdefault(key, {})[point.run, point.day] = point
    write_series([_make_series(key, list(points.values())) for key, points in by_run.items()], series_path)
    count = _pack(runs, launches_path)
    size = launches_path.stat().st_size if count else 0
    return f"{len(by_run)} series, and launches of {count} nightly runs: {size:,} bytes, {size // (count or 1):,} each."


def _read_summaries(folder: Path) -> Iterator[tuple[Summary, str]]:
    """Yield the nightly runs in a folder, each with the day that it replays; empty if its wheels have several days."""
    if (folder / nights.PLAN).exists():
        measured = {record.run for record in nights.read_records(folder) if record.run}
        for summary in History(folder / nights.HISTORY).summaries():
            if summary.run in measured:
                yield summary, summary.started[:10]
        return
    for path in sorted((folder / nights.RESULTS).glob("*/run.json")):
        try:
            yield load_summary(path.parent), ""
        except UsageError as error:  # it is still being measured
            print(f"Left out: {error}")


def _read_stored(path: Path) -> list[NightlySeries]:
    return read_series(path) if path.exists() else []


def _get_key(series: NightlySeries) -> _Key:
    return series.scenario, tuple(series.axes.items()), series.line, series.baseline, series.machine


def _make_series(key: _Key, points: list[NightlyPoint]) -> NightlySeries:
    scenario, axes, line, baseline, machine = key
    points.sort(key=lambda point: (point.day, point.run))
    return NightlySeries(scenario, dict(axes), line, baseline, machine, points)


def _make_points(summary: Summary, day: str) -> Iterator[tuple[_Key, NightlyPoint]]:
    """Yield the points of a nightly run. Each is compared with the baseline in the same cell.

    Without a `day`, the day of a point is the day of its wheel.
    """
    cells = {(point.scenario, *point.axes.items(), point.environment): point for point in summary.points}
    cpus = {measurer.machine.id: measurer.cpu for measurer in summary.machines}
    for point in summary.points:
        baseline = cells.get((point.scenario, *point.axes.items(), summary.reference))
        line, _, wheel = summary.software[point.environment].version.rpartition("==")
        if not is_line(line) or not point.seconds or not (baseline and baseline.seconds):
            continue
        ends = _get_interval(point)
        ratio, low, high = ends or (point.seconds / baseline.seconds, None, None)
        key = point.scenario, tuple(point.axes.items()), line, summary.reference, cpus[point.machine]
        yield (
            key,
            NightlyPoint(
                day or find_day(wheel),
                wheel,
                _round(ratio),
                _round(low),
                _round(high),
                point.seconds,
                baseline.seconds,
                summary.run,
            ),
        )


def _get_interval(point: CellPoint) -> tuple[float, float | None, float | None] | None:
    """Return the ratio of a run with its interval; None if the run compares the cell with another one."""
    if point.ratio is None or not point.against.items() <= point.axes.items():
        return None
    low, high = (math.exp(end) if end is not None else None for end in (point.low, point.high))
    return math.exp(point.ratio), low, high


def _round(value: float | None) -> Any:
    return None if value is None else float(f"{value:.5g}")


def _pack(runs: Mapping[str, Path], path: Path) -> int:
    """Store the launches of runs beside those in the archive, and return the number of runs in it."""
    files: dict[str, bytes] = {}
    if path.exists():
        with tarfile.open(path) as archive:
            for member in archive:
                files[member.name] = archive.extractfile(member).read()  # type: ignore[union-attr]
    for run, folder in runs.items():
        if (folder / "run.json").exists():
            launches = (folder / "launches.jsonl").read_bytes()
            files |= {f"{run}/run.json": read_without_paths(folder), f"{run}/launches.jsonl": launches}
    if not files:
        return 0
    # successive runs have similar launches, so xz stores the differences if they are next to each other
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name in sorted(files, key=lambda name: (name.rpartition("/")[2], name)):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return len({name.partition("/")[0] for name in files})


def read_run(run: str, path: Path = LAUNCHES) -> dict[str, Any]:
    """Return run.json of a stored nightly run."""
    with tarfile.open(path) as archive:
        document: dict[str, Any] = json.load(archive.extractfile(f"{run}/run.json"))  # type: ignore[arg-type]
    return document
