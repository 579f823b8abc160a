"""From the options of `harness matrix` to a plan."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.catalog.scenarios import load_scenario, load_scenarios
from harness.catalog.suites import load_suites
from harness.cli import quantities
from harness.machine import cpus
from harness.model.environment import Device, Requirement
from harness.model.errors import UsageError
from harness.model.job import Limits, Protocol, Sampling
from harness.model.run import Plan
from harness.model.scenario import Scenario
from harness.plan.availability import split
from harness.plan.groups import group
from harness.plan.selection import Catalog, Selection, parse_axes, select

#: What --rounds is where nothing ends a run earlier, and where something does.
ROUNDS, MOST_ROUNDS = 5, 100

#: What --warmup and --measure are where the pilot sets them.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as it was typed."""

    suite: str
    environments: Sequence[str]
    scenarios: Sequence[str]
    axes: Sequence[str]
    cpus: str
    reference: str
    rounds: int | None
    precision: str
    budget: str
    margin: str
    protocol: Protocol
    warmup: str
    measure: str
    timeout: str
    memory: str
    seed: int | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with what it was made from; `reference` is the environment that the others are set against."""

    project: Project
    plan: Plan
    requirements: Mapping[str, Requirement]
    scenarios: Mapping[str, Scenario]
    reference: str

    @property
    def needed(self) -> list[Requirement]:
        """The environments that some cell is launched in: no other one is worth a build."""
        used = {cell.environment for cell in self.plan.cells}
        return [requirement for name, requirement in self.requirements.items() if name in used]

    @property
    def has_strangers(self) -> bool:
        """Whether a scenario lies outside the project's folder: a stranger's program."""
        return any(scenario.path.parent != self.project.scenarios for scenario in self.scenarios.values())


def prepare(request: Request) -> Prepared:
    """The plan that the options mean. Raises UsageError or NothingSelectedError."""
    project = Project.find()
    sampling, limits = _sampling(request), _limits(request)
    known = load_environments(project)
    scenarios, chosen = _scenarios(project, request.scenarios)
    selection = Selection(
        suite=request.suite, environments=request.environments, scenarios=chosen, axes=parse_axes(request.axes)
    )
    catalog = Catalog(environments=list(known), scenarios=scenarios, suites=load_suites(project))
    cells, environments = select(selection, catalog, Device.CPU)
    reference = _reference(request.reference, environments)
    requirements = {name: load_lock(project, known[name], Device.CPU) for name in environments}
    runnable, unavailable = split(cells, scenarios, requirements)
    plan = Plan(
        groups=group(runnable, scenarios, reference),
        rounds=request.rounds or (MOST_ROUNDS if request.precision or request.budget else ROUNDS),
        seed=int.from_bytes(os.urandom(4)) if request.seed is None else request.seed,
        sampling=sampling,
        limits=limits,
        unavailable=unavailable,
        precision=quantities.share(request.precision, "--precision") if request.precision else None,
        budget_seconds=quantities.seconds(request.budget, "--budget") if request.budget else None,
        margin=quantities.share(request.margin, "--margin"),
    )
    used = {cell.scenario: scenarios[cell.scenario] for cell in cells}
    return Prepared(project, plan, requirements, used, reference)


def _reference(typed: str, environments: Sequence[str]) -> str:
    if typed and typed not in environments:
        raise UsageError(
            f"--reference {typed}: the run has the environments {', '.join(environments)}.", "Name one of these."
        )
    return typed or environments[0]


def _scenarios(project: Project, typed: Sequence[str]) -> tuple[dict[str, Scenario], list[str]]:
    """The scenarios by name, with those of the files that were typed, and the names or globs that were typed."""
    scenarios = load_scenarios(project)
    chosen = []
    for text in typed:
        if not text.endswith(".py"):
            chosen.append(text)
            continue
        scenario = load_scenario(Path(text).resolve())
        known = scenarios.get(scenario.name)
        if known and known.path != scenario.path:
            raise UsageError(f"{text} has the name of the scenario {known.path}.", "Give the file another name.")
        scenarios[scenario.name] = scenario
        chosen.append(scenario.name)
    return scenarios, chosen


def _sampling(request: Request) -> Sampling:
    return Sampling(
        protocol=request.protocol,
        warmup_seconds=None if request.warmup == AUTO else quantities.seconds(request.warmup, "--warmup"),
        measure_seconds=None if request.measure == AUTO else quantities.seconds(request.measure, "--measure"),
    )


def _limits(request: Request) -> Limits:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Limits(
        cpus=cpus.choose(request.cpus, os.sched_getaffinity(0)),
        memory_bytes=quantities.size(request.memory, "--memory") if request.memory else installed * 4 // 5,
        seconds=quantities.seconds(request.timeout, "--timeout"),
    )
