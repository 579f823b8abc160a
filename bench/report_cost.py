"""The cost of the report of a large run: seconds and peak memory for each format, in a separate process.

`python -m bench.report_cost 5000` measures a run of 5,000 cells. `python -m bench.report_cost 500 FOLDER` only writes
the run to FOLDER, so that you can inspect it.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness.model.environment import Environment
from harness.model.launch import Launch, Limits, Sampling
from harness.model.run import Plan, Run
from harness.model.scenario import Cell
from harness.store import codec
from tests.factories import PHASES, RESOURCES, cell, groups, launch, run, scenario

#: The number of launches per cell and of samples per launch.
CELLS, LAUNCHES, SAMPLES = 1000, 10, 30

#: Larger runs: the number of cells, of launches per cell, and of observations per launch.
LARGE = ((100, 1000, 0), (1000, 10, 100))

#: The number of environments, and of values of the compared axis. A group has all their combinations.
ENVIRONMENTS, MODES = 10, ("graph", "eager")

#: The measured commands: their options and their names in the table.
COMMANDS = {
    "--format md": ["--format", "md", "--output", "report.md"],
    "--format html": ["--format", "html", "--output", "report.html"],
    "report.md with its pictures, and report.html": [],
}


def figures(cells: int = CELLS) -> list[tuple[str, str]]:
    """Return the name and the value of each figure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        _call_apart(write, path, cells)
        size = f"{cells:,} cells × {LAUNCHES} launches × {SAMPLES} samples"
        rows = [(f"`harness report`, {size}: {name}", _cost(path, options)) for name, options in COMMANDS.items()]
        page = (path / "report.html").stat().st_size
        rows.append((f"report.html, {size}", f"{page / 1e6:.1f} MB"))
    return rows + [row for kind in LARGE for row in _large(*kind)]


def _large(cells: int, launches: int, observations: int) -> list[tuple[str, str]]:
    """Return the cost of all reports of a larger run, and of only parsing its lines as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        _call_apart(write, path, cells, launches, observations)
        file = path / "launches.jsonl"
        size = (
            f"{cells:,} cells × {launches:,} launches × {observations} observations, {file.stat().st_size / 1e6:.0f} MB"
        )
        read = f"{_call_apart(_parse, file):.1f} s"
        return [(f"`json.loads` of {size}", read), (f"`harness report`, {size}", _cost(path, []))]


def _call_apart(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a new process, so that this process stays small: a command reports its memory as its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _parse(file: Path) -> float:
    """Return the seconds that parsing the lines of a file as JSON takes."""
    began = time.perf_counter()
    for line in file.read_bytes().splitlines():
        json.loads(line)
    return time.perf_counter() - began


def write(path: Path, cells: int = CELLS, launches: int = LAUNCHES, observations: int = 0) -> None:
    """Write run.json and launches.jsonl of a run with about this number of cells to a folder."""
    generated_run, entries = generate_run(cells, launches, observations)
    path.mkdir(parents=True)
    (path / "run.json").write_bytes(codec.dump(generated_run))
    (path / "launches.jsonl").write_bytes(b"".join(codec.dump(entry) + b"\n" for entry in entries))


def generate_run(cells: int, times: int = LAUNCHES, observations: int = 0, seed: int = 1) -> tuple[Run, list[Launch]]:
    """Return a run of about this number of cells, in groups of ten environments in two modes, with log-normal noise."""
    draw = random.Random(seed)
    environments = [
        Environment(f"tf2.{minor}", f"2.{minor}.0", "3.8", "2021-01-01T00:00:00Z") for minor in range(ENVIRONMENTS)
    ]
    calls = [f"call {number}" for number in range(max(1, cells // (ENVIRONMENTS * len(MODES))))]
    axes = {"call": calls, "dtype": ["float32"], "mode": list(MODES)}
    members = [
        cell(environment.name, call=call, mode=mode) for call in calls for environment in environments for mode in MODES
    ]
    planned = groups(members, controlled=True)
    plan = Plan(planned, times, seed, Sampling(warmup_seconds=0.5, measure_seconds=1.5), Limits(cpus=(0,)))
    generated_run = run(
        members,
        scenarios=[scenario(axes=axes, default={})],
        plan=plan,
        environments=environments,
        reference=environments[0].name,
    )
    speeds = {member: 0.01 * draw.lognormvariate(0.0, 0.3) for member in members}
    launches = [
        _launch(draw, speeds[member], member, number, group.name, observations=observations)
        for number in range(1, times + 1)
        for group in planned
        for member in group.cells
    ]
    return generated_run, launches


def _launch(draw: random.Random, speed: float, member: Cell, number: int, group: str, *, observations: int) -> Launch:
    centre = speed * draw.lognormvariate(0.0, 0.02)
    return launch(
        member,
        [centre * draw.lognormvariate(0.0, 0.03) for _ in range(SAMPLES)],
        number,
        4.0,
        group=group,
        phases=PHASES,
        resources=RESOURCES,
        fingerprint={"parameters": 162049},
        observations={f"observation {index}": f"{index} in {member.environment}" for index in range(observations)},
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1.7e9 + 10.0 * number)),
    )


def _cost(path: Path, options: list[str]) -> str:
    command = [sys.executable, "-m", "harness", "report", str(path), *options]
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=path, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status:
        raise subprocess.CalledProcessError(status, command)
    return f"{wall:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of CPU), {used.ru_maxrss / 1024:.0f} MB at most"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CELLS
    if len(sys.argv) > 2:
        write(Path(sys.argv[2]), count)
    else:
        for name, value in figures(count):
            print(f"{name}: {value}")
