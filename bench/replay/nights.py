"""Measures the nightly runs of a replay, as the nightly workflow does, and stores each in the replay's folder.

Each nightly run is measured now, and is added to the history with the date that it replays. Replays run the same
commands as the workflow. An interrupted replay is continued.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

from harness.files import write_atomically
from harness.history import summary
from harness.history.folder import History
from harness.model.errors import HarnessError, UsageError

T = TypeVar("T")

PLAN, RECORDS, RESULTS = "plan.json", "records.jsonl", "results"
HISTORY, ISSUES = "nights", "issues.json"

#: The time of day at which a replayed nightly run starts.
TIME = "T04:10:00+00:00"

#: The exit codes of `history confirm` that are results: nothing to confirm, not settled, confirmed slower.
_RESULTS_OF_CONFIRM = (0, 1, 3, 5)

#: The number of successive nightly runs without a result after which a replay stops.
MOST_MISSING = 5

#: The number of lines of an error that a record keeps.
_LINES = 4

SCENARIO = '''# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title = "Matrix products, a known number of them"
# ///
"""Matrix products: a known number in a release, and another one in an environment with a nightly package."""

from kit import main

PASSES, NIGHTLY_PASSES = 200, 200
PACKAGES = ("keras-nightly", "tf-nightly", "tf-nightly-cpu")


def is_nightly():
    """Return whether a nightly package is installed."""
    from importlib.metadata import distributions

    return any(each.metadata["Name"] in PACKAGES for each in distributions())


def scenario(bench):
    """Measure the products."""
    with bench.phase("import"):
        import numpy
    weights = numpy.full((64, 64), 1.0 / 64, "float32")
    passes = (PASSES, NIGHTLY_PASSES)[is_nightly()]

    def step():
        state = weights
        for _ in range(passes):
            state = numpy.tanh(state @ weights)
        return state

    bench.measure(step)
    bench.fingerprint(total=float(weights.sum()))


if __name__ == "__main__":
    main(scenario)
'''


@dataclass(frozen=True, slots=True)
class PlantedStep:
    """A scenario that takes `percent` % longer in the nightly environment from nightly run `night` on."""

    name: str
    night: int
    percent: int

    def text(self, night: int) -> str:
        """Return the scenario's file in a nightly run."""
        passes = 200 + 2 * self.percent if night >= self.night else 200
        return SCENARIO.replace("NIGHTLY_PASSES = 200, 200", f"NIGHTLY_PASSES = 200, {passes}")


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The plan of a replay: `environment` is compared with `baseline` in one nightly run for each of `days` (ISO 8601).

    `is_line`: the environment is a release line, and each nightly run uses its version on that day. `arguments` and
    `confirm` are additional arguments for `harness matrix` and `harness history confirm`. Without `confirms`, nothing
    is confirmed.
    """

    environment: str
    baseline: str
    days: Sequence[str]
    is_line: bool = False
    arguments: Sequence[str] = ()
    confirm: Sequence[str] = ()
    planted: Sequence[PlantedStep] = ()
    confirms: bool = True

    def environment_of(self, night: int) -> str:
        """Return the environment of a nightly run, in the form of the option -e."""
        return f"{self.environment}@{self.days[night]}" if self.is_line else self.environment


@dataclass(frozen=True, slots=True)
class ReplayedNight:
    """A replayed nightly run. If it measured nothing, `run` is empty and `reason` is the error.

    `seconds` is the time of the measurement, and `confirm_seconds` is the time of confirmations, including their
    searches. `opened` has the titles of new issues.
    """

    night: int
    day: str
    environment: str
    run: str
    seconds: float
    confirm_seconds: float = 0.0
    reason: str = ""
    opened: Sequence[str] = field(default_factory=list)


def days_between(first: str, last: str, every: int) -> list[str]:
    """Return every `every`-th day from the first day to the last, as ISO 8601 dates."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [(start + timedelta(days=at)).isoformat() for at in range(0, (end - start).days + 1, every)]


def coarse_to_fine(days: Sequence[T]) -> list[T]:
    """Return the days in an order in which the first N, for each N, are spread over the whole time."""
    order: list[T] = []
    step = 1 << max(0, len(days) - 1).bit_length()
    while step:
        order += [day for day in days[::step] if day not in order]
        step //= 2
    return order


