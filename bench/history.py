"""The cost of a history of a million launches: recording it from the runs' folders, and each query.

`python -m bench.history` measures a million launches, and `python -m bench.history 100000` measures 100,000. A nightly
run has 40 cells, which are ten environments in two modes, with a pilot, a control and five rounds. All nightly runs are
links to the launches of a few nightly runs, because their content doesn't matter, and a million different launches
would be 4 GB. Then it measures the search for changes in a year of many series. `year` measures the page and the alerts
of such a history.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from bench.report_cost import generate_run
from bench.simulation.correlated import autoregression
from bench.simulation.machine import Floats
from harness.cli import history as command
from harness.history.detection import detect_changes
from harness.history.folder import History
from harness.model.history import CellPoint, Decision, MeasuredSeries, Measurer, SeriesSoftware, Summary
from harness.model.launch import Launch, Role, Sample, Status
from harness.model.run import Machine, Run, Stop, StopReason
from harness.store import codec

LAUNCHES = 1_000_000

#: The cells of a nightly run, its rounds after the pilot, and the number of nightly runs with different launches.
CELLS, ROUNDS, KINDS = 40, 5, 10

#: The number of series of a year that have a confirmed step.
STEPPED = 20

#: The number of times that each query runs. The slowest time counts.
TIMES = 3


def figures(launches: int = LAUNCHES) -> list[tuple[str, str]]:
    """Return the name and the value of each figure."""
    with tempfile.TemporaryDirectory() as folder:
        results, history = Path(folder) / "results", Path(folder) / "history"
        nights = write(results, launches)
        os.environ["HARNESS_HISTORY"] = str(history)
        seconds, cpu = _took(lambda: command.add(all_=True, results=results))
        name = f"{launches:,} launches in {nights:,} runs"
        taken = f"{seconds:.0f} s ({cpu:.0f} s of CPU, {1e6 * cpu / launches:.0f} µs a launch)"
        size = sum(path.stat().st_size for path in history.rglob("*.json"))
        rows = [(f"`harness history add --all`: {name}", taken), (f"the files: {name}", f"{size / 1e6:.0f} MB")]
        return [*rows, *((f"{question}: {name}", answer) for question, answer in questions()), *searches(), *year()]


def questions() -> list[tuple[str, str]]:
    """Return the time of each query, including the reading of the files."""

    def series(**chosen: list[str]) -> Callable[[History], object]:
        return lambda history: history.series(**chosen)

    cases: list[tuple[str, Callable[[History], object]]] = [
        ("the runs", lambda history: history.runs()),
        ("one series", lambda history: history.series(["step"], ["tf2.3"], {"call": ["call 1"], "mode": ["eager"]})),
        ("the series of one environment", series(environment=["tf2.3"])),
        ("all series: the page's data", series()),
    ]

    rows = []
    for name, ask in cases:
        taken = [_took(partial(ask, History.open())) for _ in range(TIMES)]
        (seconds, cpu) = (max(column) for column in zip(*taken, strict=True))
        rows.append((name, f"{seconds:.2f} s ({cpu:.2f} s of CPU)"))
    return rows


def searches(series: int = 500, nights: int = 365) -> list[tuple[str, str]]:
    """Return how long it takes to search this number of series for changes."""
    draw = np.random.default_rng(1)
    rows = []
    for correlation in (0.0, 0.8):
        courses = [0.02 * autoregression(draw, correlation, nights) for _ in range(series)]

        def confirm(batch: list[Floats] = courses) -> None:
            detect_changes([(values.tolist(), [0.01] * nights) for values in batch])

        seconds, cpu = _took(confirm)
        name = f"the changes in {series:,} series of {nights:,} nights, lag-1 correlation {correlation:g}"
        rows.append((name, f"{seconds:.1f} s ({cpu:.1f} s of CPU)"))
    return rows


def year(series: int = 500, nights: int = 365) -> list[tuple[str, str]]:
    """Return the times of the page and the alerts for a year of nightly runs. `STEPPED` series have a confirmed step.

    Each command is a process, as in the nightly workflow. The page is written twice: the first time, the cache has no
    script for its charts.
    """
    draw = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "history")
        place = {"HARNESS_HISTORY": str(history.path), "HARNESS_CACHE_DIR": folder}
        for night in range(nights):
            history.add(_run_of_year(night, series, draw))
        for one_series in history.series()[: 25 * STEPPED : 25]:
            point = one_series.points[nights // 2]
            key = one_series.key
            history.decide(Decision(key, point.run, [], True, "confirmation", point.started, 1.1, 1.09, 1.11))
        page, alarm = ["report", "-o", str(Path(folder) / "history.html")], ["alarm"]
        times = [_command(words, place) for words in (alarm, page, page)]
    commands = ["`harness history alarm`", "`harness history report`", "`harness history report`, again"]
    name = f"{series:,} series, {nights:,} nightly runs"
    return [(f"{question}: {name}", took) for question, took in zip(commands, times, strict=True)]


def _run_of_year(night: int, series: int, draw: np.random.Generator) -> Summary:
    """Return a run of a release line with a point of each series, ten of each scenario.

    `STEPPED` series are 10 % slower in the second half of the year.
    """
    started = datetime(2025, 11, 1, 4, 10, tzinfo=UTC) + timedelta(days=night)
    points = []
    for number, log in enumerate(draw.normal(size=series) * 0.02):
        stepped = number % 25 == 0 and number < 25 * STEPPED and night >= 365 // 2
        ratio = float(log) + 0.0953 * stepped
        numbers = (ratio, ratio - 0.02, ratio + 0.02, 5, 0.01, 0.0098, 0.0102)
        scenario, axes = f"s{number // 10:02}", {"size": f"{number % 10}"}
        points.append(
            CellPoint("m-1", scenario, "cpu", axes, "tf-nightly", Status.OK, "tf2.15", axes, "step", *numbers)
        )
    # a release line: each night has the next wheel
    wheel = f"tf-nightly==2.22.0.dev{started:%Y%m%d}"
    software = {
        "tf-nightly": SeriesSoftware(f"lock{night}", f"image{night}", {}, wheel),
        "tf2.15": SeriesSoftware("lock", "image", {}),
    }
    scenarios = {point.scenario: MeasuredSeries(f"file of {point.scenario}", "A step") for point in points}
    facts = (f"{started:%Y-%m-%dT%H-%M-%SZ}", started.isoformat(), "1", "", "nightly", 0.03, "1 CPU", "tf2.15", "kit")
    return Summary(*facts, [Measurer(Machine("m-1"))], software, scenarios, points)


def _command(words: list[str], place: dict[str, str]) -> str:
    """Return how long a command of `harness history` takes."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "harness", "history", *words],
        env={**os.environ, **place},
        check=True,
        capture_output=True,
    )
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return f"{after.elapsed - before.elapsed:.1f} s ({cpu:.1f} s of CPU)"


