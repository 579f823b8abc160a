"""Merges runs of one plan from several machines into one run.

Results from different machines are never combined in one group.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from harness.files import read
from harness.machine.lock import is_held
from harness.model.errors import UsageError
from harness.model.launch import Launch
from harness.model.run import Group, Machine, MachineFacts, Run, Shard, Stop
from harness.model.scenario import MACHINE, Cell, Scenario
from harness.model.texts import counted, escape, format_cpu_list, joined
from harness.plan import shards
from harness.plan.groups import name_group
from harness.session.reporting import load_results, report
from harness.session.running import Ended
from harness.session.starting import make_run_id
from harness.store.folder import RunFolder, pause_garbage_collection

#: The largest artifact that is copied, in bytes.
ARTIFACT_MOST = 1024**3

#: Options that a merged run doesn't have, and whether they take a value.
_OPTIONS = {"--shard": True, "--balance": True, "--on": True, "--slots": True, "--wait": False}


class Merged(NamedTuple):
    """A merged run, with a sentence for each missing part."""

    ended: Ended
    lacks: Sequence[str]


@dataclass(frozen=True, slots=True)
class _MergedPart:
    """A run to merge, with its launches. `label` is its machine's name, or empty if all runs are from one machine."""

    path: Path
    run: Run
    machine: Machine
    launches: Sequence[Launch]
    label: str = ""


def merge(folders: Sequence[Path], results: Path, into: RunFolder | None = None, command: Sequence[str] = ()) -> Merged:
    """Merge the runs in `folders` into one, and write its report.

    The merged run gets its own folder in `results`, or the empty folder `into`. `command` is its command line. By
    default, it is a run's command without the options about shards.

    A run that is corrupt, from a newer harness, merged, still being measured, or without a machine, is left out. Raises
    UsageError if a run is passed twice, if runs have different plans (with the difference), if a machine measured a
    round of a group twice, or if nothing is left.
    """
    parts, left_out = [], []
    passed: dict[Path, Path] = {}
    for path in folders:
        if first := passed.get(path.resolve()):
            raise UsageError(f"{first} and {path} are the same run.", "Pass each run once.")
        passed[path.resolve()] = path
        try:
            parts.append(_read(path))
        except UsageError as error:
            left_out.append(f"Left out: {error.message}")
    if not parts:
        raise UsageError("\n".join(["No run can be merged.", *left_out]), "Pass folders of runs that have ended.")
    for other in parts:
        _check_same_plan(parts[0], other)
    _check_no_duplicates(parts)
    missing = _find_missing(parts)
    parts = _label_runs(parts)
    run = _merge(parts)
    folder = into or RunFolder.create(results, make_run_id(datetime.now(UTC)))
    run = replace(run, id=folder.path.name, folder=str(folder.path), absent=missing, command=command or run.command)
    moved = [_move_launch(folder, part, launch) for part in parts for launch in part.launches]
    launches = sorted(moved, key=lambda launch: launch.started)
    for launch in launches:
        folder.append(launch)
    # write this file last: a history would prefer an incomplete merged run to its parts
    folder.write_run(run)
    merged_results = load_results(run, launches)
    ended = Ended(folder.path, merged_results, report(folder, merged_results), interrupted=False, refused={})
    return Merged(ended, [*left_out, *_describe_incomplete(parts, missing)])


def _read(path: Path) -> _MergedPart:
    """Return a run that can be merged. Raises UsageError for any other run."""
    folder = RunFolder.open(path)
    if is_held(path / ".lock"):
        raise UsageError(f"{path} is being measured.")
    with pause_garbage_collection():
        run = folder.read_run()
        launches = folder.read_launches(run)
    if run.plan.profile_calls:
        raise UsageError(f"{path} has profiles instead of measurements.")
    if run.merged:
        raise UsageError(f"{path} is a merged run. Pass the runs that it was merged from: {joined(list(run.merged))}.")
    if not run.machine:
        raise UsageError(f"{path} doesn't record its machine, because an older version of harness measured it.")
    return _MergedPart(path, run, run.machine, launches)


