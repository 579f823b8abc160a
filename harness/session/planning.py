"""Makes a plan from a request: the cells to run, and the reasons why other cells can't run. It launches nothing."""

import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness import __version__
from harness.backends import registry
from harness.catalog.adhoc import add_requested
from harness.catalog.environments import load_environments
from harness.catalog.locks import describe_overrides, load_lock, load_locks
from harness.catalog.project import Project
from harness.catalog.scenarios import (
    find_files_of,
    find_scenario_files,
    find_scenarios,
    hash_files,
    load_scenario,
    read_kit_files,
    read_suites,
)
from harness.machine import cpus, host
from harness.machine.gpu import selection as gpus
from harness.machine.lock import hold_machine
from harness.machine.slots import divide_machine
from harness.model.backend import Supply
from harness.model.defaults import FIRST_START_TIMEOUT, MOST_CLAIM_ROUNDS, MOST_ROUNDS, ROUNDS, TIMEOUT
from harness.model.environment import Device, Environment, Requirement, name_on
from harness.model.errors import CannotRunHereError, FileError, HarnessError, UnavailableError, UsageError
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.launch import Clock, Interleave, Limits, Protocol, Role, Sampling, Status
from harness.model.run import Group, Plan, Shard, StandIn, Unavailable
from harness.model.scenario import (
    CPUS,
    DEFAULT_SUITE,
    DEVICE,
    ENVIRONMENT,
    GROWTH,
    PEAK,
    STEP,
    TRACES,
    Cell,
    Scenario,
    Suite,
)
from harness.model.texts import joined
from harness.plan import claims, settings, shards
from harness.plan.availability import TRIED, list_compiled, list_names_on, split
from harness.plan.fallbacks import find_fallbacks, replace_cells, replace_environments
from harness.plan.gpus import Support, find_first_starts
from harness.plan.groups import find_control, find_lone_cells, group, is_of_launches, keep_one_control, name_group
from harness.plan.selection import Catalog, Selection, check_fallbacks, remove_broken, resolve, select
from harness.session import sources
from harness.session.request import EVENLY, LaunchRequest, ProfileRequest, Request, SuiteLength, read_suite_seconds
from harness.store.folder import RunFolder, pause_garbage_collection

#: Quantities that need no pilot if lengths are given, because pilots would be half of the launches of a small run.
#: Other quantities, such as the import time, need one, because it reads the files from disk into memory.
UNPILOTED = (STEP, PEAK, GROWTH, TRACES)

#: The reason why a cell isn't launched if no cell to compare it with can run on the GPU.
_LONE = "no other cell of its comparison can run here, so there is nothing to compare it with"