def _took(what: Callable[[], object]) -> tuple[float, float]:
    """Format wall-clock time, and the CPU time of all threads of this process, in seconds."""
    started, before = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - started, time.process_time() - before


def write(results: Path, launches: int) -> int:
    """Write runs with this total number of launches, and return the number of runs."""
    kinds = [_night(seed) for seed in range(KINDS)]
    texts = [b"".join(codec.dump(launch) + b"\n" for launch in night_launches) for _, night_launches in kinds]
    nights = max(1, launches // len(kinds[0][1]))
    first = datetime(2017, 1, 1, 4, 10, tzinfo=UTC)
    for night in range(nights):
        run = kinds[night % KINDS][0]
        started = first + timedelta(days=night)
        identity = f"{started:%Y-%m-%dT%H-%M-%SZ}-{night % 65536:04x}"
        folder = results / identity
        folder.mkdir(parents=True)
        (folder / "run.json").write_bytes(codec.dump(replace(run, id=identity, started=started.isoformat())))
        kept = results.parent / f"{night % KINDS}.jsonl"
        if not kept.exists():
            kept.write_bytes(texts[night % KINDS])
        (folder / "launches.jsonl").hardlink_to(kept)
    return nights


def _night(seed: int) -> tuple[Run, list[Launch]]:
    """Return a nightly run with a pilot of each cell, and a control in each group and round."""
    run, launches = generate_run(CELLS, ROUNDS, seed=seed)
    draw = np.random.default_rng(seed)
    controls = {group.control for group in run.plan.groups}
    slower = [
        replace(launch, role=Role.CONTROL, samples=_moved(launch, draw))
        for launch in launches
        if launch.cell in controls
    ]
    pilots = [replace(launch, role=Role.PILOT, round=0) for launch in launches if launch.round == 1]
    stops = {group.name: Stop(StopReason.ROUNDS, ROUNDS) for group in run.plan.groups}
    return replace(run, machine=Machine("m-0be4c4ed"), stops=stops), [*pilots, *launches, *slower]


def _moved(launch: Launch, draw: np.random.Generator) -> list[Sample]:
    factor = float(np.exp(draw.normal(0.0, 0.02)))
    return [replace(sample, seconds=sample.seconds * factor) for sample in launch.samples]


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else LAUNCHES
    for name, value in figures(count):
        print(f"{name}: {value}", flush=True)
