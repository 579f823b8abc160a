"""A finished plan with its inputs."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness import __version__
from harness.backends import registry
from harness.environments.catalog import load_environments
from harness.environments.locks import describe_overrides
from harness.machine.gpu import selection
from harness.model.environment import Device, Environment, Requirement, describe_stale_lines, name_on
from harness.model.errors import CannotRunHereError, FileError, UnavailableError
from harness.model.gpu import Gpu, GpuHost
from harness.model.run import Plan, Unavailable
from harness.model.scenario import DEVICE, Cell, Scenario
from harness.model.texts import joined
from harness.plan import shards
from harness.plan.availability import TRIED, assess_on_gpus, list_compiled, list_names_on
from harness.plan.gpus import Support, find_first_starts, find_lazy_starts
from harness.plan.groups import find_control, find_lone_cells, keep_one_control, name_group
from harness.project import Project
from harness.session import trust
from harness.session.request import LaunchRequest, Request

if TYPE_CHECKING:
    from harness.backends.protocol import RegisteredBackend

#: The reason why a cell isn't launched if no cell to compare it with can run on the GPU.
_LONE_REASON = "no other cell of its comparison can run here, so there is nothing to compare it with"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the inputs from which it was created.

    - `request`: the options; `suite`: the name of the suite, or an empty text if scenarios or issues are named
    - `plan`: groups of cells, rounds and limits. `plan.unavailable` has the cells that can't be measured, with reasons
    - `environments`: the selected environments; `requirements`: their packages on each device of the run, by name
    - `scenarios`: the selected scenarios by name; `refused`: scenarios with invalid files, which aren't measured
    - `reference`: the name of the baseline environment
    - `gpus`: the GPUs of each launch; `gpu_host`: facts about the machine that has the GPUs
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
    gpus: Sequence[Gpu]
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
        return {
            name: text
            for name, requirement in self.requirements.items()
            if not requirement.is_second and (text := describe_overrides(self.project, requirement))
        }

    @property
    def line_sentences(self) -> list[str]:
        """Sentences with the versions of release lines in this run, and about lines that get no new wheels."""
        moving = [environment for environment in self.environments if environment.line]
        versions = [f"{environment.line} is {environment.exact} in this run." for environment in moving]
        return versions + describe_stale_lines(moving, self.request.environments)

    @property
    def gpu_lines(self) -> list[str]:
        """Sentences about the GPUs of each launch."""
        return [*selection.describe_gpus(self.gpus, self.gpu_host), *self.first_starts] if self.plan.limits.gpus else []

    @property
    def first_starts(self) -> list[str]:
        """Sentences about environments whose GPU code the driver must compile first."""

        def join_names(way: Support) -> str:
            return joined([name for name, its_way in self.plan.compiled.items() if its_way == way])

        sentences = [
            (
                joined(find_lazy_starts(self.plan)),
                "The driver compiles the kernels of {} when they are first needed. This takes minutes in total.",
            ),
            (
                joined(find_first_starts(self.plan)),
                "The driver compiles {} at the first start. This takes 30 minutes or longer.",
            ),
            (join_names(Support.PARTLY), "The driver compiles some kernels of {} when they are first needed."),
            (join_names(Support.OLDER), "CUDA in the image of {} is older than the GPU, so cuDNN may fail."),
            (
                join_names(Support.UNREAD),
                "The launches show whether {} runs on the GPU: its GPU code isn't known. `harness images verify "
                "--device gpu` reads the code in an image.",
            ),
        ]
        return [
            *(sentence.format(names) for names, sentence in sentences if names),
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
        if self.gpus:
            models = joined(list(dict.fromkeys(gpu.name for gpu in self.gpus)))
            devices = set(self.plan.devices)
            candidates = [entry for entry in load_environments(self.project).values() if devices <= set(entry.devices)]
            usable_names = list_names_on(self.gpus, self.gpu_host, candidates)
            message += f" Environments that run on {models}: {joined(usable_names)}." if usable_names else ""
        raise CannotRunHereError(message, example.advice)

    @property
    def aspects(self) -> dict[str, Any]:
        """The facts that all shards of the plan must have in common, by their names in messages."""
        from harness.session.jobs import JobMaker  # noqa: PLC0415 - only shards need it

        return shards.list_aspects(
            self.plan,
            harness=__version__,
            reference=self.reference,
            sources=JobMaker(self.project, self.scenarios, self.plan.limits).hash_sources(),
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

    def choose_backend(self, run: str = "") -> "tuple[RegisteredBackend, str]":
        """Return the backend that runs the plan, and why it was chosen. Raises the errors of `registry.choose`."""
        request, gpus = self.request, self.plan.limits.gpus
        return registry.choose(
            request.backend, self.project.root, run, untrusted=self.untrusted, gpus=gpus, via=request.gpu_via
        )

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
    if omits_lone_cells(planned.request, plan.devices):
        selected_cells = [*plan.cells, *(entry.cell for entry in plan.unavailable)]
        remaining_cells, lone_cells = drop_lone_cells(remaining_cells, selected_cells, planned.scenarios)
        unavailable += lone_cells
    groups = []
    for planned_group in plan.groups:
        cells = [cell for cell in planned_group.cells if cell in remaining_cells]
        new_control = find_control(cells, planned.reference) if planned_group.control else None
        groups += [replace(planned_group, cells=cells, control=new_control)] if cells else []
    remaining_plan = replace(planned, plan=replace(plan, groups=groups, unavailable=[*plan.unavailable, *unavailable]))
    had_one_control = sum(planned_group.controlled for planned_group in plan.groups if planned_group.control) == 1
    return remaining_plan.with_one_control() if had_one_control else remaining_plan


def set_environments(
    planned: Planned, actual: Mapping[str, Environment]
) -> tuple[Planned, dict[str, UnavailableError]]:
    """Return the plan with these environments, by name, and errors for those that can't run on the GPUs.

    With --try-anyway, there are no errors.
    """
    gpus, gpu_host, catalog = planned.gpus, planned.gpu_host, load_environments(planned.project).values()
    fits = {name: assess_on_gpus(environment, catalog, gpus, gpu_host) for name, environment in actual.items()}
    is_tried = isinstance(planned.request, Request) and planned.request.try_anyway
    refused = {name: gpu_fit for name, gpu_fit in fits.items() if gpu_fit.is_impossible and not is_tried}
    launched = [environment for name, environment in actual.items() if name not in refused]
    compiled = {name: support for name, support in planned.plan.compiled.items() if name not in actual}
    requirements = {
        name: replace(requirement, environment=actual.get(requirement.environment.name, requirement.environment))
        for name, requirement in planned.requirements.items()
    }
    errors = {
        name: UnavailableError(gpu_fit.reason, gpu_fit.advice)
        for name, requirement in requirements.items()
        if requirement.device is Device.GPU and (gpu_fit := refused.get(requirement.environment.name))
    }
    new_planned = replace(
        planned,
        plan=replace(planned.plan, compiled=compiled | list_compiled(launched, gpus, gpu_host)),
        environments=[actual.get(environment.name, environment) for environment in planned.environments],
        requirements=requirements,
    )
    return new_planned, errors


def omits_lone_cells(request: LaunchRequest, devices: Sequence[Device]) -> bool:
    """Return whether cells without another cell to compare with aren't launched."""
    is_suite = isinstance(request, Request) and not (request.environments or request.claims)
    return len(devices) > 1 or (Device.GPU in devices and is_suite)


def drop_lone_cells(
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