#: If the claims of a group need no narrower interval than this, on the log scale, the group has no A/A control.
CONTROL_BELOW = math.log1p(0.10)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the inputs from which it was made.

    - `request`: the request; `suite`: the name of the suite, or an empty text if the request names scenarios or issues
    - `plan`: groups of cells, rounds and limits. `plan.unavailable` has the cells that can't be measured, with reasons
    - `environments`: the selected environments; `requirements`: their packages on each device of the run, by name
    - `scenarios`: the selected scenarios by name; `refused`: scenarios with invalid files, which aren't measured
    - `reference`: the name of the baseline environment
    - `cards`: the GPUs of each launch; `gpu_host`: facts about the machine that has the GPUs
    """

    request: LaunchRequest
    suite: str
    project: Project
    plan: Plan
    environments: Sequence[Environment]
    requirements: Mapping[str, Requirement]
    scenarios: Mapping[str, Scenario]
    reference: str
    gpu_host: GpuHost
    cards: Sequence[Gpu]
    refused: Mapping[str, FileError]

    @property
    def cells(self) -> list[Cell]:
        """All cells that will be launched."""
        return self.plan.cells

    @property
    def needed(self) -> list[Requirement]:
        """The environments that at least one cell needs. Other environments aren't built."""
        used = {name_on(cell.environment, cell.device, self.requirements) for cell in self.plan.cells}
        return [requirement for name, requirement in self.requirements.items() if name in used]

    @property
    def moved(self) -> dict[str, str]:
        """Descriptions of environments with replaced packages, by name."""
        descriptions = {
            name: describe_overrides(self.project, requirement)
            for name, requirement in self.requirements.items()
            if not requirement.is_second
        }
        return {name: text for name, text in descriptions.items() if text}

    @property
    def line_sentences(self) -> list[str]:
        """Sentences with the versions of release lines in this run."""
        return [
            f"{environment.line} is {environment.exact} in this run."
            for environment in self.environments
            if environment.line
        ]

    @property
    def gpu_lines(self) -> list[str]:
        """Sentences about the GPUs of each launch."""
        return [*gpus.describe_gpus(self.cards, self.gpu_host), *self.first_starts] if self.plan.limits.gpus else []

    @property
    def first_starts(self) -> list[str]:
        """Sentences about environments whose GPU code the driver must compile first."""

        def join_names(way: Support) -> str:
            return joined([name for name, its_way in self.plan.compiled.items() if its_way == way])

        at_start, some = find_first_starts(self.plan), join_names(Support.PARTLY)
        lazily = [name for name, way in self.plan.compiled.items() if way in {Support.LAZY, Support.COMPILED}]
        whole, lazy = joined(at_start), joined([name for name in lazily if name not in at_start])
        unread, older = join_names(Support.UNREAD), join_names(Support.OLDER)
        return [
            *(
                [f"The driver compiles the kernels of {lazy} when they are first needed. This takes minutes in total."]
                if lazy
                else []
            ),
            *([f"The driver compiles {whole} at the first start. It takes 30 minutes or longer."] if whole else []),
            *([f"The driver compiles some kernels of {some} when they are first needed."] if some else []),
            *([f"CUDA in the image of {older} is older than the GPU, so cuDNN may fail."] if older else []),
            *(
                [
                    f"The launches show whether {unread} runs on the GPU: its GPU code isn't known. `harness images "
                    "verify --device gpu` reads the code in an image."
                ]
                if unread
                else []
            ),
            *(
                f"{name} is {way.rstrip('.')}. It may fail, stop responding, or compute wrong results."
                for name, way in self.plan.compiled.items()
                if way.startswith(TRIED)
            ),
        ]

    def refuse_nothing(self) -> None:
        """Raise CannotRunHereError if no cell can be launched, with the most frequent reason."""
        if self.plan.groups or not self.plan.unavailable or self.plan.shard:
            return
        reasons = Counter(entry.reason for entry in self.plan.unavailable)
        first = next(entry for entry in self.plan.unavailable if entry.reason == reasons.most_common(1)[0][0])
        count = len(self.plan.unavailable)
        cells = f"none of the {count} cells is available" if count > 1 else "the cell is not available"
        message = f"Nothing can be measured: {cells}. {first.cell}: {first.reason.rstrip('.')}."
        if self.cards:
            models = joined(list(dict.fromkeys(card.name for card in self.cards)))
            devices = set(self.plan.devices)
            able = [entry for entry in load_environments(self.project).values() if devices <= set(entry.devices)]
            runs = list_names_on(self.cards, self.gpu_host, able)
            message += f" Environments that run on {models}: {joined(runs)}." if runs else ""
        raise CannotRunHereError(message, first.advice)

    @property
    def aspects(self) -> dict[str, Any]:
        """The facts that all shards of the plan must have in common, by their names in messages."""
        kit = read_kit_files(self.project)
        return shards.list_aspects(
            self.plan,
            harness=__version__,
            reference=self.reference,
            sources={name: hash_files(find_files_of(scenario, kit)) for name, scenario in self.scenarios.items()},
            packages={name: requirement.lock.pins for name, requirement in self.requirements.items()},
        )

    def only(self, groups: Collection[str]) -> "Planned":
        """Return the plan with only these groups and their unavailable cells."""
        plan = self.plan
        left = [planned_group for planned_group in plan.groups if planned_group.name in groups]
        unavailable = [entry for entry in plan.unavailable if self.group_of(entry.cell) in groups]
        return replace(self, plan=replace(plan, groups=left, unavailable=unavailable))

    def with_one_control(self) -> "Planned":
        """Return the plan with an A/A control in only one of its groups."""
        groups = keep_one_control(self.plan.groups, self.scenarios)
        return replace(self, plan=replace(self.plan, groups=groups))

    def group_of(self, cell: Cell) -> str:
        """Return the name of a cell's group, or an empty text if only a claim uses the scenario."""
        return name_group(cell, self.scenarios[cell.scenario]) if cell.scenario in self.scenarios else ""

    @property
    def untrusted(self) -> list[str]:
        """The names of scenarios and environments with other people's code. Empty with --trust.

        These are scenarios from outside the project's folders and, unless a backend was requested, environments with a
        wheel from a source.
        """
        if self.request.trust:
            return []
        ours = self.project.scenario_folders
        scripts = [name for name, scenario in self.scenarios.items() if scenario.path.parent not in ours]
        wheels = [environment.name for environment in self.environments if environment.wheel]
        return [*scripts, *(wheels if self.request.backend == registry.AUTO else [])]


