"""Confirm the steps of a scan: measure the two wheels side by side, and a third one with the old functions put back.

The three environments are measured in one run, so that the same machine in the same minutes measures all of them.
"""

import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from bench.observatory import wheels
from bench.observatory.records import PRESENT, ChangedFunction, ConfirmedStep, Reverted, name_series
from bench.observatory.scan import SERIES, WheelScan
from harness import session
from harness.report.comparisons import list_all_lines

#: A function explains a change of calls if it makes this share of the change. This many functions are stored.
ENOUGH, MOST_FUNCTIONS = 0.8, 8

DM_TREE = "0.1.10"

COMMITS = "https://github.com/keras-team/keras/commits/master"


@dataclass(frozen=True, slots=True)
class Cause:
    """The functions of a wheel's diff that a step calls, by file, and the calls of functions that changed most."""

    functions: Mapping[str, Sequence[str]]
    calls: Sequence[Mapping[str, Any]]
    files: Sequence[str]


def find_cause(before: Path, after: Path, counts: Sequence[Mapping[str, Any]]) -> Cause:
    """Return the cause of a step, from two wheels and the counts of the step with each of them."""
    functions = [each["functions"] for each in counts]
    names = sorted({*functions[0], *functions[1]})
    called = {tuple(name.split(":")) for name in names}
    files = wheels.compare_files(wheels.read_files(before), wheels.read_files(after))
    changed = {
        file: [name for name in changed if (file, name.rsplit(".", 1)[-1]) in called] for file, changed in files.items()
    }
    steps = [each["steps"] for each in counts]
    top = wheels.find_folders(after)
    calls = []
    for name in names:
        file, _, function = name.partition(":")
        # all calls within the function, per step
        values = [each.get(name, [0, 0, 0])[1] / number for each, number in zip(functions, steps, strict=True)]
        if values[0] != values[1] and file.split("/")[0] in top:
            calls.append({"name": function, "file": file, "before": round(values[0], 2), "after": round(values[1], 2)})
    totals = [(each["counts"]["python"] + each["counts"]["c"]) / each["steps"] for each in counts]
    calls.sort(key=lambda entry: _rank(entry, totals[1] - totals[0]))
    return Cause({file: found for file, found in changed.items() if found}, calls[:MOST_FUNCTIONS], list(files))


def _rank(entry: Mapping[str, Any], change: float) -> tuple[bool, float]:
    """Sort the function that explains most of the change of all calls first: the smallest one with 80 % of it."""
    share = (entry["after"] - entry["before"]) / change if change else 0.0
    explains = share >= ENOUGH
    return not explains, max(entry["before"], entry["after"]) if explains else -abs(share)


def write_put_back(before: Path, after: Path, functions: Mapping[str, Sequence[str]], folder: Path) -> Path:
    """Write the wheel `after` with these functions as they are in `before`. New functions stay."""
    old, new = wheels.read_files(before), wheels.read_files(after)
    both = [file for file in functions if file in old and file in new]
    texts = {file: wheels.put_back(new[file], old[file], functions[file]) for file in both}
    return wheels.write_wheel(after, texts, folder)


def select(series: str) -> list[str]:
    """Return the options of `harness matrix` that select a series."""
    path, _, axes = SERIES[series].partition("?")
    words = ["-s", Path(path).stem]
    for axis, value in json.loads(axes).items():
        words += ["-a", f"{axis}={value}"]
    return words


def measure(environments: Sequence[str], series: str, results: Path, rounds: int) -> Path:
    """Measure a series in these environments, and return the folder of the run."""
    before = set(results.glob("*"))
    words = [word for name in environments for word in ("-e", name)]
    command = [sys.executable, "-m", "harness", "matrix", *words, *select(series), "--rounds", str(rounds)]
    options = ["--backend", "local", "--clock", "cpu", "--share", "--warmup", "300ms", "--measure", "600ms"]
    # links to uv's cache: a copy of each environment takes 1.3 GB
    environment = {"UV_LINK_MODE": "hardlink", **os.environ}
    process = subprocess.run(
        [*command, *options, "--results", str(results)], env=environment, capture_output=True, text=True, check=False
    )
    if not (new := sorted(set(results.glob("*")) - before)):
        raise RuntimeError(process.stderr[-500:])
    return new[-1]


