"""From the options of `harness matrix` to a plan."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.backends import registry
from harness.catalog.adhoc import with_asked
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios, load_scenario, scenario_files
from harness.catalog.suites import load_suites
from harness.cli import problems, quantities
from harness.machine import cpus
from harness.machine.gpu import chosen as gpus
from harness.model.cell import Cell
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import UsageError
from harness.model.gpu import CPU_ALONE, Card, GpuHost
from harness.model.job import Limits, Protocol, Sampling
from harness.model.problem import FileError
from harness.model.run import Plan
from harness.model.scenario import Scenario
from harness.model.suite import DEFAULT_SUITE, Suite
from harness.plan.availability import split
from harness.plan.groups import group
from harness.plan.selection import Catalog, Selection, parse_axes, select, without_broken

#: What --rounds is where nothing ends a run earlier, and where something does.
ROUNDS, MOST_ROUNDS = 5, 100

#: What --warmup and --measure are where the pilot sets them.
AUTO = "auto"

#: What --timeout is where it is left out, in seconds, and for a launch whose GPU code is compiled first: TensorFlow's
#: own warning says "30 minutes or longer".
TIMEOUT, FIRST_START = 600.0, 7200.0


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as it was typed; for what was left out what stands here, or nothing."""

    suite: str = ""
    environments: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    axes: Sequence[str] = ()
    gpu: bool = False
    gpus: str = ""
    cpus: str = ""
    reference: str = ""
    rounds: int | None = None
    precision: str = ""
    budget: str = ""
    margin: str = "3%"
    protocol: Protocol = Protocol.TIME
    warmup: str = "auto"
    measure: str = "auto"
    timeout: str = ""
    memory: str = ""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with what it was made from; `reference` is the environment that the others are set against.

    `environments` are those selected, and `requirements`, by name, those of them that exist for the run's device.
    `cards` are the GPUs of every launch, as far as `gpu_host` knows them. `refused` are selected scenarios
    whose files are wrong.
    """

    project: Project
    plan: Plan
    environments: Sequence[Environment]
    requirements: Mapping[str, Requirement]
    scenarios: Mapping[str, Scenario]
    reference: str
    gpu_host: GpuHost
    cards: Sequence[Card]
    refused: Mapping[str, FileError]

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
    """The plan that the options mean; scenarios that it had to leave out are told on stderr.

    Raises UsageError or NothingSelectedError, FileError where nothing but such scenarios was selected, and
    CannotRunHereError for a GPU that this machine does not have.
    """
    project = Project.find()
    limits = _limits(request)
    gpu_host = registry.gpu_host(project.root) if limits.gpus else CPU_ALONE
    cards = gpus.cards(limits.gpus, gpu_host)
    known, (*typed, named) = with_asked(load_environments(project), [*request.environments, request.reference])
    scenarios, broken, chosen = _scenarios(project, request.scenarios)
    suites = load_suites(project)
    sampling = _sampling(request, suites.get(request.suite))
    default = suites[DEFAULT_SUITE].environments if not request.suite and DEFAULT_SUITE in suites else ()
    selection = Selection(
        suite=request.suite,
        environments=typed or default,
        scenarios=chosen,
        axes=parse_axes(request.axes),
    )
    catalog = Catalog(environments=list(known), scenarios=scenarios, suites=suites)
    selection, catalog, refused = _spared(selection, catalog, broken)
    device = Device.GPU if limits.gpus else Device.CPU
    cells, environments = select(selection, catalog, device)
    requirements = {
        name: load_lock(project, known[name], device) for name in environments if device in known[name].devices
    }
    runnable, unavailable = split(cells, scenarios, requirements, known, cards=cards, host=gpu_host)
    reference = _reference(named, environments, runnable)
    rounds, budget = _length(request, suites.get(request.suite))
    plan = Plan(
        groups=group(runnable, scenarios, reference),
        rounds=rounds or (MOST_ROUNDS if request.precision or budget else ROUNDS),
        seed=int.from_bytes(os.urandom(4)) if request.seed is None else request.seed,
        sampling=sampling,
        limits=limits,
        unavailable=unavailable,
        precision=quantities.share(request.precision, "--precision") if request.precision else None,
        budget_seconds=budget,
        margin=quantities.share(request.margin, "--margin"),
    )
    return Prepared(
        project=project,
        plan=plan,
        environments=[known[name] for name in environments],
        requirements=requirements,
        scenarios={cell.scenario: scenarios[cell.scenario] for cell in cells},
        reference=reference,
        gpu_host=gpu_host,
        cards=cards,
        refused=refused,
    )


def _reference(typed: str, environments: Sequence[str], runnable: Sequence[Cell]) -> str:
    """The environment that was typed, else the first that some cell can run in."""
    if typed and typed not in environments:
        raise UsageError(
            f"--reference {typed}: the run has the environments {', '.join(environments)}.", "Name one of these."
        )
    able = {cell.environment for cell in runnable}
    return typed or next((name for name in environments if name in able), environments[0])


def _sampling(request: Request, suite: Suite | None) -> Sampling:
    """How launches sample: as typed, else as the suite says, else as the pilot will."""

    def seconds(typed: str, usual: str, name: str) -> float | None:
        if typed != AUTO:
            return quantities.seconds(typed, f"--{name}")
        return quantities.seconds(usual, f"The {name} of the suite {request.suite},") if usual else None

    return Sampling(
        protocol=request.protocol,
        warmup_seconds=seconds(request.warmup, suite.warmup if suite else "", "warmup"),
        measure_seconds=seconds(request.measure, suite.measure if suite else "", "measure"),
    )


def _limits(request: Request) -> Limits:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wanted = gpus.wish(request.gpu, request.gpus)
    # a GPU waits for whatever core prepares its next step, so that one core would be what is measured
    cores = request.cpus or ("all" if wanted else "1")
    return Limits(
        cpus=cpus.choose(cores, os.sched_getaffinity(0)),
        memory_bytes=quantities.size(request.memory, "--memory") if request.memory else installed * 4 // 5,
        seconds=quantities.seconds(request.timeout, "--timeout") if request.timeout else TIMEOUT,
        gpus=wanted,
        first_start_seconds=FIRST_START if wanted and not request.timeout else 0.0,
    )


def _length(request: Request, suite: Suite | None) -> tuple[int | None, float | None]:
    """How many rounds were asked for, and how many seconds they may take: as typed, else as the suite says."""
    rounds = request.rounds or (suite.rounds if suite else None)
    if request.budget:
        return rounds, quantities.seconds(request.budget, "--budget")
    if suite and suite.budget:
        return rounds, quantities.seconds(suite.budget, f"The budget of the suite {suite.name},")
    return rounds, None


def _scenarios(project: Project, typed: Sequence[str]) -> tuple[dict[str, Scenario], dict[str, FileError], list[str]]:
    """The project's scenarios and those of the files that were typed, and those of them whose files are wrong, by name.

    Last, the names and globs that were typed, a file by its scenario's name.
    """
    found = find_scenarios(project)
    scenarios, broken, chosen = dict(found.scenarios), dict(found.broken), []
    paths = {path.stem: path.resolve() for path in scenario_files(project)}
    for text in typed:
        if not text.endswith(".py"):
            chosen.append(text)
            continue
        path = Path(text).resolve()
        known = paths.setdefault(path.stem, path)
        if known != path:
            raise UsageError(f"{text} has the name of the scenario {known}.", "Give the file another name.")
        chosen.append(path.stem)
        if path.stem not in scenarios and path.stem not in broken:
            try:
                scenarios[path.stem] = load_scenario(path)
            except FileError as error:
                broken[path.stem] = error
    return scenarios, broken, chosen


def _spared(
    selection: Selection, catalog: Catalog, broken: Mapping[str, FileError]
) -> tuple[Selection, Catalog, dict[str, FileError]]:
    """What was selected less the scenarios whose files are wrong, and these, which are told on stderr."""
    selection, catalog, chosen = without_broken(selection, catalog, broken)
    refused = {name: broken[name] for name in chosen if name in broken}
    if refused and len(refused) == len(chosen):
        raise FileError(problem for error in refused.values() for problem in error.problems)
    problems.tell_refused(refused)
    return selection, catalog, refused