def plan(
    request: Request | ProfileRequest,
    lacking: Mapping[str, UnavailableError] | None = None,
    *,
    say: Callable[[str], object] | None = None,
    wait: bool = False,
) -> Planned:
    """Plan a run for this machine. This launches nothing, and only writes locks and wheels to the user's cache.

    Wheels of sources are built, with a message to `say`. With `wait`, a build waits for the end of another run.
    `lacking` are environments that turned out to be unavailable, with the reasons. They aren't used as fallbacks, and
    their cells are unavailable.

    Raises UsageError if the request is invalid, NothingSelectedError if it selects no cell, FileError if all selected
    scenarios have invalid files, and CannotRunHereError if this machine doesn't have a requested GPU.
    """
    host.require_linux()
    project = Project.find()
    devices, limits = _choose_limits(request)
    gpu_host = registry.find_gpu_host(request.backend, project.root) if limits.gpus else CPU_ALONE
    if limits.gpus and isinstance(request, Request) and request.on:
        gpu_host = GpuHost(absent="the launches run on other machines", is_here=False)
    limits = replace(limits, gpus=gpus.resolve_names(limits.gpus, gpu_host, typed=bool(request.gpus)))
    cards = gpus.select_gpus(limits.gpus, gpu_host)
    by_name, (*typed, named), impossible = _resolve_requested(project, request, say, wait=wait)
    scenarios, broken, chosen = _load_scenarios(project, request.scenarios)
    suites, findings = read_suites(project)
    findings.check()
    suite = request.suite or ("" if request.scenarios or request.claims else DEFAULT_SUITE)
    default = suites[DEFAULT_SUITE].environments if not suite and DEFAULT_SUITE in suites else ()
    selection = Selection(suite=suite, environments=typed or default, scenarios=chosen, axes=request.axes)
    catalog = Catalog(environments=list(by_name), scenarios=scenarios, suites=suites)
    selection, catalog, refused = _drop_invalid(selection, catalog, broken)
    catalog, limits = _add_axes(selection, catalog, limits, request, devices)
    device = devices[0]
    claimed, absent = _find_claims(request, selection, catalog), list[Unavailable]()
    if claimed:
        by_name, claimed, missing = _add_claimed(by_name, claimed)
        others = [claims.find_newest(by_name), *resolve(typed, list(by_name), ENVIRONMENT)]
        whole, absent = claims.make_suite(claimed, others, by_name, missing, device)
        selection = Selection(suite=whole.name, axes=request.axes)
        scenarios = {scenario.name: scenario for scenario, _ in claimed}
        catalog = Catalog(environments=list(by_name), scenarios=scenarios, suites={whole.name: whole})
    selected, environments = select(selection, catalog, device) if not claimed or whole.parts else ([], others)
    # a requested environment is measured or reported as unavailable; a suite replaces environments that can't run
    chosen_suite = None if typed else suites.get(suite or DEFAULT_SUITE)
    cells, taken = selected, list[StandIn]()
    # with both devices, each environment is compared with itself, so nothing replaces it on one of them
    if chosen_suite and chosen_suite.instead and len(devices) == 1 and (cards or not claimed):
        check_fallbacks(
            chosen_suite, resolve(chosen_suite.environments, list(by_name), ENVIRONMENT), list(by_name), findings
        )
        findings.check()
        taken = find_fallbacks(
            chosen_suite.instead,
            cells,
            catalog.scenarios,
            by_name,
            cache(lambda name: load_lock(project, by_name[name], device)),
            supply=_make_supply_check(request, project, claimed),
            cards=cards,
            host=gpu_host,
            absent={name: f"{error.message.splitlines()[0].rstrip(':.')}." for name, error in (lacking or {}).items()},
        )
        cells, environments = replace_cells(cells, taken), replace_environments(environments, taken)
        (named,) = replace_environments([named], taken)
    requirements = _load_locks(project, [by_name[name] for name in environments], devices, impossible, named)
    runnable, unavailable = split(
        [cell for cell in cells if cell.environment not in impossible],
        catalog.scenarios,
        requirements,
        by_name,
        cards=cards,
        host=gpu_host,
        anyway=_find_forced(request, typed, by_name, limits),
    )
    if len(devices) > 1 or (chosen_suite and limits.gpus and isinstance(request, Request) and not claimed):
        runnable, lone = _drop_lone_cells(runnable, selected, catalog.scenarios)
        unavailable += lone
    reference = _choose_reference(named, environments, runnable)
    new_plan = Plan(
        groups=group(runnable, catalog.scenarios, reference),
        rounds=0,
        seed=int.from_bytes(os.urandom(4)) if request.seed is None else request.seed,
        sampling=Sampling(),
        limits=limits,
        unavailable=[*unavailable, *_list_without_wheels(cells, impossible), *absent],
        stand_ins=taken,
        compiled=list_compiled(
            (by_name[name] for name in {cell.environment: None for cell in runnable if cell.device is Device.GPU}),
            cards,
            gpu_host,
        ),
    )
    if isinstance(request, Request):
        new_plan = _add_lengths(new_plan, request, suites.get(suite), claimed)
        new_plan = replace(
            new_plan,
            groups=[
                _drop_useless_pilot(_fit_to_claims(planned_group, claimed, new_plan), new_plan)
                for planned_group in new_plan.groups
            ],
        )
    else:  # a profile: every cell once, without rounds
        new_plan = replace(
            new_plan,
            groups=[replace(planned_group, control=None) for planned_group in new_plan.groups],
            profile_calls=request.calls,
        )
    planned = drop_environments(
        Planned(
            request=request,
            suite=suite,
            project=project,
            plan=new_plan,
            environments=[by_name[name] for name in environments],
            requirements=requirements,
            scenarios={cell.scenario: catalog.scenarios[cell.scenario] for cell in cells},
            reference=reference,
            gpu_host=gpu_host,
            cards=cards,
            refused=refused,
        ),
        lacking or {},
    )
    return _select_part(planned, request) if isinstance(request, Request) else planned