def read_ratios(run: Path) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return the ratio of each pair of environments with its interval: time of the first / time of the second."""
    ratios = {}
    for line in list_all_lines(session.read(run)):
        ratio, sides = line.compared.ratio, (line.compared.cell, line.compared.other)
        if ratio.interval:
            names = sides[0].environment, sides[1].environment
            ratios[names] = (ratio.value, ratio.interval.low, ratio.interval.high)
    return ratios


def make_step(scan: WheelScan, series: str, before: str, after: str, run: Path) -> ConfirmedStep:
    """Return a step between two successive wheels, from their counts and the run that measured them.

    A person adds the cause in words, the issue and the report. `posterior` is the probability that the time changed in
    the direction of the ratio, from its interval: the pair of wheels itself is certain, because counts are exact.
    Raises KeyError if the run has no comparison of the two wheels.
    """
    counts = [scan.read()[version][series] for version in (before, after)]
    cause = find_cause(
        *(wheels.fetch_wheel(scan.package, version, scan.wheel_folder) for version in (before, after)), counts
    )
    results = session.read(run)
    ratios = {
        (_find_side(first, before, after), _find_side(second, before, after)): values
        for (first, second), values in read_ratios(run).items()
    }
    value, low, high = ratios["after", "before"]
    back = ratios.get(("put back", "before"))
    cell = results.run.plan.cells[0]
    line, day = f"tf2.21+{scan.package}", wheels.find_day(after)
    axes = {axis: str(value) for axis, value in cell.axes.items()}
    options = shlex.join(word for axis, value in axes.items() for word in ("-a", f"{axis}={value}"))
    half = (math.log(high) - math.log(low)) / 2
    return ConfirmedStep(
        series=name_series(cell.scenario, axes, line),
        scenario=cell.scenario,
        axes=axes,
        line=line,
        before=before,
        after=after,
        ratio=round(value, 4),
        low=round(low, 4),
        high=round(high, 4),
        posterior=round(NormalDist().cdf(abs(math.log(value)) / (half / NormalDist().inv_cdf(0.975))), 4),
        day=day,
        measured=run.name[:10],
        machine=str(results.run.host.get("cpu", "")),
        functions=[ChangedFunction(**entry) for entry in cause.calls],
        files=list(cause.files),
        commits=f"{COMMITS}?since={wheels.find_day(before)}&until={day}",
        cause="",
        reverted=Reverted(*(round(each, 4) for each in back)) if back else None,
        issue="",
        state=PRESENT,
        command=f"harness bisect --by work -s {cell.scenario} {options} --good {line}=={before} --bad {line}=={after}",
        report="",
    )


def confirm(
    scan: WheelScan, series: str, before: str, after: str, rounds: int, *, files: Sequence[str] = ()
) -> ConfirmedStep:
    """Measure two successive wheels, and `after` with the changed functions put back. Return the step.

    If `files` are given, these files are put back instead. A step doesn't call a function that only builds its graph.
    """
    paths = [wheels.fetch_wheel(scan.package, version, scan.wheel_folder) for version in (before, after)]
    counts = [scan.read()[version][series] for version in (before, after)]
    base = f"tf2.21+{scan.package}"
    names = [f"{base}=={before}", f"{base}=={after}"]
    functions = find_cause(paths[0], paths[1], counts).functions
    if files or functions:
        if files:
            old = wheels.read_files(paths[0])
            path = wheels.write_wheel(paths[1], {file: old[file] for file in files}, scan.wheel_folder)
        else:
            path = write_put_back(paths[0], paths[1], functions, scan.wheel_folder)
        # wheels before 3.3 need dm-tree, which TensorFlow 2.21 doesn't bring
        names.append(f"tf2.21+dm-tree=={DM_TREE}+{scan.package}@{path}")
    return make_step(scan, series, before, after, measure(names, series, scan.folder / "results", rounds))


def _find_side(environment: str, before: str, after: str) -> str:
    """Return which of the three environments a name in a run means."""
    if environment.endswith(before):
        return "before"
    return "after" if environment.endswith(after) else "put back"