def plant(steps: Mapping[int, int], nights: int) -> list[PlantedStep]:
    """Return planted steps, at places between the tenth nightly run and the end. `steps` is their number by percent.

    Raises UsageError if there are too few nightly runs.
    """
    places = range(10, nights - 3)
    if steps and not places:
        raise UsageError(f"{nights} nightly runs are too few for planted steps.", "Use at least 14.")
    return [
        PlantedStep(f"planted_{percent}_{number}", places[number * (len(places) - 1) // max(1, count - 1)], percent)
        for percent, count in steps.items()
        for number in range(count)
    ]


def store_plan(folder: Path, plan: ReplayPlan) -> None:
    """Write the plan of a replay."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PLAN, json.dumps(asdict(plan), indent=1).encode())


def read_plan(folder: Path) -> ReplayPlan:
    """Read the plan of a replay."""
    document = json.loads((folder / PLAN).read_text())
    return ReplayPlan(**{**document, "planted": [PlantedStep(**step) for step in document["planted"]]})


def read_records(folder: Path) -> list[ReplayedNight]:
    """Read the nightly runs that were replayed, in order."""
    path = folder / RECORDS
    return [ReplayedNight(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def _store_records(folder: Path, records: Sequence[ReplayedNight]) -> None:
    write_atomically(folder / RECORDS, "".join(json.dumps(asdict(record)) + "\n" for record in records).encode())


def replay(folder: Path, before: Sequence[str] = (), after: str = "") -> None:
    """Measure the nightly runs of a replay that aren't stored yet, and the last ones that measured nothing again.

    It stops after `MOST_MISSING` nightly runs that measured nothing. `before` are words before each measuring command,
    `after` is a shell command after each nightly run.
    """
    plan, stored = read_plan(folder), read_records(folder)
    while stored and not stored[-1].run:
        stored.pop()
    _store_records(folder, stored)
    for night in range(len(stored), len(plan.days)):
        record = _replay_night(folder, plan, night, before)
        stored.append(record)
        _store_records(folder, stored)
        print(f"{record.day}: {record.reason or record.run}, {record.seconds:.0f} s", *record.opened, flush=True)
        if after:
            subprocess.run(after, shell=True, check=False)
        if not any(entry.run for entry in stored[-MOST_MISSING:]) and len(stored) >= MOST_MISSING:
            sys.exit(f"The last {MOST_MISSING} nightly runs measured nothing. See {folder / 'log.txt'}.")


def _replay_night(folder: Path, plan: ReplayPlan, night: int, before: Sequence[str]) -> ReplayedNight:
    environment, results = plan.environment_of(night), folder / RESULTS
    runs = set(results.glob("*"))
    arguments = ["-e", plan.baseline, "-e", environment, *_scenarios(folder, plan, night), *plan.arguments]
    started = time.monotonic()
    process = run_harness(folder, "matrix", *arguments, "--results", str(results), before=before)
    record = ReplayedNight(night, plan.days[night], environment, "", round(time.monotonic() - started, 1))
    new = sorted(set(results.glob("*")) - runs)
    if not new:
        return replace(record, reason=_reason(process))
    try:
        measured = summary.load_summary(new[-1])
        History(folder / HISTORY).add(replace(measured, started=plan.days[night] + TIME))
    except HarnessError as error:
        return replace(record, reason=str(error))
    if not plan.confirms:
        return replace(record, run=measured.run, reason="" if process.returncode == 0 else _reason(process))
    started = time.monotonic()
    scripts = [word for path in _scenario_files(folder, plan) for word in ("-s", str(path))]
    words = ["--all-suspected", *scripts, *plan.confirm, "--results", str(results)]
    confirmed = run_harness(folder, "history", "confirm", *words, before=before)
    reason = "" if confirmed.returncode in _RESULTS_OF_CONFIRM else _reason(confirmed)
    return replace(
        record,
        run=measured.run,
        confirm_seconds=round(time.monotonic() - started, 1),
        reason=reason or ("" if process.returncode == 0 else _reason(process)),
        opened=_alarm(folder),
    )


def _scenario_files(folder: Path, plan: ReplayPlan) -> list[Path]:
    return [folder / "scenarios" / f"{step.name}.py" for step in plan.planted]


def _scenarios(folder: Path, plan: ReplayPlan, night: int) -> list[str]:
    """Write the planted scenarios for a nightly run, and return their options."""
    words: list[str] = []
    for step, path in zip(plan.planted, _scenario_files(folder, plan), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(step.text(night))
        words += ["-s", str(path)]
    return words


def _alarm(folder: Path) -> list[str]:
    """Update the issues in a file with `harness history alarm`, and return the titles of new issues."""
    path = folder / ISSUES
    issues: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps(issues))
    process = run_harness(folder, "history", "alarm", "--issues", str(path), "--json")
    opened = []
    for step in json.loads(process.stdout or "[]"):
        texts = {"title": step["title"], "body": step["body"]}
        if step["step"] == "open":
            opened.append(step["title"])
            issue = {"number": len(issues) + 1, "state": "OPEN", "stateReason": "", "closedAt": None}
            issues.append({**issue, **texts})
        elif step["step"] == "edit":
            issues[step["number"] - 1].update(texts)
    path.write_text(json.dumps(issues, indent=1))
    return opened


def run_harness(folder: Path, *words: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command of harness with the history of the replay. Also write its output to a log."""
    # links to uv's cache: a copy of each environment takes 1.3 GB
    own = {"HARNESS_HISTORY": str(folder / HISTORY), "NO_COLOR": "1", "UV_LINK_MODE": "hardlink"}
    environment = {**os.environ, **own}
    command = [*before, sys.executable, "-m", "harness", *words]
    process = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    with (folder / "log.txt").open("a") as log:
        log.write(f"$ harness {shlex.join(words)}\n{process.stdout}{process.stderr}[{process.returncode}]\n")
    return process


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    """Return the last lines of a command's error, or its exit code."""
    lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
    return " ".join(lines[-_LINES:]) or f"exit code {process.returncode}"
