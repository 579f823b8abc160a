"""Confirms a change: measures both sides of it again, interleaved in one run on this machine.

- If packages changed, the cell runs in two environments, with the old and with the new packages.
- If the scenario's file changed, both files run in the cell's environment and in the baseline environment, because the
  suspected change is a change of the ratio between these environments.
- If both changed, the old file with the old packages is compared with the new file with the new packages.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.analysis.observations import find_commit
from harness.analysis.profiles import find_moves, list_frames, tree
from harness.analysis.results import Results
from harness.analysis.statistics import half_widths, means
from harness.environments import adhoc
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import get_environment_name, is_line, parse_requested
from harness.files import hash_files, write_atomically
from harness.history.request import ConfirmRequest
from harness.history.states import SeriesFinding
from harness.model.defaults import ALPHA
from harness.model.environment import Device, name_on
from harness.model.errors import HarnessError, UsageError
from harness.model.history import Decision, Key, SeriesSoftware, Summary
from harness.model.launch import Clock, Interleave, Protocol, Status
from harness.model.profile import Part
from harness.model.scenario import BEFORE_AND_AFTER, SIDE
from harness.model.texts import remove_password
from harness.project import Project
from harness.report.flamegraphs import draw_changes
from harness.report.profiles import MIN_WIDTH
from harness.scenarios import versions
from harness.scenarios.catalog import find_scenario_files
from harness.session import trust
from harness.session.request import Request
from harness.session.versions import find_files_with_hash
from harness.store.folder import RunFolder

#: The number of functions in a decision, whose time changed most, and the number of functions from which they are
#: selected, whose share changed most.
_STORED_FUNCTIONS, _COMPARED_FUNCTIONS = 8, 400

#: The file with the flame graph of the changes, in the folder of the run that profiled both sides.
FLAME_GRAPH = "flame-change.svg"


@dataclass(frozen=True, slots=True)
class ConfirmationRun:
    """Findings with the same cause and scenario, and the request for the run that decides on them.

    - `sides`: the environments before and after the change; the same one if no package changed
    - `is_file`: whether the scenario's file changed
    - `versions`: the versions of a release line before and after, as values of -e; empty for other environments
    - `reference`: the baseline environment, which is measured too if the file changed
    - `keras_nightlies`: the versions of keras-nightly before and after, if they differ
    - `commits`: the commits with both versions of the file; empty if no file changed, or if a version isn't in git
    """

    findings: Sequence[SeriesFinding]
    request: Request
    sides: tuple[str, str]
    is_file: bool
    versions: Sequence[str] = ()
    reference: str = ""
    keras_nightlies: Sequence[str] = ()
    commits: Sequence[str] = ()

    def make_command(self, sides: Sequence[str] = ()) -> list[str]:
        """Return the command that repeats the run, if given with other `sides`; empty if a file isn't in git."""
        if self.is_file and not self.commits:
            return []
        scenarios = [self.findings[0].key.scenario] if self.is_file else self.request.scenarios
        environments = list(sides) or self.request.environments
        request = replace(self.request, scenarios=scenarios, environments=environments, results=Request().results)
        options = [word for pair in zip(("--base", "--head"), self.commits, strict=False) for word in pair]
        return [*map(remove_password, request.command()), *options]


def decide_finding(log: float, low: float, high: float, ratio: float, margin: float) -> bool | None:
    """Return True if the change of a finding is confirmed, False if it is refuted, and None if it is unclear.

    `log` is the log of time(after) / time(before) in the confirmation run, with its 95 % interval from `low` to `high`.
    `ratio` is the ratio of the finding, which determines the direction. `margin` is a share: 0.03 is 3 %.

    - Confirmed: the whole interval is in the direction of the finding, and `log` is at least half the margin from 0.
    - Refuted: the whole interval is below the margin in the direction of the finding.
    """
    if ratio < 1.0:
        log, low, high = -log, -high, -low
    log_margin = math.log1p(margin)
    if high < log_margin:
        return False
    return True if low > 0.0 and log > log_margin / 2.0 else None


def group_findings(members: Sequence[SeriesFinding]) -> list[list[SeriesFinding]]:
    """Group findings that one run can decide: they have the same cause, scenario and baseline."""
    groups: dict[tuple[str, ...], list[SeriesFinding]] = {}
    for finding in members:
        key = finding.key
        groups.setdefault(
            (finding.cause, key.scenario, key.device, key.environment, key.reference, key.way), []
        ).append(finding)
    return list(groups.values())


