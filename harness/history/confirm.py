"""Confirms a change: both sides of it are measured again, side by side, in one run on this machine.

Where the packages changed, the cell runs in the environment with the packages of before and in that of after; where the
scenario's file changed, both files run in the cell's environment and in the reference's, for what is suspected is a
change of their ratio.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.analysis.results import Results
from harness.analysis.statistics import half_widths, means
from harness.analysis.verdicts import ALPHA
from harness.catalog import versions
from harness.catalog.asked import parse_move
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.catalog.scenarios import fingerprint, scenario_files
from harness.history.states import Finding
from harness.model.environment import Device
from harness.model.errors import HarnessError, UsageError
from harness.model.history import Decision, Summary
from harness.model.scenario import BEFORE_AND_AFTER, SIDE
from harness.session.request import Request
from harness.session.versions import files_at
from harness.store.folder import RunFolder

#: How many rounds measure both sides.
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """Findings of one cause and one scenario, and the run that decides on them.

    `sides` are the environments before and after; where the file changed they are the same one, and `is_file`.
    """

    findings: Sequence[Finding]
    request: Request
    sides: tuple[str, str]
    is_file: bool


def verdict(log: float, low: float, high: float, ratio: float, margin: float) -> bool | None:
    """Whether the change of a finding is there: True, False, or None where that is not known well enough.

    `log` is the log of time(after) / time(before) side by side, `low` to `high` its 95 % interval; `ratio` is the
    finding's, and says which way it went; `margin` is a share. It is refuted where the whole interval is below the
    margin that way, and confirmed where the whole interval goes that way and its middle by half the margin at least.
    """
    if ratio < 1.0:
        log, low, high = -log, -high, -low
    least = math.log1p(margin)
    if high < least:
        return False
    return True if low > 0.0 and log > least / 2.0 else None


def together(found: Sequence[Finding]) -> list[list[Finding]]:
    """The findings that one run can decide on: those of one cause, one scenario and one reference."""
    made: dict[tuple[str, ...], list[Finding]] = {}
    for each in found:
        key = each.key
        made.setdefault((each.cause, key.scenario, key.device, key.environment, key.reference, key.way), []).append(
            each
        )
    return list(made.values())


def question(
    found: Sequence[Finding], before: Summary, after: Summary, usual: Request, scripts: Sequence[Path] = ()
) -> Question:
    """What is to be measured for findings of `together`: `before` and `after` are the runs on either side.

    `usual` says how, and in which folder the runs are; `scripts` are files of scenarios from outside the project.
    Raises UsageError where both sides cannot be made again, or are the same.
    """
    key = found[0].key
    axes = {axis: sorted({dict(each.key.axes)[axis] for each in found}) for axis, _ in key.axes}
    paths = {path.stem: path for path in [*scenario_files(Project.find()), *scripts]}
    cpus = re.match(r"(\d+|all) CPUs?", key.way)
    asked: dict[str, Any] = {"axes": axes, "gpu": key.device == Device.GPU.value, "rounds": usual.rounds or ROUNDS}
    asked |= {"cpus": usual.cpus or (cpus[1] if cpus else "")}
    one, other = (each.software[key.environment].pins for each in (before, after))
    if one != other:
        sides = _environment(key.environment, key.device, one), _environment(key.environment, key.device, other)
        where = str(paths[key.scenario]) if paths.get(key.scenario) in scripts else key.scenario
        request = replace(usual, **asked, scenarios=[where], environments=list(sides))
        return Question(found, request, sides, is_file=False)
    hashes = [each.scenarios[key.scenario].hash for each in (before, after)]
    if hashes[0] == hashes[1]:
        raise UsageError(
            f"{key.cell}: nothing that is measured changed before {found[0].since}, so both sides are the same.",
            "What changed is the machine, or what is not recorded of it. Put words to it with: harness history note",
        )
    path = paths.get(key.scenario)
    files = [_files(key.scenario, path, each, usual.results) for each in (before, after)]
    made = versions.side_by_side(key.scenario, *files)
    environments = list(dict.fromkeys([key.environment, key.reference]))
    request = replace(usual, **asked, scenarios=[str(made)], environments=environments)
    return Question(found, request, (key.environment, key.environment), is_file=True)


def decisions(of: Question, results: Results, margin: float) -> list[tuple[Finding, Decision | None]]:
    """What a run decides on each finding; None where it has too few rounds of it, or they do not settle it."""
    made = []
    for finding in of.findings:
        logs = _changes(of, finding, results)
        told = None
        if len(logs) > 1:
            mean = math.fsum(logs) / len(logs)
            half = float(half_widths(means([logs]), ALPHA)[0])
            said = verdict(mean, mean - half, mean + half, finding.ratio, margin)
            if said is not None:
                run, ends = results.run, (math.exp(mean), math.exp(mean - half), math.exp(mean + half))
                told = Decision(finding.key, finding.since, list(finding.suspects), said, run.id, run.started, *ends)
        made.append((finding, told))
    return made


def _changes(of: Question, finding: Finding, results: Results) -> list[float]:
    """The log of time(after) / time(before) of each round; where the file changed, against the reference's."""
    found, key = results.found, finding.key

    def seconds(environment: str, axes: Mapping[str, str]) -> Mapping[int, float]:
        name = parse_move(environment).name if "+" in environment else environment
        for cell in found.cells:
            if cell.environment == name and all(cell.axes.get(axis) == value for axis, value in axes.items()):
                return found.series.get(cell, {})
        return {}

    base, head = BEFORE_AND_AFTER
    axes = dict(key.axes)
    if not of.is_file:
        terms = [(seconds(of.sides[1], axes), 1.0), (seconds(of.sides[0], axes), -1.0)]
    else:
        terms = [
            (seconds(key.environment, {**axes, SIDE: head}), 1.0),
            (seconds(key.environment, {**axes, SIDE: base}), -1.0),
        ]
        # the reference's cell may have other values of axes, and is then not in this run
        if key.reference != key.environment:
            terms += [
                (seconds(key.reference, {**axes, SIDE: head}), -1.0),
                (seconds(key.reference, {**axes, SIDE: base}), 1.0),
            ]
    rounds = sorted(set.intersection(*(set(each) for each, _ in terms)))
    return [math.fsum(sign * math.log(each[number]) for each, sign in terms) for number in rounds]