def _find_forced(
    request: Request | ProfileRequest, typed: Sequence[str], catalog: Mapping[str, Environment], limits: Limits
) -> list[str]:
    """Return the requested environments that are launched even if the GPU can't run them. Raises UsageError."""
    if not isinstance(request, Request) or not request.try_anyway:
        return []
    if not limits.gpus or not typed:
        raise UsageError(
            "--try-anyway launches requested environments on a GPU, but this run has "
            f"{'no requested environments' if limits.gpus else 'no GPU'}.",
            "Add -e with the environments." if limits.gpus else "Add --gpu, or omit --try-anyway.",
        )
    return resolve(typed, list(catalog), ENVIRONMENT)


def _drop_lone_cells(
    cells: Sequence[Cell], selected: Sequence[Cell], scenarios: Mapping[str, Scenario]
) -> tuple[list[Cell], list[Unavailable]]:
    """Return the cells that can be compared with another cell, and the others as unavailable cells."""
    lone = find_lone_cells(cells, selected, scenarios)
    advice = "To measure this cell alone, pass -e {} -s {}{}."
    return [cell for cell in cells if cell not in lone], [
        Unavailable(
            cell,
            _LONE,
            advice.format(cell.environment, cell.scenario, f" --device {cell.device}" * (DEVICE in cell.axes)),
        )
        for cell in lone
    ]


def _make_supply_check(
    request: LaunchRequest, project: Project, claimed: Sequence[claims.ScenarioClaim]
) -> Callable[[Requirement], Supply]:
    """Return a function that checks whether this machine has the interpreter of an environment.

    With claims or shards, it doesn't check: claims name their environments, and all shards need the same ones.
    """
    is_divided = isinstance(request, Request) and (
        request.on or request.spread or request.shard or request.slots not in ("", "1")
    )
    if claimed or is_divided:
        return lambda requirement: Supply.HERE
    return registry.choose_backend(request.backend, project.root).supply


def _resolve_requested(
    project: Project, request: LaunchRequest, say: Callable[[str], object] | None, *, wait: bool
) -> tuple[dict[str, Environment], list[str], dict[str, HarnessError]]:
    """Return the catalog with the requested environments, their names, and errors of release lines without a wheel.

    The last name is the baseline's, or empty.
    """
    impossible: dict[str, HarnessError] = {}
    selection = sources.resolve_requested(
        project,
        load_environments(project),
        [*request.environments, request.reference],
        impossible,
        backend=request.backend,
        repository=request.repository,
        say=say,
        lock=lambda: hold_machine(say if wait else None),
    )
    return *selection, impossible


