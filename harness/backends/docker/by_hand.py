"""A run in containers again, without the harness: what builds its images, and a cell of each environment in its own."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath

from harness.backends.docker.recipe import reference, target
from harness.model.backend import GpuWay
from harness.model.environment import Device, Environment
from harness.model.gpu import ALL, CAPABILITIES, KIND
from harness.model.launch import Protocol
from harness.model.run import ByHand, Run
from harness.model.scenario import FOLDERS, Cell, Scenario
from harness.model.settings import AS_IT_COMES

#: Where a container sees the scenarios.
_FOLDER = f"/{FOLDERS[0]}"


def by_hand(run: Run, chosen: Mapping[str, Cell]) -> ByHand:
    """The lines for the `chosen` cells, by environment."""
    known = [environment for environment in run.environments if environment.name in chosen]
    return ByHand(
        bake=_bake(run, [each for each in known if not each.asked]),
        others=[_build(run, each) for each in known if each.asked],
        cells=[_cell(run, each, chosen[each.name]) for each in known],
    )


def _bake(run: Run, environments: Sequence[Environment]) -> str:
    if not environments:
        return ""
    registry = run.backend.registry
    targets = [target(each, _device(run)) for each in environments]
    return " ".join([*([f"REGISTRY={shlex.quote(registry)}"] if registry else []), "docker buildx bake", *targets])


def _build(run: Run, environment: Environment) -> str:
    device = ["--device", Device.GPU.value] if run.plan.limits.gpus else []
    return shlex.join(["harness", "images", "build", environment.asked, *device])


def _cell(run: Run, environment: Environment, cell: Cell) -> str:
    scenario = next(each for each in run.scenarios if each.name == cell.scenario)
    limits, name = run.plan.limits, scenario.path.name
    words = ["docker run --rm --network none", f'-v "$PWD/scenarios:{_FOLDER}:ro"']
    outside = _outside(run, scenario)
    if outside:
        words += ["-v", _mount(outside, f"/scenario/{name}"), "-e", f"PYTHONPATH={_FOLDER}"]
    words += ["-w /tmp", *(["--cpuset-cpus", ",".join(map(str, limits.cpus))] if limits.cpus else [])]
    if limits.gpus:
        words += _gpu_options(run.backend.gpus_by, limits.gpus, run.backend.gpu_groups)
    for axis in scenario.environ:
        if cell.axes.get(axis):
            words += ["-e", shlex.quote(f"{axis}={cell.axes[axis]}")]
    image = reference(run.backend.registry, environment, _device(run))
    script = f"/scenario/{name}" if outside else f"/{_folder(scenario)}/{name}"
    return " ".join([*words, shlex.quote(image), "python", shlex.quote(script), *options(run, scenario, cell)])


def options(run: Run, scenario: Scenario, cell: Cell) -> list[str]:
    """The cell's axes, and how it was measured, as a scenario run by hand takes them."""
    unset = [axis for axis in scenario.settings if cell.axes.get(axis) == AS_IT_COMES]
    axes = [(f"--{axis}", value) for axis, value in cell.axes.items() if axis not in (*scenario.environ, *unset)]
    words = [word for pair in axes for word in pair]
    if run.plan.limits.gpus:
        words += ["--device", Device.GPU.value]
    if run.plan.sampling.protocol is Protocol.DOCUMENT:
        words += ["--sampling", Protocol.DOCUMENT.value]
    return [shlex.quote(word) for word in words]


def _outside(run: Run, scenario: Scenario) -> str:
    """The file of a scenario from outside the project's folder, as it was typed; empty for one of the project's."""
    typed = (word for word in run.command if PurePath(word).name == scenario.path.name)
    return next((word for word in typed if PurePosixPath(word).parent not in FOLDERS), "")


def _folder(scenario: Scenario) -> PurePosixPath:
    """Which of the project's folders the scenario lies in."""
    return next((each for each in FOLDERS if scenario.path.parent.parts[-len(each.parts) :] == each.parts), FOLDERS[0])


def _mount(path: str, inside: str) -> str:
    quoted = shlex.quote(f"{path}:{inside}:ro")
    return quoted if PurePath(path).is_absolute() else f'"$PWD"/{quoted}'


def _device(run: Run) -> Device:
    return Device.GPU if run.plan.limits.gpus else Device.CPU


def _gpu_options(way: str, gpus: Sequence[str], groups: Sequence[int] = ()) -> list[str]:
    """What asks the same of the engine in a `docker run` that is typed by hand: words for a shell.

    `way` is what run.json calls it, in which runs of earlier versions have another name for the engine's device driver;
    `groups` are those that may open the GPUs' device nodes.
    """
    members = [f"--group-add {group}" for group in groups]
    if way == GpuWay.CDI.words:
        return [*(f"--device {shlex.quote(f'{KIND}={gpu}')}" for gpu in gpus), *members]
    if way == GpuWay.RUNTIME.words:
        which = shlex.quote(f"NVIDIA_VISIBLE_DEVICES={','.join(gpus)}")
        capabilities = f"NVIDIA_DRIVER_CAPABILITIES={','.join(CAPABILITIES)}"
        return ["--runtime nvidia", f"-e {which}", f"-e {capabilities}", *members]
    return ["--gpus", ALL if ALL in gpus else shlex.quote(f'"device={",".join(gpus)}"'), *members]