def _label_runs(parts: Sequence[_MergedPart]) -> list[_MergedPart]:
    """Return the runs, each with its machine's name, and its id if another machine has the same name.

    Runs of one machine stay as they are.
    """
    machines = {part.machine.id: part.machine for part in parts}
    if len(machines) == 1:
        return list(parts)
    machine_names = [machine.shown for machine in machines.values()]
    labels = {
        identity: machine.shown if machine_names.count(machine.shown) == 1 else f"{machine.shown} ({identity})"
        for identity, machine in machines.items()
    }
    axis_values = list(dict.fromkeys(labels.values()))
    return [_label_run(part, labels[part.machine.id], axis_values) for part in parts]


def _label_run(part: _MergedPart, label: str, labels: Sequence[str]) -> _MergedPart:
    """Return a run with the axis MACHINE in its scenarios, groups, cells and launches. Its values are all `labels`."""

    def add_machine(cell: Cell) -> Cell:
        return replace(cell, axes={MACHINE: label, **cell.axes})

    run, plan = part.run, part.run.plan
    scenarios = [replace(scenario, axes={MACHINE: labels, **scenario.axes}) for scenario in run.scenarios]
    by_name = {scenario.name: scenario for scenario in scenarios}
    groups = {}  # by the names without the machine
    for group in plan.groups:
        cells = list(map(add_machine, group.cells))
        groups[group.name] = replace(
            group,
            name=name_group(cells[0], by_name[group.scenario]),
            axes={MACHINE: label, **group.axes},
            cells=cells,
            control=add_machine(group.control) if group.control else None,
            machine=part.machine.id,
        )
    unavailable = [replace(entry, cell=add_machine(entry.cell)) for entry in plan.unavailable]
    labeled_run = replace(
        run,
        plan=replace(
            plan,
            groups=list(groups.values()),
            unavailable=unavailable,
            settled={groups[name].name: rounds for name, rounds in plan.settled.items() if name in groups},
        ),
        scenarios=scenarios,
        stops={groups[name].name: stop for name, stop in run.stops.items()},
        looks=[{groups[name].name: rounds for name, rounds in look.items()} for look in run.looks],
    )
    launches = [
        replace(launch, group=groups[launch.group].name, cell=add_machine(launch.cell)) for launch in part.launches
    ]
    return replace(part, run=labeled_run, launches=launches, label=label)


def _check_same_plan(first: _MergedPart, other: _MergedPart) -> None:
    """Raise UsageError, with the difference, if two runs have different plans."""
    digests = [part.run.plan.shard.plan for part in (first, other) if part.run.plan.shard]
    if len(digests) == 2 and digests[0] == digests[1]:
        return
    first_aspects, other_aspects = (_list_aspects(part.run) for part in (first, other))
    differences = [
        f"{name} ({_describe_difference(value, other_aspects[name])})"
        for name, value in first_aspects.items()
        if value != other_aspects[name]
    ]
    counts = {part.run.plan.shard.of for part in (first, other) if part.run.plan.shard}
    if len(counts) > 1:
        differences.append(f"the number of shards ({joined([str(count) for count in sorted(counts)])})")
    if not differences and _list_groups(first.run) != _list_groups(other.run):
        differing_groups = sorted(_list_groups(first.run) ^ _list_groups(other.run))
        more = f" and {len(differing_groups) - 3} more" if len(differing_groups) > 3 else ""
        differences.append(f"the groups ({joined(differing_groups[:3])}{more})")
    if not differences and len(digests) == 2:
        differences.append("the cells of a group")
    if differences:
        raise UsageError(
            f"{first.path} and {other.path} have different plans: {escape(joined(differences))}.",
            "Only runs of one plan can be merged. On each machine, use the same command and the same --seed, and "
            "change only --shard.",
        )