def _list_without_wheels(cells: Sequence[Cell], impossible: Mapping[str, HarnessError]) -> list[Unavailable]:
    """Return the cells of release lines that have no usable wheel, with the reasons."""
    lost = [(cell, impossible[cell.environment]) for cell in cells if cell.environment in impossible]
    return [Unavailable(cell, " ".join(error.message.split()), error.advice) for cell, error in lost]


def _load_locks(
    project: Project,
    environments: Sequence[Environment],
    devices: Collection[Device],
    impossible: dict[str, HarnessError],
    reference: str,
) -> dict[str, Requirement]:
    """Return the environments with their locks on each device that they support, by name.

    Errors of release lines are added to `impossible`. Such an error is raised if its line is the baseline (by default,
    the first environment), or if all environments are impossible.
    """
    requirements: dict[str, Requirement] = {}
    for environment in environments:
        if environment.name in impossible:
            continue
        try:
            requirements |= load_locks(project, environment, devices)
        except (UsageError, UnavailableError) as error:
            if not environment.line:
                raise
            impossible[environment.name] = error
    first = reference or environments[0].name
    if first in impossible:
        raise impossible[first]
    if impossible and impossible.keys() >= {entry.name for entry in environments}:
        raise impossible[environments[0].name]
    return requirements


def _select_part(planned: Planned, request: Request) -> Planned:
    """Return the part of a plan that this machine measures, with one A/A control.

    If shards run in slots of one machine, only one shard has the control. The machines of a cluster get `--slots auto`
    (fleet/ray.py), so each of their shards has a control. In a plan for other machines, each group has a control.
    """
    if request.slots.isdecimal():
        planned = planned.with_one_control()
    part = _select_shard(planned, request, request.shard) if request.shard else planned
    return part if request.on or request.slots.isdecimal() else part.with_one_control()


def drop_environments(planned: Planned, missing: Mapping[str, UnavailableError]) -> Planned:
    """Return the plan without environments that couldn't be prepared. Their cells are unavailable, with the reasons."""
    plan = planned.plan
    names = {cell: name_on(cell.environment, cell.device, planned.requirements) for cell in plan.cells}
    gone = {cell: missing[name] for cell, name in names.items() if name in missing}
    if not gone:
        return planned
    unavailable = [Unavailable(cell=cell, reason=error.message, advice=error.advice) for cell, error in gone.items()]
    groups = []
    for planned_group in plan.groups:
        cells = [cell for cell in planned_group.cells if cell not in gone]
        again = find_control(cells, planned.reference) if planned_group.control else None
        groups += [replace(planned_group, cells=cells, control=again)] if cells else []
    left = replace(planned, plan=replace(plan, groups=groups, unavailable=[*plan.unavailable, *unavailable]))
    was_one = sum(planned_group.controlled for planned_group in plan.groups if planned_group.control) == 1
    return left.with_one_control() if was_one else left


def replace_fallbacks(planned: Planned, lacking: Mapping[str, UnavailableError]) -> Planned | None:
    """Return the plan with the next fallback environments instead of unavailable ones; None if none are left."""
    lost = {fallback.role for fallback in planned.plan.stand_ins if fallback.environment in lacking}
    if not lost:
        return None
    again = plan(replace(planned.request, seed=planned.plan.seed), lacking)  # type: ignore[arg-type]
    roles = {fallback.role for fallback in again.plan.stand_ins}
    return replace(again, request=planned.request) if lost & roles else None


def _select_shard(planned: Planned, request: Request, shard: Shard) -> Planned:
    """Return the requested shard of a plan. If this machine can't run any cell of a group, every shard reports that.

    Without --seed, all shards have the same seed, which is a hash of the plan.
    """
    if request.on or request.spread:
        raise UsageError("--on and --spread divide a run into shards themselves.", "Omit --shard.")
    plan, aspects = planned.plan, planned.aspects
    cells = [cell for cell in (*plan.cells, *(entry.cell for entry in plan.unavailable)) if planned.group_of(cell)]
    whole = shards.cells_of(group(cells, planned.scenarios, planned.reference))
    if request.seed is None:
        plan = replace(plan, seed=int(shards.plan_digest(aspects, whole, without="the seed")[:8], 16))
        planned = replace(planned, plan=plan)
        aspects = planned.aspects
    names = [planned_group.name for planned_group in plan.groups]
    if request.balance == EVENLY:  # all groups count, because other machines may be able to run other groups
        places = shards.balance_shards({name: len(members) for name, members in whole.items()}, shard.of)
        places = {name: places[name] for name in names}
    elif request.balance:
        places = shards.balance_shards(_read_round_seconds(request.balance, plan.groups), shard.of)
    else:
        places = shards.assign_shards(names, shard.of)
    part = planned.only([name for name in whole if places.get(name, shard.number) == shard.number])
    own_shard = shards.shard(plan, shard.number, shard.of, places, shards.plan_digest(aspects, whole))
    return replace(part, plan=replace(part.plan, shard=own_shard))


