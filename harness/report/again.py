"""How to run it again: the harness's command, and without it what builds the images and runs a cell in each by hand."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from harness.analysis.answers import Answer
from harness.analysis.lookup import Lookup
from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.model.job import Protocol
from harness.model.run import Run
from harness.model.scenario import Scenario

#: What stands for every GPU on a command line.
ALL = "all"

#: Where a container sees the scenarios.
_FOLDER = "/scenarios"


@dataclass(frozen=True, slots=True)
class Again:
    """Lines to type in the project's folder.

    `command` is the harness's. `bake` builds the images of the catalogue's environments, and `others` each of those
    that are not in it, by the harness. `by_hand` runs one cell of each environment, without the harness. All but the
    first are empty where launches were not in containers.
    """

    command: str
    bake: str
    others: Sequence[str]
    by_hand: Sequence[str]


def again(run: Run, found: Lookup, answered: Sequence[Answer]) -> Again:
    """How to run it again. By hand that is, where there is one, the row of an answer that is farthest from equal."""
    command = _typed(run)
    if run.backend.get("name") != "docker":
        return Again(command, "", [], [])
    chosen = _chosen(run, found, answered)
    known = [environment for environment in run.environments if environment.name in chosen]
    return Again(
        command=command,
        bake=_bake(run, [each for each in known if not each.asked]),
        others=[_build(run, each) for each in known if each.asked],
        by_hand=[_by_hand(run, each, chosen[each.name]) for each in known],
    )


def _typed(run: Run) -> str:
    """The command that was typed, with the seed that it got."""
    typed = list(run.command)
    seeded = any(word == "--seed" or word.startswith("--seed=") for word in typed)
    return shlex.join(typed if seeded else [*typed, "--seed", str(run.plan.seed)])


def _chosen(run: Run, found: Lookup, answered: Sequence[Answer]) -> dict[str, Cell]:
    """One cell of each environment that anything was launched in."""
    told = [each for answer in answered for each in _farthest(answer)]
    chosen: dict[str, Cell] = {}
    for cell in [*told, *found.series, *run.plan.cells]:
        chosen.setdefault(cell.environment, cell)
    return chosen


def _farthest(answer: Answer) -> Iterator[Cell]:
    """Both cells of the row whose times lie farthest apart, the base first."""
    ends = (answer.findings[0], answer.findings[-1])
    finding = max(ends, key=lambda each: max(each.ratio.value, 1.0 / each.ratio.value))
    yield from (finding.compared.other, finding.compared.cell)


def _bake(run: Run, environments: Sequence[Environment]) -> str:
    if not environments:
        return ""
    registry = _registry(run)
    # as docker-bake.hcl names them
    targets = [f"{_device(run).value}-{each.name.replace('.', '-')}" for each in environments]
    return " ".join([*([f"REGISTRY={shlex.quote(registry)}"] if registry else []), "docker buildx bake", *targets])


def _build(run: Run, environment: Environment) -> str:
    device = ["--device", Device.GPU.value] if run.plan.limits.gpus else []
    return shlex.join(["harness", "images", "build", environment.asked, *device])


def _by_hand(run: Run, environment: Environment, cell: Cell) -> str:
    scenario = next(each for each in run.scenarios if each.name == cell.scenario)
    limits, name = run.plan.limits, scenario.path.name
    words = ["docker run --rm --network none", f'-v "$PWD/scenarios:{_FOLDER}:ro"']
    outside = _outside(run, scenario)
    if outside:
        words += ["-v", _mount(outside, f"/scenario/{name}"), "-e", f"PYTHONPATH={_FOLDER}"]
    words += ["-w /tmp", *(["--cpuset-cpus", ",".join(map(str, limits.cpus))] if limits.cpus else [])]
    words += _gpus(run)
    for axis in scenario.environ:
        if cell.axes.get(axis):
            words += ["-e", shlex.quote(f"{axis}={cell.axes[axis]}")]
    image = f"{_registry(run)}harness/{environment.name}:{_device(run).value}"
    script = f"/scenario/{name}" if outside else f"{_FOLDER}/{name}"
    return " ".join([*words, shlex.quote(image), "python", shlex.quote(script), *_options(run, scenario, cell)])


def _options(run: Run, scenario: Scenario, cell: Cell) -> list[str]:
    """The cell's axes, and how it was measured, as a scenario run by hand takes them."""
    axes = [(f"--{axis}", value) for axis, value in cell.axes.items() if axis not in scenario.environ]
    options = [word for pair in axes for word in pair]
    if run.plan.limits.gpus:
        options += ["--device", Device.GPU.value]
    if run.plan.sampling.protocol is Protocol.DOCUMENT:
        options += ["--sampling", Protocol.DOCUMENT.value]
    return [shlex.quote(option) for option in options]


def _outside(run: Run, scenario: Scenario) -> str:
    """The file of a scenario from outside the project's folder, as it was typed; empty for one of the project's."""
    typed = (word for word in run.command if PurePath(word).name == scenario.path.name)
    return next((word for word in typed if PurePath(word).parent != PurePath("scenarios")), "")


def _mount(path: str, inside: str) -> str:
    quoted = shlex.quote(f"{path}:{inside}:ro")
    return quoted if PurePath(path).is_absolute() else f'"$PWD"/{quoted}'


def _gpus(run: Run) -> list[str]:
    """What gives a container the launches' GPUs: by CDI where that was the engine's way, else by NVIDIA's runtime."""
    gpus = run.plan.limits.gpus
    if not gpus:
        return []
    if run.backend.get("gpus_by") == "CDI":
        return [f"--device {shlex.quote(f'nvidia.com/gpu={gpu}')}" for gpu in gpus]
    return ["--gpus", ALL if ALL in gpus else shlex.quote(f'"device={",".join(gpus)}"')]


def _registry(run: Run) -> str:
    return str(run.backend.get("registry") or "")


def _device(run: Run) -> Device:
    return Device.GPU if run.plan.limits.gpus else Device.CPU
