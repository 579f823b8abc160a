"""Settings: axes that every scenario has without a line in its header. The worker's kit applies them.

If a scenario declares an axis with the name of a setting, its function gets that axis, and the setting isn't available
there. Cells have a setting only if somebody requested it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.scenario import Comparison, Scenario

#: The value that changes nothing: the default of the release.
AS_IT_COMES = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: a description, and its values. A comparison of two values describes the first one."""

    about: str
    values: Sequence[str]


#: Every setting by name. scenarios/kit/settings.py has the same names and values.
SETTINGS: Mapping[str, Setting] = {
    "tf32": Setting("float32 matrix products in TF32, on GPUs of compute capability 8.0 and later", ("on", "off")),
    "xla": Setting("on: XLA compiles everything it can; off: XLA compiles nothing, not even for Keras", ("on", "off")),
    "precision": Setting("Keras's precision policy", ("mixed_float16", "float32")),
    "deterministic": Setting("operations with the same result in every run", ("on", "off")),
    "malloc": Setting("the process keeps the memory that it has freed", ("keep",)),
}


def values(name: str) -> tuple[str, ...]:
    """Return all values of a setting, in the order of tables."""
    return (*SETTINGS[name].values, AS_IT_COMES)


def open_to(scenario: Scenario) -> list[str]:
    """Return the settings available in a scenario: all except those with the name of one of its own axes."""
    return [name for name in SETTINGS if name not in scenario.axes or name in scenario.settings]


def in_order(name: str, chosen: Iterable[str]) -> list[str]:
    """Return the chosen values of a setting, each once, in the order of `values`."""
    kept = set(chosen)
    return [value for value in values(name) if value in kept]


def with_settings(scenario: Scenario, asked: Mapping[str, Sequence[str]]) -> Scenario:
    """Return the scenario with an axis for each requested setting. `asked` maps its name to the values.

    The axis also has the values from the header. If there are several, and the header has no comparison along the axis,
    one is added: the first value, in the setting's order, with the others.
    """
    axes = dict(scenario.axes)
    for name, chosen in asked.items():
        axes[name] = in_order(name, [*chosen, *axes.get(name, ())])
    along = {entry.along for entry in scenario.compare}
    compared = [
        Comparison(name=f"{name} {axes[name][0]}", along=name, plus=axes[name][0])
        for name in asked
        if len(axes[name]) > 1 and name not in along
    ]
    return replace(
        scenario,
        axes=axes,
        settings=[name for name in SETTINGS if name in asked or name in scenario.settings],
        compare=[*scenario.compare, *compared],
    )