def _read_round_seconds(path: Path, groups: Sequence[Group]) -> dict[str, float | None]:
    """Return the seconds that a round of each group takes, from the run in a folder; None if the run has no such group.

    Raises UsageError if none of the groups is in the run.
    """
    with pause_garbage_collection():
        folder = RunFolder.open(path)
        launches = folder.read_launches(folder.read_run())
    seconds = defaultdict(list)
    for launch in launches:
        if launch.status is Status.OK and launch.role is not Role.PILOT:
            seconds[launch.cell].append(launch.seconds)
    usual = {cell: statistics.median(times) for cell, times in seconds.items()}

    def average_round(planned_group: Group) -> float | None:
        times = [usual[cell] for cell, _ in planned_group.slots if cell in usual]
        # assume that a cell without a result takes as long as the other cells of its group
        return statistics.fmean(times) * len(planned_group.slots) if times else None

    by_name = {planned_group.name: average_round(planned_group) for planned_group in groups}
    if groups and not any(by_name.values()):
        raise UsageError(
            f"--balance {path}: the run has no launches of this plan's groups.", "Omit --balance, or pass another run."
        )
    return by_name


def _add_lengths(plan: Plan, request: Request, suite: Suite | None, claimed: Sequence[claims.ScenarioClaim]) -> Plan:
    """Return the plan with its rounds, lengths and precision, from the request, or otherwise from the suite.

    Pilots determine lengths that are still open. If the request limits rounds, precision or budget, the limits of the
    suite don't apply.
    """
    ends = suite if not (request.rounds or request.precision or request.budget) else None

    def get_length(key: SuiteLength, source: Suite | None = suite) -> float | None:
        value: float | None = getattr(request, key)
        return read_suite_seconds(source, key) if value is None and source else value

    if request.clock is Clock.CPU and plan.limits.gpus:
        raise UsageError(
            "--clock cpu measures CPU time only, without the work of a GPU.",
            "Omit --clock cpu, or measure on the CPU alone.",
        )
    if request.lock_clocks and not plan.limits.gpus:
        raise UsageError("--lock-clocks needs a GPU.", "Add --gpu, or omit --lock-clocks.")
    budget, measure = get_length("budget", ends), get_length("measure")
    interleave = _choose_interleaving(request, plan.limits)
    sampling = Sampling(protocol=request.sampling, warmup_seconds=get_length("warmup"), measure_seconds=measure)
    sampling = sampling.sampled(in_turns=interleave is Interleave.TURNS)
    usual = MOST_CLAIM_ROUNDS if claimed else MOST_ROUNDS if request.precision or budget else ROUNDS
    return replace(
        plan,
        rounds=request.rounds or (ends.rounds if ends else None) or usual,
        sampling=sampling,
        precision=request.precision,
        budget_seconds=budget,
        budget_is_wish=budget is not None and (request.budget is None or request.budget_is_wish),
        margin=request.margin,
        clock=request.clock,
        interleave=interleave,
        lock_clocks=request.lock_clocks,
        claims=list(dict.fromkeys(str(claim.issue) for _, claim in claimed)),
    )


def _drop_useless_pilot(planned_group: Group, plan: Plan) -> Group:
    """Return the group, without a pilot if the pilot would be useless.

    A pilot is useless before a single round with given lengths. But if a phase is compared, the pilot is useful,
    because it reads the files from disk first.
    """
    is_brief = plan.rounds == 1 and not plan.sampling.is_open and set(planned_group.of) <= set(UNPILOTED)
    return replace(planned_group, piloted=planned_group.piloted and not is_brief)