def _list_aspects(run: Run) -> dict[str, Any]:
    aspects = shards.list_aspects(
        run.plan, harness=run.harness, reference=run.reference, sources=run.sources, packages=run.pins
    )
    # through JSON, so that tuples become lists as in stored values
    return dict(json.loads(json.dumps(aspects)))


def _describe_difference(one: Any, other: Any) -> str:
    """Return a difference as `1 and 2`. For mappings, return the names that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return joined([name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)])
    return " and ".join("none" if value in (None, "", []) else str(value) for value in (one, other))


def _list_groups(run: Run) -> set[str]:
    """Return the groups of the whole plan, including groups in which the run's machine couldn't measure any cell."""
    scenarios = {scenario.name: scenario for scenario in run.scenarios}
    unavailable_groups = {name_group(entry.cell, scenarios[entry.cell.scenario]) for entry in run.plan.unavailable}
    elsewhere = run.plan.shard.elsewhere if run.plan.shard else {}
    return {group.name for group in run.plan.groups} | unavailable_groups | set(elsewhere)


def _check_no_duplicates(parts: Sequence[_MergedPart]) -> None:
    """Raise UsageError if two runs have the same round of a group on one machine."""
    part_by_round: dict[tuple[str, str, int], _MergedPart] = {}
    for part in parts:
        for key in {(part.machine.id, launch.group, launch.round) for launch in part.launches if launch.round}:
            other = part_by_round.setdefault(key, part)
            if other is not part:
                raise UsageError(
                    f"{other.path} and {part.path} both contain round {key[2]} of {escape(key[1])}, measured on the "
                    f"same machine.",
                    "Omit one of these runs.",
                )


def _find_missing(parts: Sequence[_MergedPart]) -> dict[str, list[str]]:
    """Return the groups that no run has, by the shard that should have measured them."""
    measured = {group.name for part in parts for group in part.run.plan.groups}
    missing: dict[str, list[str]] = {}
    run_shards = [part.run.plan.shard for part in parts if part.run.plan.shard]
    shard_by_group = {group: (number, shard.of) for shard in run_shards for group, number in shard.elsewhere.items()}
    for group, (number, count) in sorted(shard_by_group.items(), key=lambda entry: (entry[1], entry[0])):
        if group not in measured:
            missing.setdefault(str(Shard(number, count)), []).append(group)
    return missing


def _describe_incomplete(parts: Sequence[_MergedPart], missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Return sentences about interrupted runs, and about the missing shards with their groups."""
    unfinished = [
        f"{part.path} was interrupted: {counted(len(part.run.unfinished), 'group')} of this run may have fewer rounds."
        for part in parts
        if part.run.unfinished
    ]
    missing_shards = [
        escape(f"Shard {shard} is missing, with {counted(len(groups), 'group')}: {joined(list(groups))}.")
        for shard, groups in missing.items()
    ]
    return [*unfinished, *missing_shards]


# The parts of the merged run.


def _merge(parts: Sequence[_MergedPart]) -> Run:
    first_run = min(parts, key=lambda part: part.run.started).run
    plans = [part.run.plan for part in parts]
    by_name = {scenario.name: scenario for scenario in first_run.scenarios}
    groups: dict[str, Group] = {}
    for group in (group for plan in plans for group in plan.groups):
        joint = groups.setdefault(group.name, group)
        cells = list(dict.fromkeys([*joint.cells, *group.cells]))
        groups[group.name] = replace(joint, cells=cells, piloted=joint.piloted or group.piloted)
    plan = replace(
        first_run.plan,
        groups=sorted(groups.values(), key=lambda group: _make_sort_key(group, by_name)),
        unavailable=list({entry.cell: entry for plan in plans for entry in plan.unavailable}.values()),
        shard=None,
        stand_ins=list({fallback.role: fallback for plan in plans for fallback in plan.stand_ins}.values()),
        compiled={name: way for plan in plans for name, way in plan.compiled.items()},
        settled={name: rounds for plan in plans for name, rounds in plan.settled.items()},
    )
    machines = _list_machines(parts)
    return replace(
        first_run,
        command=_remove_shard_options(first_run.command),
        plan=plan,
        images={name: image for part in reversed(parts) for name, image in part.run.images.items()},
        stops=_merge_stops(parts),
        looks=_merge_looks(parts),
        machine=None if machines else first_run.machine,
        machines=machines,
        host={} if machines else _merge_hosts(parts),
        merged=[part.run.id for part in parts],
        slot_cpus=[],
    )


