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
from harness.environments.adhoc import add_requested
from harness.environments.catalog import load_environments
from harness.environments.locks import describe_overrides, load_lock, load_locks
from harness.environments.requested import parse_requested
from harness.files import hash_files
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
from harness.plan.availability import TRIED, assess_on_gpus, list_compiled, list_names_on, split
from harness.plan.fallbacks import find_fallbacks, replace_cells, replace_environments
from harness.plan.gpus import Support, find_first_starts, find_lazy_starts
from harness.plan.groups import find_control, find_lone_cells, group, is_of_launches, keep_one_control, name_group
from harness.plan.selection import Catalog, Selection, check_fallbacks, remove_broken, resolve, select
from harness.project import Project
from harness.scenarios.catalog import (
    find_files_of,
    find_scenario_files,
    find_scenarios,
    load_scenario,
    read_kit_files,
    read_suites,
)
from harness.session import sources, trust
from harness.session.request import (
    EVENLY,
    LaunchRequest,
    ProfileRequest,
    Request,
    SuiteLength,
    format_seconds,
    read_suite_seconds,
)
from harness.store.folder import RunFolder, pause_garbage_collection

#: Quantities that need no pilot if lengths are given, because pilots would be half of the launches of a small run.
#: Other quantities, such as the import time, need a pilot, because the pilot reads the files from disk into memory.
UNPILOTED = (STEP, PEAK, GROWTH, TRACES)

#: The reason why a cell isn't launched if no cell to compare it with can run on the GPU.
_LONE_REASON = "no other cell of its comparison can run here, so there is nothing to compare it with"