def _fit_to_claims(planned_group: Group, claimed: Sequence[claims.ScenarioClaim], plan: Plan) -> Group:
    """Return the group without a control and a pilot if its claims don't need them.

    The control isn't needed if no claim needs a narrow interval and no claim is about memory growth. The pilot isn't
    needed if lengths are given and no claim is about a phase. A group without claims stays the same.
    """
    environments = {cell.environment for cell in planned_group.cells}
    own = [
        claim
        for scenario, claim in claimed
        if not set(claims.list_cells((scenario, claim), environments, Device(planned_group.device))).isdisjoint(
            planned_group.cells
        )
    ]
    if not own:
        return planned_group
    is_wide = all(claim.needed(plan.margin) >= CONTROL_BELOW and claim.of != GROWTH for claim in own)
    piloted = plan.sampling.is_open or any(claim.of not in UNPILOTED for claim in own)
    quantities = dict.fromkeys([*planned_group.of, *(claim.of for claim in own if is_of_launches(claim.of))])
    return replace(
        planned_group, control=None if is_wide else planned_group.control, piloted=piloted, of=list(quantities)
    )


def _choose_interleaving(request: Request, limits: Limits) -> Interleave:
    """Return whether the cells of a round are interleaved: as requested, or if it is possible. Raises UsageError."""
    count = len(limits.cpus) if limits.cpus is not None else len(os.sched_getaffinity(0))
    if limits.gpus:
        why, leave = "this run is on a GPU", "--device" if request.device else "--gpu"
    elif request.sampling is not Protocol.TIME:
        why, leave = "the source document's iterations are measured without a break", f"--sampling {request.sampling}"
    elif count > 1:
        why, leave = f"launches have up to {count} cores", f"--cpus {request.cpus}" if request.cpus else "-a cpus"
    else:
        return request.interleave or Interleave.TURNS
    if request.interleave is Interleave.TURNS:
        raise UsageError(
            f"--interleave turns: interleaving needs launches on one CPU core, but {why}.",
            f"Omit {leave}, or use --interleave launches.",
        )
    return Interleave.LAUNCHES


def _find_claims(request: LaunchRequest, selection: Selection, catalog: Catalog) -> list[claims.ScenarioClaim]:
    """Return the requested claims of the selected scenarios. Raises UsageError."""
    if request.claims and request.suite:
        raise UsageError("--claim and --suite can't be combined: both select cells.", "Use one of them.")
    names = resolve(selection.scenarios or ["*"], list(catalog.scenarios), "scenario") if request.claims else []
    return claims.find_claims(request.claims, [catalog.scenarios[name] for name in names])


def _add_claimed(
    catalog: Mapping[str, Environment], claimed: Sequence[claims.ScenarioClaim]
) -> tuple[dict[str, Environment], list[claims.ScenarioClaim], dict[str, HarnessError]]:
    """Return the catalog with the environments that claims require, the claims with their names, and errors.

    The errors are about environments that couldn't be created. The other claims are still measured.
    """
    environments, missing = dict(catalog), dict[str, HarnessError]()
    names: dict[str, str] = {}
    sides = [side for _, claim in claimed for side in (claim.worse, claim.better) if side]
    for text in dict.fromkeys(side.environment for side in sides):
        names[text] = text
        try:
            environments, (names[text],) = add_requested(environments, [text])
        except (UsageError, CannotRunHereError) as error:
            missing[text] = error
    return environments, claims.rename_environments(claimed, names), missing


def _choose_reference(typed: str, environments: Sequence[str], runnable: Sequence[Cell]) -> str:
    """Return the requested baseline, otherwise the first environment in which some cell can run."""
    if typed and typed not in environments:
        raise UsageError(
            f"Unknown --reference {typed}: the environments of the run are {', '.join(environments)}.",
            "Use one of these.",
        )
    able = {cell.environment for cell in runnable}
    return typed or next((name for name in environments if name in able), environments[0])


def _choose_devices(request: LaunchRequest) -> list[Device]:
    """Return the devices of the cells, the baseline first. Raises UsageError for options that contradict each other."""
    if DEVICE in request.axes:
        raise UsageError("`device` isn't an axis for -a.", "To compare the GPU with the CPU, pass --device cpu,gpu.")
    of_gpus = {"--gpus": request.gpus, "--gpu-via": request.gpu_via}
    others = [name for name, value in of_gpus.items() if value]
    devices = list(request.device) if isinstance(request, Request) else []
    if not devices:
        return [Device.GPU if request.gpu or others else Device.CPU]
    typed = f"--device {','.join(devices)}"
    if request.gpu:
        raise UsageError(f"--gpu and {typed} can't be combined: both select devices.", "Omit --gpu.")
    if others and Device.GPU not in devices:
        raise UsageError(f"{others[0]} selects a GPU, but {typed} measures without one.", f"Omit {others[0]}.")
    if request.claims and len(devices) > 1:
        raise UsageError(f"--claim and {typed} can't be combined: a claim is about one device.", "Use one device.")
    return devices


