"""Confirms a change: measures both sides of it again, interleaved in one run on this machine.

The cell runs in two environments, with the old and with the new packages. Both run the current version of the
scenario's file.
"""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis.profiles import find_moves
from harness.analysis.results import Results
from harness.analysis.work_counts import StepWork
from harness.environments import adhoc
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import get_environment_name, is_line, parse_requested
from harness.history.folder import History
from harness.history.request import ConfirmRequest
from harness.history.states import NEAR, SeriesFinding
from harness.machine.identity import load_machine
from harness.model.environment import Device, name_on
from harness.model.errors import UsageError
from harness.model.history import Decision, SeriesSoftware, Summary
from harness.model.launch import Clock, Interleave, Protocol, Status
from harness.model.profile import Part
from harness.model.texts import remove_password
from harness.paired.comparison import PairedRun
from harness.project import Project
from harness.report.phrases import describe_change
from harness.session.request import Request
from harness.store.folder import RunFolder

#: The number of functions in a decision, whose time changed most, and the number of functions from which they are
#: selected, whose share changed most.
_STORED_FUNCTIONS, _COMPARED_FUNCTIONS = 8, 400

#: Findings with the decisions on them; None if a run has too few rounds, or if its result is unclear.
Decisions = list[tuple[SeriesFinding, Decision | None]]


@dataclass(frozen=True, slots=True)
class ConfirmationRun:
    """Findings with the same cause and scenario, and the request for the run that decides on them.

    - `request`: its environments are the ones before and after the change
    - `versions`: the versions of a release line before and after, as values of -e; empty for other environments
    - `keras_nightlies`: the versions of keras-nightly before and after, if they differ
    """

    findings: Sequence[SeriesFinding]
    request: Request
    versions: Sequence[str] = ()
    keras_nightlies: Sequence[str] = ()

    def make_command(self, sides: Sequence[str] = ()) -> list[str]:
        """Return the command that repeats the run, if given with other `sides`."""
        environments = list(sides) or self.request.environments
        request = replace(self.request, environments=environments, results=Request().results)
        return [*map(remove_password, request.command())]


