"""The facts of the map: claims of upstream issues (docs/upstream.json), and comparisons of releases in stored runs."""

import json
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import upstream
from bench.examples import LAUNCHES, find_examples
from bench.observatory.records import MACHINES
from harness import session
from harness.analysis.claim_rules import ClaimOutcome
from harness.model.run import Run
from harness.report import format
from harness.upstream.stored import PLACE

#: Examples that answer nothing about TensorFlow: a busy machine, different work, profiled calls.
_LEFT_OUT = ("busy", "different-work", "profile")

_RELEASE = re.compile(r"tf(\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class MeasuredPlace:
    """The result of a fact in one environment. `value` is None if there is no result, and `why` says why."""

    environment: str
    release: str
    value: float | None
    low: float | None
    high: float | None
    outcome: str
    why: str

    @property
    def holds(self) -> bool:
        """Whether the claimed effect exists here."""
        return ClaimOutcome(self.outcome).holds


@dataclass(frozen=True)
class Fact:
    """A claim of an issue, or a comparison of releases (`issue` is empty), with its results in several releases.

    `unit` is `×` for a ratio, or `B` for bytes per call. `source` is the example whose run measured it, if it is
    stored, or the file of an added machine.
    """

    kind: str
    anchor: str
    scenario: str
    title: str
    issue: str
    url: str
    claimed: str
    unit: str
    places: Sequence[MeasuredPlace]
    fixed: str
    fixed_in: str
    date: str
    machine: str
    command: str
    source: str

    @cached_property
    def by_release(self) -> Mapping[str, MeasuredPlace]:
        """The result in each release. Of several environments with a release, the plain one counts."""
        plain_last = sorted(
            self.places, key=lambda place: place.environment.partition(" vs ")[0] == f"tf{place.release}"
        )
        return {place.release: place for place in plain_last}

    def show(self, place: MeasuredPlace, *, bounds: bool = True) -> str:
        """Return the value of a place as text, such as `1.32× (1.31 to 1.33)`."""
        if place.value is None:
            return place.why or place.outcome
        value = f"{format.number(place.value)}{'×' if self.unit == '×' else ' B per call'}"
        if not bounds or place.low is None or place.high is None:
            return value
        return f"{value} ({format.number(place.low)} to {format.number(place.high)})"


def read_facts() -> list[Fact]:
    """Return all facts: of claims, of the stored examples, and of machines that others added."""
    claims = [_make_claim(row) for row in upstream.read_rows()]
    examples = [folder for folder in find_examples() if folder.name not in _LEFT_OUT]
    lines = [fact for folder in examples for fact in _read_run(folder / LAUNCHES, folder.name, "")]
    added = [
        fact
        for path in sorted(MACHINES.glob("*/*.tar.xz"))
        for fact in _read_run(path, f"{path.parent.name}/{path.name}", path.parent.name)
    ]
    return _number([*claims, *lines, *added])


def read_titles() -> dict[str, str]:
    """Return the title of each scenario."""
    return {name: entry["title"] for name, entry in json.loads(PLACE.read_text())["scenarios"].items()}


def read_releases() -> list[str]:
    """Return the releases of the catalog, such as 1.14, in order."""
    names = [entry["name"] for entry in json.loads(PLACE.read_text())["entries"] if entry["kind"] == "release"]
    return list(dict.fromkeys(match[1] for name in names if (match := _RELEASE.match(name))))


def _number(facts: Sequence[Fact]) -> list[Fact]:
    """Give each fact a unique anchor."""
    counts: dict[str, int] = {}
    numbered = []
    for fact in facts:
        count = counts[fact.anchor] = counts.get(fact.anchor, 0) + 1
        numbered.append(fact if count == 1 else Fact(**{**vars(fact), "anchor": f"{fact.anchor}-{count}"}))
    return numbered


def _make_claim(row: Mapping[str, Any], machine: str = "", source: str = "") -> Fact:
    places = [_make_place(place) for place in [row["at"], *row["elsewhere"]]]
    return Fact(
        kind="claim",
        anchor=row["issue"].replace("#", "-"),
        scenario=row["scenario"],
        title=row["reported"],
        issue=row["issue"],
        url=row["url"],
        claimed=row["claimed"],
        unit="×" if row["claimed"].endswith("×") else "B",
        places=places,
        fixed=upstream.fixed_between(row),
        fixed_in=row["fixed"],
        date=row["date"],
        machine=machine or row["machine"],
        command=f"harness repro {row['issue']}",
        source=source,
    )


def _make_place(place: Mapping[str, Any]) -> MeasuredPlace:
    low, high = place["interval"] or (None, None)
    outcome, environment = place["outcome"], place["environment"]
    return MeasuredPlace(environment, get_release(environment), place["value"], low, high, outcome, place["why"])


def get_release(environment: str) -> str:
    """Return the release of an environment, such as 2.3 for tf2.3-tensorflow-2.3.1; or an empty text."""
    match = _RELEASE.match(environment)
    return match[1] if match else ""


def _read_run(archive_path: Path, source: str, machine: str) -> Iterator[Fact]:
    """Yield the facts of a stored run: its claims, and its comparisons of releases."""
    with TemporaryDirectory() as temporary, tarfile.open(archive_path) as archive:
        archive.extractall(temporary, filter="data")
        results = session.read(Path(temporary))
        document = json.loads(session.export(Path(temporary), "json"))
    shown = f"{machine}: {describe_machine(results.run)}" if machine else describe_machine(results.run)
    if machine:
        yield from (_make_claim(row, shown, source) for row in upstream.rows(results))
    yield from _make_lines(results.run, document["comparisons"], shown, source)


def describe_machine(run: Run) -> str:
    """Return the GPUs of the machine that measured a run, or its CPU."""
    gpus = [str(gpu.get("name", "")) for gpu in run.host.get("gpus", ()) if isinstance(gpu, Mapping)]
    return ", ".join(dict.fromkeys(filter(None, gpus))) or str(run.host.get("cpu", ""))


def _make_lines(run: Run, comparisons: Sequence[Any], machine: str, source: str) -> Iterator[Fact]:
    groups: dict[tuple[str, ...], list[MeasuredPlace]] = {}
    releases = {environment.name: get_release(f"tf{environment.tensorflow}") for environment in run.environments}
    for entry in comparisons:
        cell, other = entry["compared"]["cell"], entry["compared"]["other"]
        if entry["along"] != "environment" or entry["of"] != "step" or not entry["compared"]["ratio"]:
            continue
        release = releases[cell["environment"]]
        if release != releases[other["environment"]]:
            axes = [f"{axis}={value}" for axis, value in cell["axes"].items() if other["axes"].get(axis) == value]
            key = entry["scenario"], other["environment"], cell["device"], entry["comparison"], " ".join(axes)
            groups.setdefault(key, []).append(_make_line_place(entry["compared"], release))
    for (scenario, reference, device, comparison, axes), places in groups.items():
        yield Fact(
            kind="line",
            anchor=re.sub(r"[^A-Za-z0-9.-]+", "-", f"{source}-{scenario}"),
            scenario=scenario,
            title=f"{comparison}: time ÷ time in {reference}, {device} {axes}".rstrip(),
            issue="",
            url="",
            claimed="",
            unit="×",
            places=places,
            fixed="",
            fixed_in="",
            date=run.started[:10],
            machine=machine,
            command=shlex.join(run.command),
            source=source,
        )


def _make_line_place(compared: Mapping[str, Any], release: str) -> MeasuredPlace:
    ratio = compared["ratio"]
    interval = ratio["interval"] or {}
    return MeasuredPlace(
        f"{compared['cell']['environment']} vs {compared['other']['environment']}",
        release,
        ratio["value"],
        interval.get("low"),
        interval.get("high"),
        compared["verdict"] or "no verdict",
        "",
    )