def _choose_limits(request: LaunchRequest) -> tuple[list[Device], Limits]:
    """Return the devices of the cells, and the limits of launches. Raises UsageError."""
    devices = _choose_devices(request)
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpu_names = gpus.parse_requested(Device.GPU in devices, request.gpus)
    if isinstance(request, Request) and request.slots.isdecimal() and not (request.on or gpu_names):
        divide_machine(int(request.slots), os.sched_getaffinity(0))  # too many slots are an error in a dry run too
    # with one core, a GPU could wait for the CPU work of each step, so use all cores by default
    cores = request.cpus or ("all" if gpu_names or not cpus.can_pin() else "1")
    return devices, Limits(
        cpus=cpus.choose(cores, os.sched_getaffinity(0)),
        memory_bytes=request.memory or installed * 4 // 5,
        seconds=request.timeout or TIMEOUT,
        gpus=gpu_names,
        first_start_seconds=FIRST_START_TIMEOUT if gpu_names and not request.timeout else 0.0,
    )


def _add_axes(
    selection: Selection, catalog: Catalog, limits: Limits, request: LaunchRequest, devices: Sequence[Device]
) -> tuple[Catalog, Limits]:
    """Return the catalog with the settings and free axes of the selection, and limits with CPUs for these axes.

    Several `devices` are an axis too.
    """
    axes = {**selection.axes, DEVICE: [device.value for device in devices]} if len(devices) > 1 else selection.axes
    catalog = settings.add_setting_axes(replace(selection, axes=axes), catalog)
    return catalog, add_cores(limits, request, catalog.scenarios.values(), os.sched_getaffinity(0))


def add_cores(limits: Limits, request: LaunchRequest, scenarios: Iterable[Scenario], pool: Collection[int]) -> Limits:
    """Return the limits with CPUs for the largest number of cores on the axis CPUS, if a scenario has this axis.

    The CPUs are chosen from --cpus, or otherwise from `pool`. Raises UsageError if these are too few.
    """
    counts = [int(count) for scenario in scenarios if CPUS in scenario.settings for count in scenario.axes[CPUS]]
    if not counts:
        return limits
    return replace(limits, cpus=cpus.choose_most(counts, limits.cpus if request.cpus and limits.cpus else pool))


def _load_scenarios(
    project: Project, typed: Sequence[str]
) -> tuple[dict[str, Scenario], dict[str, FileError], list[str]]:
    """Return the scenarios of the project and of the given files, and the errors of invalid ones, by name.

    The last value has the given names and globs, in which files are replaced by the names of their scenarios.
    """
    listing = find_scenarios(project, typed)
    scenarios, broken, chosen = dict(listing.scenarios), dict(listing.broken), []
    paths = {path.stem: path.resolve() for path in find_scenario_files(project)}
    for text in typed:
        if not text.endswith(".py"):
            chosen.append(text)
            continue
        path = Path(text).resolve()
        existing = paths.setdefault(path.stem, path)
        if existing != path:
            raise UsageError(f"{text} has the name of the scenario {existing}.", "Rename the file.")
        chosen.append(path.stem)
        if path.stem not in scenarios and path.stem not in broken:
            try:
                scenarios[path.stem] = load_scenario(path)
            except FileError as error:
                broken[path.stem] = error
    return scenarios, broken, chosen


def _drop_invalid(
    selection: Selection, catalog: Catalog, broken: Mapping[str, FileError]
) -> tuple[Selection, Catalog, dict[str, FileError]]:
    """Return the selection and the catalog without invalid scenarios, and the errors of these scenarios.

    Raises FileError if all selected scenarios are invalid.
    """
    selection, catalog, chosen = remove_broken(selection, catalog, broken)
    refused = {name: broken[name] for name in chosen if name in broken}
    if refused and len(refused) == len(chosen):
        raise FileError(problem for error in refused.values() for problem in error.problems)
    return selection, catalog, refused
