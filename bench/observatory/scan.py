"""Count the calls of each series in nightly wheels, and search the wheels in which they changed.

Counts have no noise, so one process for each wheel is enough. The scan starts with wheels that are `every` days apart.
If the counts of two neighbours differ, it counts a wheel between them, until the two wheels are successive. Between
wheels with the same counts, nothing is counted: a change that a later one takes back within this time isn't found.
"""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from packaging.version import Version

from bench.observatory.records import COUNTS
from bench.observatory.wheels import fetch_wheel, find_day
from harness.environments.index import list_versions
from harness.model.errors import UsageError

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("count_once.py")

#: The file with the packages of the base environment.
PACKAGES = "packages.txt"

#: The series: scenarios with all of their axes, as in the suite `observatory`.
SERIES = {
    "keras3_fit dropout": 'upstream/keras3_fit.py?{"network":"dropout"}',
    "predict_overhead predict": 'upstream/predict_overhead.py?{"call":"predict","network":"dense","compiled":"no"}',
    "predict_overhead model(x)": 'upstream/predict_overhead.py?{"call":"model(x)","network":"dense","compiled":"no"}',
    "train_on_batch lstm": 'upstream/train_on_batch.py?{"network":"lstm","mode":"default"}',
    "load_model keras": 'upstream/load_model.py?{"format":"keras"}',
    "apply_gradients apply": 'upstream/apply_gradients.py?{"part":"apply","optimizer":"default"}',
    "model_building build later": 'upstream/model_building.py?{"work":"build","turn":"later"}',
    "training_loops eager": 'upstream/training_loops.py?{"loop":"eager","network":"dense"}',
}

#: From this relative change of the number of calls on, the scan counts a wheel between two wheels. A step that traces
#: in each call, as `train_on_batch` did until 2025, makes different numbers of calls in different processes.
LEAST_CHANGE, LEAST_CHANGE_OF_TRACES = 0.03, 0.2

#: The seconds after which a wheel counts as one that doesn't run.
LIMIT = 900


@dataclass(frozen=True, slots=True)
class WheelScan:
    """A scan: the package's versions in order, the Python of the base environment, and the folder with the counts."""

    package: str
    versions: Sequence[str]
    python: Path
    folder: Path

    @property
    def wheel_folder(self) -> Path:
        """The folder of the downloaded wheels."""
        return self.folder / "wheels"

    def read(self) -> dict[str, Mapping[str, Any]]:
        """Return the counts of the wheels that were counted, by version."""
        path = self.folder / "counts.jsonl"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return {line["version"]: line["series"] for line in lines}

    def count(self, version: str) -> None:
        """Count a wheel's series, and store them."""
        self.wheel_folder.mkdir(parents=True, exist_ok=True)
        wheel = fetch_wheel(self.package, version, self.wheel_folder)
        unpacked = self.wheel_folder / version / "site-packages"  # a path whose end the kit's names of files keep
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        paths = [unpacked, ROOT / "scenarios"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        }
        words = [f"{ROOT}/scenarios/{series}" for series in SERIES.values()]
        names = dict(zip(words, SERIES, strict=True))
        try:
            process = subprocess.run(
                [self.python, "-W", "ignore", PROGRAM, *words],
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            lines = [json.loads(line[8:]) for line in process.stdout.splitlines() if line.startswith("COUNTED ")]
            error = process.stderr[-300:]
        except subprocess.TimeoutExpired:
            lines, error = [], f"more than {LIMIT} s"
        finally:
            shutil.rmtree(unpacked.parent)
        series = {names[line.pop("series")]: line for line in lines}
        series = {name: series.get(name, {"error": error}) for name in SERIES}
        with (self.folder / "counts.jsonl").open("a") as file:
            file.write(json.dumps({"version": version, "series": series}) + "\n")

    def start(self, every: int) -> list[str]:
        """Return versions that are about `every` days apart, with the first and the last one."""
        days = {find_day(version): version for version in self.versions}
        first, last = date.fromisoformat(min(days)), date.fromisoformat(max(days))
        wanted = [(first + timedelta(step)).isoformat() for step in range(0, (last - first).days + 1, every)]
        chosen = [max(day for day in days if day <= each) for each in wanted]
        return [days[day] for day in dict.fromkeys([*chosen, max(days)])]

    def find_changes(self, counted: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
        """Yield each pair of neighbours among the counted versions whose counts differ, with the changed series."""
        known = [version for version in self.versions if version in counted]
        for before, after in pairwise(known):
            changed = [name for name in SERIES if _has_changed(counted[before][name], counted[after][name])]
            if changed:
                yield before, after, changed

    def refine(self, counted: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return the versions in the middle of the neighbours whose counts differ."""
        middles = []
        for before, after, _ in self.find_changes(counted):
            between = self.versions[self.versions.index(before) + 1 : self.versions.index(after)]
            if between:
                middles.append(between[len(between) // 2])
        return middles


def _has_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether the calls of a series changed. A series that runs with only one of two wheels has changed."""
    if "error" in before or "error" in after:
        return ("error" in before) != ("error" in after)
    sums = [each["counts"]["python"] + each["counts"]["c"] for each in (before, after)]
    is_tracing = all(each["counts"]["traces"] for each in (before, after)) and not before["agree"]
    return abs(sums[1] / sums[0] - 1) >= (LEAST_CHANGE_OF_TRACES if is_tracing else LEAST_CHANGE)


def check_packages(python: Path, folder: Path) -> None:
    """Store the packages of the base environment in the folder, because counts depend on them.

    Raises UsageError if the counts in the folder are from an environment with other packages.
    """
    listing = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    path = folder / PACKAGES
    if path.exists() and path.read_text() != listing:
        raise UsageError(f"The counts in {folder} are from an environment with other packages.", "Use a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(listing)


def list_wheels(package: str, since: str) -> list[str]:
    """Return the versions of a nightly package since a version, by day, without yanked ones."""
    known = [each.version for each in list_versions(package) if not each.yanked and ".dev" in each.version]
    return sorted((version for version in known if Version(version) >= Version(since)), key=find_day)


def scan(wheels: WheelScan, every: int) -> None:
    """Count wheels until each change of counts is between two successive wheels."""
    pending = wheels.start(every)
    while pending:
        for version in pending:
            if version not in wheels.read():
                wheels.count(version)
                print(version, flush=True)
        pending = wheels.refine(wheels.read())


def store_counts(wheels: WheelScan, path: Path = COUNTS) -> None:
    """Write the numbers of calls of all counted wheels to counts.json, with a line for each wheel."""
    counted = wheels.read()
    lines = []
    for version in wheels.versions:
        if version in counted:
            calls = {name: _count_calls(each) for name, each in counted[version].items()}
            lines.append(f"  {json.dumps({'wheel': version, 'calls': calls})}")
    packages = (wheels.folder / PACKAGES).read_text().split()
    head = json.dumps({"line": f"tf2.21+{wheels.package}", "packages": packages, "series": SERIES})[:-1]
    path.write_text(head + ', "wheels": [\n' + ",\n".join(lines) + "\n]}\n")


def _count_calls(series: Mapping[str, Any]) -> float | None:
    """Return the calls of Python and C functions per step; None if the wheel can't run the series."""
    if "error" in series:
        return None
    return round((series["counts"]["python"] + series["counts"]["c"]) / series["steps"], 1)