def _environment(name: str, device: str, wanted: Mapping[str, str]) -> str:
    """What -e takes for the environment with these packages: its name, and the packages that are others today."""
    project = Project.find()
    known = load_environments(project)
    if name not in known:
        raise UsageError(f"{name} is not in the catalogue, so its packages of then cannot be had again.")
    has = load_lock(project, known[name], Device(device)).lock.pins
    moved = [f"{package}=={version}" for package, version in sorted(wanted.items()) if has.get(package) != version]
    return "+".join([name, *moved])


def _files(name: str, path: Path | None, of: Summary, results: Path) -> Mapping[str, bytes]:
    """The files of a scenario as a run had them: those that lie here, git's, or what the run's folder keeps.

    Raises UsageError where none of these has the hash that the run had.
    """
    wanted = of.scenarios[name].hash
    found: list[Mapping[str, bytes]] = []
    if path:
        for ref in ("", of.commit.removesuffix("+")):
            with suppress(HarnessError):
                found.append(files_at(path, ref))
    with suppress(HarnessError):
        text = RunFolder.open(results / of.run).read_run().scripts.get(name)
        found += [{f"{name}.py": text.encode()}] if text else []
    for files in found:
        if wanted and fingerprint(dict(files)).startswith(wanted):
            return files
    raise UsageError(
        f"The file of {name}, as {of.run} had it, is not here, in git ({of.commit or 'no commit'}) or in that run.",
        "Fetch the whole history (git fetch --unshallow), or name the folder of the run with --results.",
    )