def _make_sort_key(group: Group, scenarios: Mapping[str, Scenario]) -> tuple[int, str, list[int], str]:
    """Return the sort key of a group: the header's order, with the groups of one cell next to each other."""
    axes = scenarios[group.scenario].axes
    order = [values.index(group.axes[name]) for name, values in axes.items() if name in group.axes and name != MACHINE]
    return list(scenarios).index(group.scenario), group.device, order, group.axes.get(MACHINE, "")


def _list_machines(parts: Sequence[_MergedPart]) -> list[MachineFacts]:
    machines = []
    for identity in dict.fromkeys(part.machine.id for part in parts if part.label):
        first, *others = [part for part in parts if part.machine.id == identity]
        host, ids = _merge_hosts([first, *others]), [part.run.id for part in (first, *others)]
        facts = MachineFacts(first.machine, first.label, host, first.run.backend, first.run.plan.limits, ids)
        machines.append(facts)
    return machines


def _merge_hosts(parts: Sequence[_MergedPart]) -> Mapping[str, Any]:
    """Return the facts of a machine, with the CPUs of its slots if there were several."""
    runs = sorted((part.run for part in parts), key=lambda run: run.started)
    pinned = sorted({format_cpu_list(run.plan.limits.cpus or ()) for run in runs})
    return {**runs[0].host, "slots": pinned} if runs[0].slots > 1 and len(pinned) > 1 else runs[0].host


def _merge_stops(parts: Sequence[_MergedPart]) -> dict[str, Stop]:
    """Return how each group ended: as in the last run that has the group, with the rounds of all runs added up."""
    stops: dict[str, Stop] = {}
    for part in parts:
        for name, stop in part.run.stops.items():
            stops[name] = replace(stop, rounds=stop.rounds + (stops[name].rounds if name in stops else 0))
    return stops


def _merge_looks(parts: Sequence[_MergedPart]) -> list[dict[str, int]]:
    """Return the numbers of rounds at each continuation beyond the plan, merged by the continuations' order."""
    return [
        {name: rounds for look in looks for name, rounds in look.items()}
        for looks in zip_longest(*(part.run.looks for part in parts), fillvalue=dict[str, int]())
    ]


def _remove_shard_options(typed: Sequence[str]) -> list[str]:
    """Return the command for the whole plan, from the command for a shard."""
    words, remaining = list[str](), iter(typed)
    for word in remaining:
        name, has_value, _ = word.partition("=")
        if name not in _OPTIONS:
            words.append(word)
        elif _OPTIONS[name] and not has_value:
            next(remaining, None)
    return words


def _move_launch(folder: RunFolder, part: _MergedPart, launch: Launch) -> Launch:
    """Return a launch for the merged run, with its artifacts in the folder of that run."""
    copied, uncopied = list[str](), list(launch.not_kept)
    for name in launch.artifacts:
        try:
            data = read(Path(name), within=part.path, most=ARTIFACT_MOST)
        except OSError as error:
            uncopied.append(f"{name}: {error.strerror}")
            continue
        folder_name, *inner_parts = Path(name).parts[1:]
        copied += folder.write_artifacts(f"{part.run.id}-{folder_name}", {"/".join(inner_parts): data})
    return replace(launch, artifacts=copied, not_kept=uncopied)