def decide_finding(log: float, low: float, high: float, ratio: float, margin: float) -> bool | None:
    """Return True if the change of a finding is confirmed, False if it is refuted, and None if it is unclear.

    `log` is the log of time(after) / time(before) in the confirmation run, with its interval from `low` to `high`.
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


def plan_group(
    history: History, members: Sequence[SeriesFinding], usual: ConfirmRequest, scripts: Sequence[Path] = ()
) -> ConfirmationRun:
    """Return the run that decides a group of findings on this machine (see `plan_confirmation`).

    Raises UsageError if the group was measured on another machine.
    """
    key, machine = members[0].key, load_machine()
    if key.machine != machine.id:
        raise UsageError(
            f"The change was measured on another machine ({key.machine}). This machine is {machine.id}.",
            "Run this command on that machine.",
        )
    return plan_confirmation(members, *find_sides(history, members[0]), usual, scripts)


def find_sides(history: History, finding: SeriesFinding) -> tuple[Summary, Summary]:
    """Return the last run with a result before a change, and the first run with a result after it.

    After a drift, it is the newest run. For a release line, both runs are NEAR points further away, because the place
    of a change is only known to within NEAR points. A search between these runs finds the version.
    """
    (series,) = history.series(only={finding.key})
    runs = [point.run for point in series.points]
    change_index = runs.index(finding.since)
    # skip runs without a result: the software may have changed in one of them
    places = [place for place, point in enumerate(series.points) if point.log_ratio is not None]
    earlier_runs = [runs[place] for place in places if place < change_index]
    later_runs = [runs[place] for place in places if place >= change_index]
    distance = NEAR if is_line(finding.key.environment) else 0
    summaries = {summary.run: summary for summary in history.summaries()}
    after = later_runs if finding.is_drift else later_runs[: 1 + distance]
    return summaries[earlier_runs[-1 - distance :][0]], summaries[after[-1]]


def plan_confirmation(
    members: Sequence[SeriesFinding],
    before: Summary,
    after: Summary,
    usual: ConfirmRequest,
    scripts: Sequence[Path] = (),
) -> ConfirmationRun:
    """Return the run that decides a group of findings. `before` and `after` are the runs before and after the change.

    `usual` has the options of the measurement, and the folder for runs. `scripts` are files of scenarios from outside
    the project. Raises UsageError if a side can't be restored, or if both sides have the same packages.
    """
    key = members[0].key
    old, new = (summary.software[name_on(key.environment, key.device, summary.software)] for summary in (before, after))
    if old.pins == new.pins:
        raise _explain_equal_sides(members[0], before, after, is_rebuilt=old.image != new.image)
    sides = [_format_environment(key.environment, key.device, software) for software in (old, new)]
    is_new_version = is_line(key.environment) and old.version != new.version
    keras_nightlies = list(dict.fromkeys(software.pins.get("keras-nightly", "") for software in (old, new)))
    return ConfirmationRun(
        members,
        _make_request(members, sides, usual, scripts),
        versions=[old.version, new.version] if is_new_version else [],
        keras_nightlies=keras_nightlies if len(keras_nightlies) == 2 and all(keras_nightlies) else (),
    )


def _make_request(
    members: Sequence[SeriesFinding], sides: Sequence[str], usual: ConfirmRequest, scripts: Sequence[Path]
) -> Request:
    """Return the request that measures both sides of a group, with the settings of the nightly runs."""
    key = members[0].key
    cpus = re.match(r"(\d+|all) CPUs?", key.way)  # `summary.summarize` stored the settings as text
    return Request(
        scenarios=[next((str(path) for path in scripts if path.stem == key.scenario), key.scenario)],
        axes={axis: sorted({dict(finding.key.axes)[axis] for finding in members}) for axis, _ in key.axes},
        environments=sides,
        gpu=key.device == Device.GPU.value,
        cpus=cpus[1] if cpus else "",
        interleave=Interleave.LAUNCHES if "launch after launch" in key.way else None,
        clock=Clock.CPU if "CPU time" in key.way else Clock.WALL,
        sampling=Protocol.DOCUMENT if "the source's iterations" in key.way else Protocol.TIME,
        rounds=usual.rounds,
        budget=usual.budget,
        backend=usual.backend,
        trust=usual.trust,
        share=usual.share,
        warmup=usual.warmup,
        measure=usual.measure,
        margin=usual.margin,
        results=usual.results,
    )


def _explain_equal_sides(finding: SeriesFinding, before: Summary, after: Summary, *, is_rebuilt: bool) -> UsageError:
    """Return the error for a change whose two sides have the same packages, with or without a rebuilt image."""
    key, advice = finding.key, "To annotate the change: harness history note"
    if before.scenarios[key.scenario].hash != after.scenarios[key.scenario].hash:
        commits = [summary.commit.removesuffix("+") for summary in (before, after)]
        command = ["harness", "matrix", "-s", key.scenario, "--base", commits[0], "--head", commits[1]]
        command += ["-e", key.environment, "-e", key.reference]
        return UsageError(
            f"{key.cell}: the file of the scenario changed before {finding.since}.",
            f"To compare the two versions: {shlex.join(command)}. {advice}" if all(commits) else advice,
        )
    if is_rebuilt:
        return UsageError(
            f"{key.cell}: before {finding.since}, the image was rebuilt with the same packages. The earlier image "
            "can't be restored, because images are built from lock files.",
            advice,
        )
    return UsageError(
        f"{key.cell}: the measured software didn't change before {finding.since}, so both sides are equal.",
        f"The machine changed, or something changed that isn't recorded. {advice}",
    )


def decide_all(confirmation: ConfirmationRun, results: Results, margin: float) -> Decisions:
    """Return the decision on each finding of a run.

    The first look at a run has 95 % intervals. Later looks share another 5 % (analysis/looks.py).
    """
    return [(finding, _decide(confirmation, finding, results, margin)) for finding in confirmation.findings]


def _decide(confirmation: ConfirmationRun, finding: SeriesFinding, results: Results, margin: float) -> Decision | None:
    old, new = confirmation.request.environments
    run = PairedRun(results, {side: get_environment_name(side) for side in (old, new)}, axes=dict(finding.key.axes))
    comparison = run.compare(new, old)
    if comparison is None:
        return None
    is_confirmed = decide_finding(comparison.step, comparison.low, comparison.high, finding.ratio, margin)
    if is_confirmed is None:
        return None
    work, old_work = run.work(new), run.work(old)
    builds = [run.build(side) for side in (old, new)] if confirmation.versions else []
    return Decision(
        finding.key,
        finding.since,
        list(finding.suspects),
        is_confirmed,
        results.run.id,
        results.run.started,
        math.exp(comparison.step),
        math.exp(comparison.low),
        math.exp(comparison.high),
        versions=list(confirmation.versions),
        commits=[f"GIT_VERSION: {builds[0]} and {builds[1]}"] if all(builds) and len({*builds}) == 2 else [],
        command=confirmation.make_command(),
        work=describe_change(work, old_work) if isinstance(work, StepWork) and isinstance(old_work, StepWork) else "",
    )


def find_changed_functions(folder: Path, results: Results, sides: Sequence[str]) -> list[tuple[str, float, float]]:
    """Return the functions whose own time changed most between two profiles of a run, with seconds per step of both.

    The list is empty if a side has no profile.
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
    changes = find_moves(after[part], before[part], _COMPARED_FUNCTIONS, own=True)
    changes.sort(key=lambda change: -abs(change.seconds - change.other_seconds))
    return [(change.name, change.other_seconds, change.seconds) for change in changes[:_STORED_FUNCTIONS]]


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