def plan_confirmation(
    members: Sequence[SeriesFinding],
    before: Summary,
    after: Summary,
    usual: ConfirmRequest,
    scripts: Sequence[Path] = (),
) -> ConfirmationRun:
    """Return the run that decides a group of findings. `before` and `after` are the runs before and after the change.

    `usual` has the options of the measurement, and the folder for runs. `scripts` are files of scenarios from outside
    the project. Raises UsageError if a side can't be restored, or if both sides are equal.
    """
    key = members[0].key
    axes = {axis: sorted({dict(finding.key.axes)[axis] for finding in members}) for axis, _ in key.axes}
    paths = {path.stem: path for path in [*find_scenario_files(Project.find()), *scripts]}
    old, new = (summary.software[name_on(key.environment, key.device, summary.software)] for summary in (before, after))
    hashes = [summary.scenarios[key.scenario].hash for summary in (before, after)]
    if old.pins == new.pins and hashes[0] == hashes[1]:
        raise _explain_equal_sides(members[0], old, new)
    request = Request(
        axes=axes,
        gpu=key.device == Device.GPU.value,
        rounds=usual.rounds,
        budget=usual.budget,
        backend=usual.backend,
        trust=usual.trust,
        share=usual.share,
        warmup=usual.warmup,
        measure=usual.measure,
        margin=usual.margin,
        results=usual.results,
        **_make_request_fields(key),
    )
    sides = key.environment, key.environment
    if old.pins != new.pins:
        sides = (
            _format_environment(key.environment, key.device, old),
            _format_environment(key.environment, key.device, new),
        )
    elif is_line(key.environment):
        sides = old.version, old.version
    line_versions = [old.version, new.version] if is_line(key.environment) and old.version != new.version else []
    keras_nightlies = list(dict.fromkeys(software.pins.get("keras-nightly", "") for software in (old, new)))
    path = paths.get(key.scenario)
    if hashes[0] == hashes[1]:
        scenario = str(path) if path in scripts else key.scenario
        return ConfirmationRun(
            members,
            replace(request, scenarios=[scenario], environments=list(sides)),
            sides,
            is_file=False,
            versions=line_versions,
            keras_nightlies=keras_nightlies if len(keras_nightlies) == 2 and all(keras_nightlies) else (),
        )
    files = [_find_files(key.scenario, path, summary, usual.results) for summary in (before, after)]
    commits = [summary.commit for summary in (before, after)]
    kind = trust.classify_commits(Path.cwd(), [commit.removesuffix("+") for commit in commits])
    script = versions.write_side_by_side(key.scenario, files[0], files[1], trust.get_folder(kind))
    reference = after.software[key.reference].version if is_line(key.reference) else key.reference
    environments = list(dict.fromkeys([*sides, reference]))
    return ConfirmationRun(
        members,
        replace(request, scenarios=[str(script)], environments=environments),
        sides,
        is_file=True,
        versions=line_versions,
        reference=reference,
        commits=commits if all(commit and not commit.endswith("+") for commit in commits) else [],
    )


def _make_request_fields(key: Key) -> dict[str, Any]:
    """Return the fields of a request with the nightly runs' settings, which `summary.summarize` stored as text."""
    cpus = re.match(r"(\d+|all) CPUs?", key.way)
    return {
        "cpus": cpus[1] if cpus else "",
        "interleave": Interleave.LAUNCHES if "launch after launch" in key.way else None,
        "clock": Clock.CPU if "CPU time" in key.way else Clock.WALL,
        "sampling": Protocol.DOCUMENT if "the source's iterations" in key.way else Protocol.TIME,
    }


def _explain_equal_sides(
    finding: SeriesFinding, old_software: SeriesSoftware, new_software: SeriesSoftware
) -> UsageError:
    """Return the error for a change whose two sides would be the same software today."""
    advice = "To annotate the change: harness history note"
    if old_software.image != new_software.image:
        return UsageError(
            f"{finding.key.cell}: before {finding.since}, the image was rebuilt with the same packages. The earlier "
            "image can't be restored, because images are built from lock files.",
            advice,
        )
    return UsageError(
        f"{finding.key.cell}: the measured software didn't change before {finding.since}, so both sides are equal.",
        f"The machine changed, or something changed that isn't recorded. {advice}",
    )


def decide_all(
    confirmation: ConfirmationRun, results: Results, margin: float
) -> list[tuple[SeriesFinding, Decision | None]]:
    """Return the decision on each finding; None if the run has too few rounds, or if the result is unclear."""
    pairs = []
    for finding in confirmation.findings:
        logs = _compute_changes(confirmation, finding, results)
        decision = None
        if len(logs) > 1:
            mean = math.fsum(logs) / len(logs)
            half_width = float(half_widths(means([logs]), ALPHA)[0])
            is_confirmed = decide_finding(mean, mean - half_width, mean + half_width, finding.ratio, margin)
            if is_confirmed is not None:
                run, ratios = results.run, (math.exp(mean), math.exp(mean - half_width), math.exp(mean + half_width))
                decision = Decision(
                    *(finding.key, finding.since, list(finding.suspects), is_confirmed, run.id, run.started, *ratios),
                    versions=list(confirmation.versions),
                    commits=_describe_builds(confirmation.sides, results) if confirmation.versions else [],
                    command=confirmation.make_command(),
                )
        pairs.append((finding, decision))
    return pairs


