"""Axes that every scenario has without declaring them: settings, cores, devices and environment variables.

Settings have fixed values, and the worker's kit applies them. The number of cores (CPUS), the device (DEVICE) and
environment variables of the process, such as `KERAS_BACKEND`, are *free axes*: they have the requested values, and
harness applies them to the process of a launch.

If a scenario declares an axis with the same name, the scenario's function gets this axis, and the setting or free axis
isn't available in this scenario. Cells have these axes only if somebody requested them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.errors import UsageError
from harness.model.scenario import CPUS, DEVICE, STEP, Comparison, Scenario

#: The value of a setting that leaves the release's default unchanged.
AS_IT_COMES = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: a description, and its values. In a comparison, the first value is compared with the others."""

    about: str
    values: Sequence[str]


#: Every setting by name. scenarios/kit/settings.py has the same names and values.
SETTINGS: Mapping[str, Setting] = {
    "tf32": Setting("float32 matrix products in TF32, on GPUs of compute capability 8.0 and later", ("on", "off")),
    "xla": Setting("on: XLA compiles everything it can; off: XLA compiles nothing, not even for Keras", ("on", "off")),
    "precision": Setting("Keras's precision policy", ("mixed_float16", "float32")),
    "deterministic": Setting("operations with the same result in every run", ("on", "off")),
    "malloc": Setting("the process keeps the memory that it has freed", ("keep",)),
    "cuda_loading": Setting(
        "when CUDA loads GPU code: each part at its first use, or all at the start", ("lazy", "eager")
    ),
    "cudnn_autotune": Setting("TensorFlow times cuDNN's algorithms, and uses the fastest", ("on", "off")),
}

#: Settings of the number of threads or processes.
_THREADS = re.compile(
    r"(?:set_)?int(?:ra|er)_op_parallelism_threads|(?:num_)?parallel_(?:calls|iterations)|num_threads|\bworkers *=|"
    r"OMP_NUM_THREADS"
)


def values(name: str) -> tuple[str, ...]:
    """Return all values of a setting, in the order of tables."""
    return (*SETTINGS[name].values, AS_IT_COMES)


def is_variable(name: str) -> bool:
    """Return whether an axis is an environment variable. This follows from its name."""
    return bool(re.fullmatch("[A-Z][A-Z0-9_]*", name))


def is_free(name: str) -> bool:
    """Return whether an axis is a free axis: cores, the device, or an environment variable."""
    return name in (CPUS, DEVICE) or is_variable(name)


def free_values(name: str, typed: Sequence[str]) -> list[str]:
    """Return the requested values of a free axis without duplicates. CPU counts are sorted.

    Raises UsageError for an invalid number of cores.
    """
    if name != CPUS:
        return list(dict.fromkeys(typed))
    invalid = next((text for text in typed if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII)), None)
    if invalid is not None:
        raise UsageError(f"Invalid -a {name}={invalid}: expected a number of cores.", f"Example: -a {name}=1,2,4")
    return sorted(dict.fromkeys(typed), key=int)


def open_to(scenario: Scenario, asked: Iterable[str] = ()) -> list[str]:
    """Return the settings that are available in a scenario, and the free axes among `asked`.

    A name that the scenario uses for its own axis isn't available.
    """
    names = [*SETTINGS, *filter(is_free, asked)]
    return [name for name in names if name not in scenario.axes or name in scenario.settings]


def sort_values(name: str, chosen: Iterable[str]) -> list[str]:
    """Return the chosen values of a setting without duplicates, in the order of `values`."""
    selected = set(chosen)
    return [value for value in values(name) if value in selected]


def with_settings(scenario: Scenario, asked: Mapping[str, Sequence[str]]) -> Scenario:
    """Return the scenario with an axis for each requested setting or free axis. `asked` maps their names to values.

    If the scenario already has a setting, the values are added to it. If an axis has several values, and the header has
    no comparison along it, comparisons are added. For a setting, the first value in the setting's order is compared
    with the others. For a free axis, each other value is compared with the first one. Comparisons of devices come
    before the header's comparisons.
    """
    axes = dict(scenario.axes)
    for name, chosen in asked.items():
        axes[name] = free_values(name, chosen) if is_free(name) else sort_values(name, [*chosen, *axes.get(name, ())])
    along = {entry.along for entry in scenario.compare}
    new_comparisons = [
        comparison
        for name in asked
        if len(axes[name]) > 1 and name not in along
        for comparison in (
            _compare_with_first(scenario, name, axes[name])
            if is_free(name)
            else [Comparison(name=f"{name} {axes[name][0]}", along=name, plus=axes[name][0])]
        )
    ]
    return replace(
        scenario,
        axes=axes,
        settings=[name for name in (*SETTINGS, CPUS, DEVICE) if name in asked or name in scenario.settings],
        environ=[*scenario.environ, *(name for name in asked if is_variable(name) and name not in scenario.environ)],
        compare=sorted([*scenario.compare, *new_comparisons], key=lambda entry: entry.along != DEVICE),
    )


def _compare_with_first(scenario: Scenario, name: str, levels: Sequence[str]) -> list[Comparison]:
    """Return comparisons of each later value with the first, for the time per step and the header's quantities."""
    first, *others = levels
    return [
        Comparison(
            name=f"{value} vs {first}" if name == DEVICE else f"{name} {value}",
            along=name,
            plus=value,
            against=first,
            of=quantity,
        )
        for quantity in (STEP, *scenario.quantities)
        for value in others
    ]


def find_thread_setting(text: str) -> str:
    """Return the first setting in a script's text that changes its number of threads or processes; empty if none."""
    match = _THREADS.search(text)
    return match[0].rstrip(" =") if match else ""
