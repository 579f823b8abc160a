"""Measures nightly wheels, several in each run, which share the launches of the baseline.

The wheels of a run are months apart, so an error of their common baseline doesn't look like a step.
"""

import math
import shutil
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from pathlib import Path

from bench.observatory.records import read_series
from bench.observatory.wheels import find_day
from bench.replay.nights import RESULTS, coarse_to_fine, run_harness
from harness.files import get_cache_dir

#: The options of each run.
OPTIONS = ["--suite", "observatory", "--clock", "cpu", "--share"]


def plan_runs(versions: Sequence[str], measured: Collection[str], every: int, at_once: int) -> list[list[str]]:
    """Return the versions of each run, in an order in which the first runs are spread over all days.

    `measured` are the days of earlier nightly runs. All days are at least `every` days apart.
    """
    days = {date.fromisoformat(day) for day in measured}
    chosen: list[str] = []
    for version in versions:
        day = date.fromisoformat(find_day(version))
        if all(abs(day - other) >= timedelta(every) for other in days):
            chosen.append(version)
            days.add(day)
    count = math.ceil(len(chosen) / at_once)
    return [chosen[start::count] for start in coarse_to_fine(range(count))]


def read_days(line: str) -> set[str]:
    """Return the days of the line's stored nightly runs."""
    return {point.day for series in read_series() if series.line == line for point in series.points}


def measure(folder: Path, baseline: str, line: str, runs: Sequence[Sequence[str]], matrix: Sequence[str]) -> None:
    """Measure runs that the folder doesn't have yet, each with some versions of a line, and the baseline.

    The environments of a run are removed after it, because they take up to 1.3 GB each.
    """
    for versions in runs:
        stored = {path.read_text() for path in (folder / RESULTS).glob("*/run.json")}
        missing = [version for version in versions if not any(f"=={version}" in text for text in stored)]
        if not missing:
            continue
        environments = [word for version in missing for word in ("-e", f"{line}=={version}")]
        words = ["matrix", "-e", baseline, *environments, *OPTIONS, *matrix, "--results", str(folder / RESULTS)]
        code = run_harness(folder, *words).returncode
        print(code, *missing, flush=True)
        for version in missing:
            for path in (get_cache_dir() / "environments").glob(f"*{version}*"):
                shutil.rmtree(path, ignore_errors=True)