#: If the claims of a group need no narrower interval than this, on the log scale, the group has no A/A control.
CONTROL_BELOW = math.log1p(0.10)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the inputs from which it was created.

    - `request`: the options; `suite`: the name of the suite, or an empty text if scenarios or issues are named
    - `plan`: groups of cells, rounds and limits. `plan.unavailable` has the cells that can't be measured, with reasons
    - `environments`: the selected environments; `requirements`: their packages on each device of the run, by name
    - `scenarios`: the selected scenarios by name; `refused`: scenarios with invalid files, which aren't measured
    - `reference`: the name of the baseline environment
    - `cards`: the GPUs of each launch; `gpu_host`: facts about the machine that has the GPUs
    - `packages`: the kinds of environments with a package from a source, by name
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
    packages: Mapping[str, trust.Kind]

    @property
    def cells(self) -> list[Cell]:
        """All cells that will be launched."""
        return self.plan.cells

    @property
    def needed(self) -> list[Requirement]:
        """The environments that at least one cell needs. Other environments aren't built."""
        used_names = {name_on(cell.environment, cell.device, self.requirements) for cell in self.plan.cells}
        return [requirement for name, requirement in self.requirements.items() if name in used_names]

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

        names_at_start, lazy = joined(find_first_starts(self.plan)), joined(find_lazy_starts(self.plan))
        partly_compiled = join_names(Support.PARTLY)
        unread_names, older_cuda = join_names(Support.UNREAD), join_names(Support.OLDER)
        return [
            *(
                [f"The driver compiles the kernels of {lazy} when they are first needed. This takes minutes in total."]
                if lazy
                else []
            ),
            *(
                [f"The driver compiles {names_at_start} at the first start. This takes 30 minutes or longer."]
                if names_at_start
                else []
            ),
            *(
                [f"The driver compiles some kernels of {partly_compiled} when they are first needed."]
                if partly_compiled
                else []
            ),
            *([f"CUDA in the image of {older_cuda} is older than the GPU, so cuDNN may fail."] if older_cuda else []),
            *(
                [
                    f"The launches show whether {unread_names} runs on the GPU: its GPU code isn't known. `harness "
                    "images verify --device gpu` reads the code in an image."
                ]
                if unread_names
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
        example = next(entry for entry in self.plan.unavailable if entry.reason == reasons.most_common(1)[0][0])
        count = len(self.plan.unavailable)
        cells = f"none of the {count} cells is available" if count > 1 else "the cell is not available"
        message = f"Nothing can be measured: {cells}. {example.cell}: {example.reason.rstrip('.')}."
        if self.cards:
            models = joined(list(dict.fromkeys(card.name for card in self.cards)))
            devices = set(self.plan.devices)
            candidates = [entry for entry in load_environments(self.project).values() if devices <= set(entry.devices)]
            usable_names = list_names_on(self.cards, self.gpu_host, candidates)
            message += f" Environments that run on {models}: {joined(usable_names)}." if usable_names else ""
        raise CannotRunHereError(message, example.advice)

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
        kept_groups = [planned_group for planned_group in plan.groups if planned_group.name in groups]
        unavailable = [entry for entry in plan.unavailable if self.group_of(entry.cell) in groups]
        return replace(self, plan=replace(plan, groups=kept_groups, unavailable=unavailable))

    def with_one_control(self) -> "Planned":
        """Return the plan with an A/A control in only one of its groups."""
        groups = keep_one_control(self.plan.groups, self.scenarios)
        return replace(self, plan=replace(self.plan, groups=groups))

    def group_of(self, cell: Cell) -> str:
        """Return the name of a cell's group, or an empty text if only a claim uses the scenario."""
        return name_group(cell, self.scenarios[cell.scenario]) if cell.scenario in self.scenarios else ""

    @property
    def untrusted(self) -> dict[str, str]:
        """Other people's scenarios and packages, with descriptions. Empty with --trust."""
        return {} if self.request.trust else trust.find_untrusted(self._kinds)

    def describe_rights(self, backend: str) -> str:
        """Describe which code from outside the project runs without a container, if the backend has no containers."""
        names = [name for name, kind in self._kinds.items() if kind is not trust.Kind.PROJECT]
        if not names or registry.is_contained(backend):
            return ""
        return f"{joined(names)} {'run' if len(names) > 1 else 'runs'} without a container, with your rights."

    @property
    def _kinds(self) -> dict[str, trust.Kind]:
        environments = {environment.name for environment in self.environments}
        packages = {name: kind for name, kind in self.packages.items() if name in environments}
        return trust.list_scenarios(self.scenarios.values(), self.project) | packages


def plan(
    request: Request | ProfileRequest,
    lacking: Mapping[str, UnavailableError] | None = None,
    *,
    say: Callable[[str], object] | None = None,
    wait: bool = False,
    builds: bool = True,
) -> Planned:
    """Plan a run for this machine. This launches nothing, and only writes locks and wheels to the user's cache.

    Wheels of sources are built, with a message to `say`. With `wait`, a build waits for the end of another run. Without
    `builds`, nothing is built: `say` gets a message about each missing wheel, and its environment has the packages of
    its base. Such a plan can't be run.
    `lacking` contains environments that turned out to be unavailable, with the reasons. They aren't used as fallbacks,
    and their cells are unavailable.

    Raises UsageError if the request is invalid, NothingSelectedError if it selects no cell, FileError if all selected
    scenarios have invalid files, UntrustedError if a build needs --trust, and CannotRunHereError if this machine
    doesn't have a requested GPU.
    """
    host.require_linux()
    project = Project.find()
    devices, limits = _choose_limits(request)
    gpu_host = registry.find_gpu_host(request.backend, project.root) if limits.gpus else CPU_ALONE
    if limits.gpus and isinstance(request, Request) and request.on:
        gpu_host = GpuHost(absent="the launches run on other machines", is_here=False)
    limits = replace(limits, gpus=gpus.resolve_names(limits.gpus, gpu_host, typed=bool(request.gpus)))
    cards = gpus.select_gpus(limits.gpus, gpu_host)
    requested = _resolve_requested(project, request, say, wait=wait, builds=builds)
    by_name, line_errors, (*requested_names, baseline) = requested.environments, requested.errors, requested.names
    scenarios, scenario_errors, scenario_names = _load_scenarios(project, request.scenarios)
    suites, findings = read_suites(project)
    findings.check()
    suite = request.suite or ("" if request.scenarios or request.claims else DEFAULT_SUITE)
    selection = Selection(
        suite=suite,
        environments=requested_names or _list_default_environments(suite, suites),
        scenarios=scenario_names,
        axes=request.axes,
    )
    catalog = Catalog(environments=list(by_name), scenarios=scenarios, suites=suites)
    selection, catalog, refused_scenarios = _drop_invalid(selection, catalog, scenario_errors)
    catalog, limits = _add_axes(selection, catalog, limits, request, devices)
    device = devices[0]
    scenario_claims, unavailable_claims = _find_claims(request, selection, catalog), list[Unavailable]()
    if scenario_claims:
        by_name, scenario_claims, claim_errors = _add_claimed_environments(by_name, scenario_claims)
        other_names = [claims.find_newest(by_name), *resolve(requested_names, list(by_name), ENVIRONMENT)]
        claim_suite, unavailable_claims = claims.make_suite(scenario_claims, other_names, by_name, claim_errors, device)
        selection = Selection(suite=claim_suite.name, axes=request.axes)
        scenarios = {scenario.name: scenario for scenario, _ in scenario_claims}
        catalog = Catalog(environments=list(by_name), scenarios=scenarios, suites={claim_suite.name: claim_suite})
    selected_cells, environments = (
        select(selection, catalog, device) if not scenario_claims or claim_suite.parts else ([], other_names)
    )
    # a requested environment is measured or reported as unavailable; a suite replaces environments that can't run
    chosen_suite = None if requested_names else suites.get(suite or DEFAULT_SUITE)
    cells, fallbacks = selected_cells, list[StandIn]()
    # with both devices, each environment is compared with itself, so nothing replaces it on one of them
    if chosen_suite and chosen_suite.instead and len(devices) == 1 and (cards or not scenario_claims):
        check_fallbacks(
            chosen_suite, resolve(chosen_suite.environments, list(by_name), ENVIRONMENT), list(by_name), findings
        )
        findings.check()
        fallbacks = find_fallbacks(
            chosen_suite.instead,
            cells,
            catalog.scenarios,
            by_name,
            cache(lambda name: load_lock(project, by_name[name], device)),
            supply=_make_supply_check(request, project, scenario_claims),
            cards=cards,
            host=gpu_host,
            absent={name: f"{error.message.splitlines()[0].rstrip(':.')}." for name, error in (lacking or {}).items()},
        )
        cells, environments = replace_cells(cells, fallbacks), replace_environments(environments, fallbacks)
        (baseline,) = replace_environments([baseline], fallbacks)
    requirements = _load_locks(project, requested, [by_name[name] for name in environments], devices, baseline)
    runnable_cells, unavailable = split(
        [cell for cell in cells if cell.environment not in line_errors],
        catalog.scenarios,
        requirements,
        by_name,
        cards=cards,
        host=gpu_host,
        anyway=_find_forced_environments(request, requested_names, by_name, limits),
    )
    if _omits_lone_cells(request, devices):
        runnable_cells, lone_cells = _drop_lone_cells(runnable_cells, selected_cells, catalog.scenarios)
        unavailable += lone_cells
    reference = _choose_reference(baseline, environments, runnable_cells)
    new_plan = Plan(
        groups=group(runnable_cells, catalog.scenarios, reference),
        rounds=0,
        seed=int.from_bytes(os.urandom(4)) if request.seed is None else request.seed,
        sampling=Sampling(),
        limits=limits,
        unavailable=[*unavailable, *_list_cells_without_wheels(cells, line_errors), *unavailable_claims],
        stand_ins=fallbacks,
        compiled=list_compiled(
            (
                by_name[name]
                for name in {cell.environment: None for cell in runnable_cells if cell.device is Device.GPU}
            ),
            cards,
            gpu_host,
        ),
    )
    if isinstance(request, Request):
        new_plan = _add_lengths(new_plan, request, suites.get(suite), scenario_claims)
        new_plan = replace(
            new_plan,
            groups=[
                _drop_useless_pilot(_fit_to_claims(planned_group, scenario_claims, new_plan), new_plan)
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
            refused=refused_scenarios,
            packages=requested.packages,
        ),
        lacking or {},
    )
    return _select_part(planned, request) if isinstance(request, Request) else planned


def _list_default_environments(suite: str, suites: Mapping[str, Suite]) -> Sequence[str]:
    """Return the environments of scenarios that are measured without a suite."""
    return suites[DEFAULT_SUITE].environments if not suite and DEFAULT_SUITE in suites else ()


def _find_forced_environments(
    request: Request | ProfileRequest, names: Sequence[str], catalog: Mapping[str, Environment], limits: Limits
) -> list[str]:
    """Return the requested environments that are launched even if the GPU can't run them. Raises UsageError."""
    if not isinstance(request, Request) or not request.try_anyway:
        return []
    if not limits.gpus or not names:
        raise UsageError(
            f"--try-anyway needs -e and a GPU, but {'-e is missing' if limits.gpus else 'this run uses no GPU'}.",
            "Add -e with the environments." if limits.gpus else "Add --gpu, or omit --try-anyway.",
        )
    return resolve(names, list(catalog), ENVIRONMENT)


def _omits_lone_cells(request: LaunchRequest, devices: Sequence[Device]) -> bool:
    """Return whether cells without another cell to compare with aren't launched."""
    is_suite = isinstance(request, Request) and not (request.environments or request.claims)
    return len(devices) > 1 or (Device.GPU in devices and is_suite)


def _drop_lone_cells(
    cells: Sequence[Cell], selected_cells: Sequence[Cell], scenarios: Mapping[str, Scenario]
) -> tuple[list[Cell], list[Unavailable]]:
    """Return the cells that can be compared with another cell, and the other cells as unavailable."""
    lone_cells = find_lone_cells(cells, selected_cells, scenarios)
    advice = "To measure this cell alone, pass -e {} -s {}{}."
    return [cell for cell in cells if cell not in lone_cells], [
        Unavailable(
            cell,
            _LONE_REASON,
            advice.format(cell.environment, cell.scenario, f" --device {cell.device}" * (DEVICE in cell.axes)),
        )
        for cell in lone_cells
    ]


def _make_supply_check(
    request: LaunchRequest, project: Project, scenario_claims: Sequence[claims.ScenarioClaim]
) -> Callable[[Requirement], Supply]:
    """Return a function that checks whether this machine has the interpreter of an environment.

    With claims or shards, it doesn't check: claims name their environments, and all shards need the same ones.
    """
    is_divided = isinstance(request, Request) and (
        request.on or request.spread or request.shard or request.slots not in ("", "1")
    )
    if scenario_claims or is_divided:
        return lambda requirement: Supply.HERE
    return registry.choose_backend(request.backend, project.root).supply


def _list_cells_without_wheels(cells: Sequence[Cell], line_errors: Mapping[str, HarnessError]) -> list[Unavailable]:
    """Return the cells of release lines that have no usable wheel, with the reasons."""
    errors = [(cell, line_errors[cell.environment]) for cell in cells if cell.environment in line_errors]
    return [Unavailable(cell, " ".join(error.message.split()), error.advice) for cell, error in errors]


@dataclass(frozen=True, slots=True)
class _Requested:
    """The requested environments.

    - `environments`: the catalog with these environments; `names`: their names and globs. The last one is the baseline,
      or empty if no baseline was requested
    - `errors`: errors of release lines without a wheel, by environment name
    - `packages`: the kinds of environments with a package from a source; `unbuilt`: the bases of those without a wheel
    - `builds`: whether packages may be built
    """

    environments: dict[str, Environment]
    names: list[str]
    errors: dict[str, HarnessError]
    packages: Mapping[str, trust.Kind]
    unbuilt: Mapping[str, Environment]
    builds: bool


def _resolve_requested(
    project: Project, request: LaunchRequest, say: Callable[[str], object] | None, *, wait: bool, builds: bool
) -> _Requested:
    maker = sources.WheelMaker(
        project,
        request.backend,
        request.repository,
        is_trusted=request.trust,
        builds=builds,
        say=say,
        lock=lambda: hold_machine(say if wait else None),
    )
    requested, errors = (
        list(map(parse_requested, [*request.environments, request.reference])),
        dict[str, HarnessError](),
    )
    environments, names = maker.resolve(load_environments(project), requested, errors)
    packages = trust.classify_environments(requested, names, environments, project, request.repository)
    return _Requested(environments, names, errors, packages, maker.unbuilt, builds)


def _load_locks(
    project: Project,
    requested: _Requested,
    environments: Sequence[Environment],
    devices: Collection[Device],
    reference: str,
) -> dict[str, Requirement]:
    """Return the environments with their locks on each device that they support, by name.

    An environment whose wheel isn't built has the locks of its base. Errors of release lines are added to
    `requested.errors`. Such an error is raised if its line is the baseline (by default, the first environment), or if
    all environments are impossible.
    """
    line_errors = requested.errors
    requirements: dict[str, Requirement] = {}
    for environment in environments:
        if environment.name in line_errors:
            continue
        try:
            base = requested.unbuilt.get(environment.name)
            loaded = load_locks(project, base or environment, devices, builds=requested.builds)
            requirements |= sources.rename_requirements(loaded, environment) if base else loaded
        except (UsageError, UnavailableError) as error:
            if not environment.line:
                raise
            line_errors[environment.name] = error
    baseline = reference or environments[0].name
    if baseline in line_errors:
        raise line_errors[baseline]
    if line_errors and line_errors.keys() >= {entry.name for entry in environments}:
        raise line_errors[environments[0].name]
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
    """Return the plan without environments that couldn't be prepared. Their cells are unavailable, with the reasons.

    Cells that then have no other cell to compare with are unavailable too, if the plan omits such cells.
    """
    plan = planned.plan
    names = {cell: name_on(cell.environment, cell.device, planned.requirements) for cell in plan.cells}
    errors = {cell: missing[name] for cell, name in names.items() if name in missing}
    if not errors:
        return planned
    unavailable = [Unavailable(cell=cell, reason=error.message, advice=error.advice) for cell, error in errors.items()]
    remaining_cells = [cell for cell in plan.cells if cell not in errors]
    if _omits_lone_cells(planned.request, plan.devices):
        selected_cells = [*plan.cells, *(entry.cell for entry in plan.unavailable)]
        remaining_cells, lone_cells = _drop_lone_cells(remaining_cells, selected_cells, planned.scenarios)
        unavailable += lone_cells
    groups = []
    for planned_group in plan.groups:
        cells = [cell for cell in planned_group.cells if cell in remaining_cells]
        new_control = find_control(cells, planned.reference) if planned_group.control else None
        groups += [replace(planned_group, cells=cells, control=new_control)] if cells else []
    remaining_plan = replace(planned, plan=replace(plan, groups=groups, unavailable=[*plan.unavailable, *unavailable]))
    had_one_control = sum(planned_group.controlled for planned_group in plan.groups if planned_group.control) == 1
    return remaining_plan.with_one_control() if had_one_control else remaining_plan


def replace_fallbacks(planned: Planned, lacking: Mapping[str, UnavailableError]) -> Planned | None:
    """Return the plan with the next fallback environments instead of unavailable ones; None if none are left."""
    lost_roles = {fallback.role for fallback in planned.plan.stand_ins if fallback.environment in lacking}
    if not lost_roles:
        return None
    new_plan = plan(replace(planned.request, seed=planned.plan.seed), lacking)  # type: ignore[arg-type]
    roles = {fallback.role for fallback in new_plan.plan.stand_ins}
    return replace(new_plan, request=planned.request) if lost_roles & roles else None


def set_environments(
    planned: Planned, actual: Mapping[str, Environment]
) -> tuple[Planned, dict[str, UnavailableError]]:
    """Return the plan with these environments, by name, and errors for those that can't run on the GPUs.

    With --try-anyway, there are no errors.
    """
    cards, gpu_host, catalog = planned.cards, planned.gpu_host, load_environments(planned.project).values()
    fits = {name: assess_on_gpus(environment, catalog, cards, gpu_host) for name, environment in actual.items()}
    if isinstance(planned.request, Request) and planned.request.try_anyway:
        refused = {}
    else:
        refused = {name: gpu_fit for name, gpu_fit in fits.items() if gpu_fit.is_impossible}
    launched = [environment for name, environment in actual.items() if name not in refused]
    compiled = {name: support for name, support in planned.plan.compiled.items() if name not in actual}
    requirements = {
        name: replace(requirement, environment=actual.get(requirement.environment.name, requirement.environment))
        for name, requirement in planned.requirements.items()
    }
    errors = {
        name: UnavailableError(
            refused[requirement.environment.name].reason, refused[requirement.environment.name].advice
        )
        for name, requirement in requirements.items()
        if requirement.device is Device.GPU and requirement.environment.name in refused
    }
    new_planned = replace(
        planned,
        plan=replace(planned.plan, compiled=compiled | list_compiled(launched, cards, gpu_host)),
        environments=[actual.get(environment.name, environment) for environment in planned.environments],
        requirements=requirements,
    )
    return new_planned, errors


def _select_shard(planned: Planned, request: Request, shard: Shard) -> Planned:
    """Return the requested shard of a plan. If this machine can't run any cell of a group, every shard reports that.

    Without --seed, all shards have the same seed, which is a hash of the plan.
    """
    if request.on or request.spread:
        raise UsageError("--on and --spread divide a run into shards themselves.", "Omit --shard.")
    plan, aspects = planned.plan, planned.aspects
    cells = [cell for cell in (*plan.cells, *(entry.cell for entry in plan.unavailable)) if planned.group_of(cell)]
    whole = group(cells, planned.scenarios, planned.reference)
    all_groups = shards.cells_of(whole)
    if request.seed is None:
        plan = replace(plan, seed=int(shards.plan_digest(aspects, all_groups, without="the seed")[:8], 16))
        planned = replace(planned, plan=plan)
        aspects = planned.aspects
    names = [planned_group.name for planned_group in plan.groups]
    if request.balance == EVENLY:  # all groups count, because other machines may be able to run other groups
        sizes = {name: len(members) for name, members in all_groups.items()}
        # a claim's outcome depends on the number of claims of its scenario in the run, so in a run of claims, a shard
        # has all groups of a scenario if the shards stay balanced
        scenarios = {planned_group.name: planned_group.scenario for planned_group in whole} if plan.claims else {}
        shard_numbers = shards.balance_shards(sizes, shard.of, scenarios)
        shard_numbers = {name: shard_numbers[name] for name in names}
    elif request.balance:
        shard_numbers = shards.balance_shards(_read_round_seconds(request.balance, plan.groups), shard.of)
    else:
        shard_numbers = shards.assign_shards(names, shard.of)
    part = planned.only([name for name in all_groups if shard_numbers.get(name, shard.number) == shard.number])
    new_shard = shards.shard(plan, shard.number, shard.of, shard_numbers, shards.plan_digest(aspects, all_groups))
    return replace(part, plan=replace(part.plan, shard=new_shard))


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
    typical_seconds = {cell: statistics.median(times) for cell, times in seconds.items()}

    def average_round(planned_group: Group) -> float | None:
        times = [typical_seconds[cell] for cell, _ in planned_group.slots if cell in typical_seconds]
        # assume that a cell without a result takes as long as the other cells of its group
        return statistics.fmean(times) * len(planned_group.slots) if times else None

    by_name = {planned_group.name: average_round(planned_group) for planned_group in groups}
    if groups and not any(by_name.values()):
        raise UsageError(
            f"--balance {path}: the run has no launches of this plan's groups.", "Omit --balance, or pass another run."
        )
    return by_name


def _add_lengths(
    plan: Plan, request: Request, suite: Suite | None, scenario_claims: Sequence[claims.ScenarioClaim]
) -> Plan:
    """Return the plan with its rounds, lengths and precision, from the request, or otherwise from the suite.

    Pilots determine lengths that are still open. If the request limits rounds, precision or budget, the limits of the
    suite don't apply.
    """
    limiting_suite = suite if not (request.rounds or request.precision or request.budget) else None

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
    budget, measure = get_length("budget", limiting_suite), get_length("measure")
    interleave = _choose_interleaving(request, plan.limits)
    sampling = Sampling(protocol=request.sampling, warmup_seconds=get_length("warmup"), measure_seconds=measure)
    length = (sampling.warmup_seconds or 0.0) + (measure or 0.0)
    if request.timeout and request.timeout <= length:
        raise UsageError(
            f"--timeout {format_seconds(request.timeout)} isn't longer than the warm-up and measurement of a launch "
            f"({format_seconds(length)}).",
            "Pass a longer --timeout, or a shorter --warmup or --measure.",
        )
    sampling = sampling.sampled(in_turns=interleave is Interleave.TURNS)
    default_rounds = MOST_CLAIM_ROUNDS if scenario_claims else MOST_ROUNDS if request.precision or budget else ROUNDS
    return replace(
        plan,
        rounds=request.rounds or (limiting_suite.rounds if limiting_suite else None) or default_rounds,
        sampling=sampling,
        precision=request.precision,
        budget_seconds=budget,
        budget_is_wish=budget is not None and (request.budget is None or request.budget_is_wish),
        margin=request.margin,
        clock=request.clock,
        interleave=interleave,
        lock_clocks=request.lock_clocks,
        claims=list(dict.fromkeys(str(claim.issue) for _, claim in scenario_claims)),
    )


def _drop_useless_pilot(planned_group: Group, plan: Plan) -> Group:
    """Return the group, without a pilot if the pilot would be useless.

    A pilot is useless before a single round with given lengths. But if a phase is compared, the pilot is useful,
    because it reads the files from disk first.
    """
    is_brief = plan.rounds == 1 and not plan.sampling.is_open and set(planned_group.of) <= set(UNPILOTED)
    return replace(planned_group, piloted=planned_group.piloted and not is_brief)


def _fit_to_claims(planned_group: Group, scenario_claims: Sequence[claims.ScenarioClaim], plan: Plan) -> Group:
    """Return the group without a control and a pilot if its claims don't need them.

    The control isn't needed if no claim needs a narrow interval and no claim is about memory growth. The pilot isn't
    needed if lengths are given and no claim is about a phase. A group without claims stays the same.
    """
    environments = {cell.environment for cell in planned_group.cells}
    own_claims = [
        claim
        for scenario, claim in scenario_claims
        if not set(claims.list_cells((scenario, claim), environments, Device(planned_group.device))).isdisjoint(
            planned_group.cells
        )
    ]
    if not own_claims:
        return planned_group
    are_large_claims = all(claim.needed(plan.margin) >= CONTROL_BELOW and claim.of != GROWTH for claim in own_claims)
    piloted = plan.sampling.is_open or any(claim.of not in UNPILOTED for claim in own_claims)
    quantities = dict.fromkeys([*planned_group.of, *(claim.of for claim in own_claims if is_of_launches(claim.of))])
    return replace(
        planned_group, control=None if are_large_claims else planned_group.control, piloted=piloted, of=list(quantities)
    )


def _choose_interleaving(request: Request, limits: Limits) -> Interleave:
    """Return whether the cells of a round are interleaved: as requested, or if it is possible. Raises UsageError."""
    count = len(limits.cpus) if limits.cpus is not None else len(os.sched_getaffinity(0))
    if limits.gpus:
        reason, omit = "this run is on a GPU", "--device" if request.device else "--gpu"
    elif request.sampling is not Protocol.TIME:
        reason, omit = "the source document's iterations are measured without a break", f"--sampling {request.sampling}"
    elif count > 1:
        reason, omit = f"launches have up to {count} cores", f"--cpus {request.cpus}" if request.cpus else "-a cpus"
    else:
        return request.interleave or Interleave.TURNS
    if request.interleave is Interleave.TURNS:
        raise UsageError(
            f"--interleave turns: interleaving needs launches on one CPU core, but {reason}.",
            f"Omit {omit}, or use --interleave launches.",
        )
    return Interleave.LAUNCHES


def _find_claims(request: LaunchRequest, selection: Selection, catalog: Catalog) -> list[claims.ScenarioClaim]:
    """Return the requested claims of the selected scenarios. Raises UsageError."""
    if request.claims and request.suite:
        raise UsageError("--claim and --suite can't be combined: both select cells.", "Use one of them.")
    names = resolve(selection.scenarios or ["*"], list(catalog.scenarios), "scenario") if request.claims else []
    return claims.find_claims(request.claims, [catalog.scenarios[name] for name in names])


def _add_claimed_environments(
    catalog: Mapping[str, Environment], scenario_claims: Sequence[claims.ScenarioClaim]
) -> tuple[dict[str, Environment], list[claims.ScenarioClaim], dict[str, HarnessError]]:
    """Return the catalog with the environments of claims, the claims with the names in the catalog, and errors.

    The errors are about environments that couldn't be created. Claims about other environments are still measured.
    """
    environments, errors = dict(catalog), dict[str, HarnessError]()
    names: dict[str, str] = {}
    sides = [side for _, claim in scenario_claims for side in (claim.worse, claim.better) if side]
    for text in dict.fromkeys(side.environment for side in sides):
        names[text] = text
        try:
            environments, (names[text],) = add_requested(environments, [parse_requested(text)])
        except (UsageError, CannotRunHereError) as error:
            errors[text] = error
    return environments, claims.rename_environments(scenario_claims, names), errors


def _choose_reference(requested: str, environments: Sequence[str], cells: Sequence[Cell]) -> str:
    """Return the requested baseline, otherwise the first environment in which some cell can run."""
    if requested and requested not in environments:
        raise UsageError(
            f"Unknown --reference {requested}: the environments of the run are {', '.join(environments)}.",
            "Use one of these.",
        )
    usable_names = {cell.environment for cell in cells}
    return requested or next((name for name in environments if name in usable_names), environments[0])


def _choose_devices(request: LaunchRequest) -> list[Device]:
    """Return the devices of the cells, the baseline first. Raises UsageError for conflicting options."""
    if DEVICE in request.axes:
        raise UsageError("`device` isn't an axis for -a.", "To compare the GPU with the CPU, pass --device cpu,gpu.")
    gpu_options = {"--gpus": request.gpus, "--gpu-via": request.gpu_via}
    others = [name for name, value in gpu_options.items() if value]
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
    installed_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpu_names = gpus.parse_requested(Device.GPU in devices, request.gpus)
    if isinstance(request, Request) and request.slots.isdecimal() and not (request.on or gpu_names):
        divide_machine(int(request.slots), os.sched_getaffinity(0))  # too many slots are an error in a dry run too
    # with one core, a GPU could wait for the CPU work of each step, so use all cores by default
    cores = request.cpus or ("all" if gpu_names or not cpus.can_pin() else "1")
    return devices, Limits(
        cpus=cpus.choose(cores, os.sched_getaffinity(0)),
        memory_bytes=request.memory or installed_bytes * 4 // 5,
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
    project: Project, texts: Sequence[str]
) -> tuple[dict[str, Scenario], dict[str, FileError], list[str]]:
    """Return the scenarios of the project and of the given files, and the errors of invalid ones, by name.

    The last value has the given names and globs, in which files are replaced by the names of their scenarios.
    """
    listing = find_scenarios(project, texts)
    scenarios, errors, names = dict(listing.scenarios), dict(listing.broken), []
    paths = {path.stem: path.resolve() for path in find_scenario_files(project)}
    for text in texts:
        if not text.endswith(".py"):
            names.append(text)
            continue
        path = Path(text).resolve()
        existing_path = paths.setdefault(path.stem, path)
        if existing_path != path:
            raise UsageError(f"{text} has the name of the scenario {existing_path}.", "Rename the file.")
        names.append(path.stem)
        if path.stem not in scenarios and path.stem not in errors:
            try:
                scenarios[path.stem] = load_scenario(path)
            except FileError as error:
                errors[path.stem] = error
    return scenarios, errors, names


def _drop_invalid(
    selection: Selection, catalog: Catalog, errors: Mapping[str, FileError]
) -> tuple[Selection, Catalog, dict[str, FileError]]:
    """Return the selection and the catalog without invalid scenarios, and the errors of these scenarios.

    Raises FileError if all selected scenarios are invalid.
    """
    selection, catalog, names = remove_broken(selection, catalog, errors)
    selected_errors = {name: errors[name] for name in names if name in errors}
    if selected_errors and len(selected_errors) == len(names):
        raise FileError(problem for error in selected_errors.values() for problem in error.problems)
    return selection, catalog, selected_errors
