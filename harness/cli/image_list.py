"""`harness images list`: what each environment pins, and what the engine has of it."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.model.environment import Device

if TYPE_CHECKING:
    from harness.catalog.project import Project
    from harness.model.backend import KeptImage
    from harness.model.environment import Environment, Requirement

#: Asks a backend what there is of each image.
Ask = Callable[[Sequence["Requirement"]], Sequence["KeptImage"]]

_NO_LOCK = "no lock"
_NO_ENGINE = "no engine"

#: The table's columns: a heading, and the row's key.
_COLUMNS = (
    ("name", "name"),
    ("TensorFlow", "tensorflow"),
    ("Keras", "keras"),
    ("Python", "python"),
    ("NumPy", "numpy"),
    ("CUDA", "cuda"),
    ("cuDNN", "cudnn"),
    ("wheel of", "released"),
    ("CPU image", "cpu"),
    ("GPU image", "gpu"),
    ("compute capabilities", "runs_on"),
)


def rows(project: "Project", environments: Sequence["Environment"], ask: "Ask") -> list[dict[str, Any]]:
    """A row for each environment, of JSON values; `ask` says what there is of each image.

    `cpu` and `gpu` say of an image its `state`, and `size_bytes` and `id` where the engine has it; None where there is
    to be no such image. `lock` says whether each device's is there.
    """
    from harness.plan.gpus import describe

    requirements = _requirements(project, environments)
    found = _found(project, requirements, ask)
    listed = []
    for environment in environments:
        pins = _pins(requirements, environment)
        listed.append(
            {
                "name": environment.name,
                "tensorflow": environment.tensorflow,
                "keras": environment.keras or pins.get("keras") or "its own",
                "python": environment.python,
                "numpy": pins.get("numpy", ""),
                "cuda": environment.cuda,
                "cudnn": environment.cudnn,
                "released": environment.released,
                "as_of": environment.as_of,
                "gpu_code": environment.gpu_code.split(),
                "runs_on": describe(environment),
                **{device.value: found.get((environment.name, device)) for device in Device},
            }
        )
    return listed


def table(listed: Iterable[Mapping[str, Any]]) -> list[str]:
    """The rows as lines for a reader."""
    lines = [[heading for heading, _ in _COLUMNS]]
    lines += [[_cell(row[key]) for _, key in _COLUMNS] for row in listed]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cell(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value or "-")
    if "size_bytes" not in value:
        return str(value["state"])
    size = f"{value['size_bytes'] / 1e9:.2f} GB"
    return size if value["state"] == "built" else f"{size}, {value['state']}"


def _requirements(
    project: "Project", environments: Sequence["Environment"]
) -> dict[tuple[str, Device], "Requirement | None"]:
    """By name and device; None for one whose lock is missing."""
    from harness.catalog.locks import load_lock
    from harness.model.errors import UsageError

    found: dict[tuple[str, Device], Requirement | None] = {}
    for environment in environments:
        for device in environment.devices:
            try:
                found[environment.name, device] = load_lock(project, environment, device)
            except UsageError:
                found[environment.name, device] = None
    return found


def _pins(requirements: Mapping[tuple[str, Device], "Requirement | None"], of: "Environment") -> Mapping[str, str]:
    """What its lock pins: the CPU's where it has one."""
    locked = [requirements[of.name, device] for device in of.devices]
    return next((requirement.lock.pins for requirement in locked if requirement is not None), {})


def _found(
    project: "Project", requirements: Mapping[tuple[str, Device], "Requirement | None"], ask: "Ask"
) -> dict[tuple[str, Device], dict[str, Any]]:
    """What there is of each image. Where no engine answers, that is said on stderr."""
    from harness.model.errors import CannotRunHereError

    locked = {key: requirement for key, requirement in requirements.items() if requirement is not None}
    found: dict[tuple[str, Device], dict[str, Any]] = {key: {"state": _NO_LOCK} for key in requirements}
    try:
        known = ask(list(locked.values()))
    except CannotRunHereError as error:
        print(error.message, file=sys.stderr, flush=True)
        return found | {key: {"state": _NO_ENGINE} for key in locked}
    for key, image in zip(locked, known, strict=True):
        there = {"size_bytes": image.size_bytes, "id": image.id} if image.id else {}
        found[key] = {"state": image.state.value, **there}
    return found