def _compute_changes(confirmation: ConfirmationRun, finding: SeriesFinding, results: Results) -> list[float]:
    """Return log(time(after) / time(before)) per round. If the file changed, the times are relative to the baseline."""
    lookup, key = results.found, finding.key

    def seconds(environment: str, axes: Mapping[str, str]) -> Mapping[int, float]:
        name = get_environment_name(environment)
        for cell in lookup.cells:
            if cell.environment == name and all(cell.axes.get(axis) == value for axis, value in axes.items()):
                return lookup.series.get(cell, {})
        return {}

    base, head = BEFORE_AND_AFTER
    axes = dict(key.axes)
    old_side, new_side = confirmation.sides
    before, after = ({**axes, SIDE: base}, {**axes, SIDE: head}) if confirmation.is_file else (axes, axes)
    terms = [(seconds(new_side, after), 1.0), (seconds(old_side, before), -1.0)]
    # the baseline's cell may have other axis values; then it isn't part of this run
    if confirmation.is_file and key.reference != key.environment:
        reference = confirmation.reference or key.reference
        terms += [(seconds(reference, after), -1.0), (seconds(reference, before), 1.0)]
    rounds = sorted(set.intersection(*(set(centres) for centres, _ in terms)))
    return [math.fsum(sign * math.log(centres[number]) for centres, sign in terms) for number in rounds]


def find_changed_functions(folder: Path, results: Results, sides: Sequence[str]) -> list[tuple[str, float, float]]:
    """Return the functions whose own time changed most between two profiles of a run, with seconds per step of both.

    Also write FLAME_GRAPH to the folder, if the profiles have samples. The list is empty if a side has no profile.
    """
    run_folder = RunFolder.open(folder)
    profiles = {
        launch.cell.environment: run_folder.read_profiles(launch)
        for launch in results.launches
        if launch.status is Status.OK
    }
    before, after = (profiles.get(get_environment_name(side), {}) for side in sides)
    part = next((part for part in reversed(Part) if part in before and part in after), None)
    if part is None:
        return []
    frames = list_frames(tree(after[part]), MIN_WIDTH, tree(before[part]))
    title = f"Share of the time in {sides[1]}; red: larger than in {sides[0]}, blue: smaller"
    if graph := draw_changes(frames, title):
        write_atomically(folder / FLAME_GRAPH, graph.encode())
    changes = find_moves(after[part], before[part], _COMPARED_FUNCTIONS, own=True)
    changes.sort(key=lambda change: -abs(change.seconds - change.other_seconds))
    return [(change.name, change.other_seconds, change.seconds) for change in changes[:_STORED_FUNCTIONS]]


def _describe_builds(sides: Sequence[str], results: Results) -> list[str]:
    """Return a text with the commits that TensorFlow reports on both sides; empty if they are equal or unknown."""
    builds = [find_commit(results.launches, get_environment_name(side)) for side in sides]
    return [f"GIT_VERSION: {builds[0]} and {builds[1]}"] if all(builds) and builds[0] != builds[1] else []


def _format_environment(name: str, device: str, software: SeriesSoftware) -> str:
    """Return the value of -e for an environment with these packages: its name, plus packages that differ from its lock.

    Raises UsageError if the environment isn't in the catalog any more.
    """
    project, pins = Project.find(), software.pins
    # an environment with a wheel from a source is selected by its name
    text = name if "@" in software.version else software.version or name
    catalog, (catalog_name,) = adhoc.add_requested(load_environments(project), [parse_requested(text)])
    environment = catalog.get(catalog_name)
    if environment is None:
        raise UsageError(
            f"{name} isn't in the catalog any more, so its earlier packages can't be installed.",
            "Restore its line in docker-bake.hcl. To annotate the date instead: harness history note",
        )
    locked = load_lock(project, environment, Device(device)).lock.pins
    overrides = [f"{package}=={version}" for package, version in sorted(pins.items()) if locked.get(package) != version]
    return "+".join([environment.exact, *overrides]) if overrides else text


def _find_files(name: str, path: Path | None, summary: Summary, results: Path) -> Mapping[str, bytes]:
    """Return the files of a scenario as they were in a run: from the working tree, git, or the run's folder.

    Raises UsageError if none of these has files with the same hash as in the run.
    """
    digest = summary.scenarios[name].hash
    if digest and path and (files := find_files_with_hash(path, digest, summary.commit)):
        return files
    with suppress(HarnessError):
        text = RunFolder.open(results / summary.run).read_run().scripts.get(name)
        files = {f"{name}.py": text.encode()} if text else {}
        if digest and hash_files(dict(files)).startswith(digest):
            return files
    raise UsageError(
        f"The file of the scenario {name}, as it was in {summary.run}, was not found on this machine, in git "
        f"({summary.commit or 'no commit'}) or in that run.",
        "Fetch the whole history (git fetch --unshallow), or pass the folder of runs with --results.",
    )
