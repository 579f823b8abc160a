"""A scenario with a sweep, and runs of it whose curves cross where a test wants."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.model.environment import Device
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import DEVICE, Cell, Comparison, Scenario, Sweep
from harness.model.settings import with_settings
from harness.plan.groups import group
from tests.factories import rounds, run, scenario

SIZES = ("1", "32", "1024", "32768")


def swept(sizes: Sequence[str] = SIZES, **changes: Any) -> Scenario:
    """`sigmoid`: the variants numpy and compiled, set against one another at each size."""
    fields: dict[str, Any] = {
        "title": "A sigmoid",
        "axes": {"variant": ["numpy", "compiled"], "size": list(sizes)},
        "default": {},
        "compare": [
            Comparison("compiled against NumPy", along="variant", plus="compiled", against="numpy"),
            Comparison("release against release", along="environment"),
        ],
        "sweeps": {"size": Sweep("values")},
    }
    return scenario("sigmoid", **{**fields, **changes})


def cell(variant: str, size: str, environment: str = "tf1.14", **axes: str) -> Cell:
    return Cell("sigmoid", environment, Device.CPU, {"variant": variant, "size": size, **axes})


def seconds(ratios: Mapping[str, float], environments: Sequence[str] = ("tf1.14",), **axes: str) -> dict[Cell, float]:
    """Seconds per step by cell: NumPy's grow with the size, compiled is `ratios` times as fast at each size."""
    return {
        cell(variant, size, environment, **axes): base if variant == "numpy" else base / ratio
        for size, ratio in ratios.items()
        for environment in environments
        for variant in ("numpy", "compiled")
        for base in [1e-6 * math.sqrt(1.0 + float(size))]
    }


#: compiled takes 20 times as long at one value, and is twice as fast at 32,768: they cross between 1,024 and these.
CROSSING = dict(zip(SIZES, (0.05, 0.2, 0.5, 2.0), strict=True))


def swept_run(
    times: Mapping[Cell, float], count: int = 5, spread: float = 0.02, of: Scenario | None = None, **changes: Any
) -> tuple[Run, list[Launch]]:
    scenario_ = of or swept()
    return run(times, scenarios=[scenario_], **changes), rounds(times, count, spread)


def devices_run(
    ratios: Mapping[str, float], count: int = 5, spread: float = 0.01, unit: str = "", **changes: Any
) -> tuple[Run, list[Launch]]:
    """Return a run on both devices: the GPU is `ratios` times as fast as the CPU at each batch size."""
    scenario_ = with_settings(
        scenario("train", axes={"batch": list(ratios)}, default={}, compare=[], sweeps={"batch": Sweep(unit)}),
        {DEVICE: [device.value for device in Device]},
    )
    times = {
        Cell("train", "tf2.15", device, {"batch": size, DEVICE: device.value}): 0.01
        / (ratio if device == "gpu" else 1.0)
        for size, ratio in ratios.items()
        for device in Device
    }
    groups = group(list(times), {scenario_.name: scenario_}, "tf2.15")
    names = {cell: part.name for part in groups for cell in part.cells}
    launches = [replace(launch, group=names[launch.cell]) for launch in rounds(times, count, spread)]
    return run(times, scenarios=[scenario_], asked={"groups": groups}, **changes), launches
