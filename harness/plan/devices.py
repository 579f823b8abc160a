"""Which environments exist for a device, known from the catalogue alone."""

from collections.abc import Iterable, Mapping, Sequence

from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.model.run import Unavailable

#: How a sentence names a device.
_NAMES = {Device.CPU: "CPU", Device.GPU: "GPU"}


def split_by_device(
    cells: Sequence[Cell], environments: Mapping[str, Environment]
) -> tuple[list[Cell], list[Unavailable]]:
    """The cells whose environment has an image for their device, and the others, with what to use instead.

    `environments` by name are the catalogue's and those of the cells.
    """
    runnable = [cell for cell in cells if cell.device in environments[cell.environment].devices]
    unavailable = [
        Unavailable(cell, _reason(environments[cell.environment], cell.device), _advice(cell, environments))
        for cell in cells
        if cell.device not in environments[cell.environment].devices
    ]
    return runnable, unavailable


def _reason(environment: Environment, device: Device) -> str:
    if environment.gpu_image:
        return f"{environment.name} is NVIDIA's image {environment.gpu_image}, which is made for GPUs"
    return f"the catalogue has nothing of a {_NAMES[device]} for {environment.name}"


def _advice(cell: Cell, environments: Mapping[str, Environment]) -> str:
    other = instead(environments[cell.environment], cell.device, environments.values())
    return f"Use {other.name}." if other else ""


def instead(environment: Environment, device: Device, catalog: Iterable[Environment]) -> Environment | None:
    """The environment of the nearest release that has the device, of two as near the older one; None without any."""
    from packaging.version import Version

    def release(each: Environment) -> tuple[int, int, int]:
        version = Version(each.tensorflow)
        return version.major, version.minor, version.micro

    own = release(environment)

    def distance(each: Environment) -> list[int]:
        return [abs(one - other) for one, other in zip(release(each), own, strict=True)]

    able = [each for each in catalog if device in each.devices]
    return min(able, key=lambda each: (distance(each), release(each)), default=None)
