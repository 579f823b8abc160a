"""Settings: axes that every scenario has without a line in its header. The worker's kit applies them.

A scenario that declares an axis of a setting's name has its own: it is given to its function, and the setting cannot be
asked for there. Cells have a setting only where somebody asked for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.scenario import Comparison, Scenario

#: The value that sets nothing: what the release does by itself.
AS_IT_COMES = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what it is, and its values; of two that are compared the first one is told of."""

    about: str
    values: Sequence[str]


#: Every setting by name. scenarios/kit/settings.py has the same names and values.
SETTINGS: Mapping[str, Setting] = {
    "tf32": Setting("matrix products of float32 in TF32, on GPUs of compute capability 8.0 and up", ("on", "off")),
    "xla": Setting("what can be compiled with XLA is; off: nothing is, by Keras itself neither", ("on", "off")),
    "precision": Setting("Keras's policy of precision", ("mixed_float16", "float32")),
    "deterministic": Setting("operations with the same result in every run", ("on", "off")),
    "malloc": Setting("memory that was freed stays with the process", ("keep",)),
}


def values(name: str) -> tuple[str, ...]:
    """All that a setting can be, in the order in which tables have it."""
    return (*SETTINGS[name].values, AS_IT_COMES)


def open_to(scenario: Scenario) -> list[str]:
    """The settings that can be asked for in a scenario: all but those of whose name it has an axis of its own."""
    return [name for name in SETTINGS if name not in scenario.axes or name in scenario.settings]


def in_order(name: str, chosen: Iterable[str]) -> list[str]:
    """The chosen values of a setting, each once, in its order."""
    kept = set(chosen)
    return [value for value in values(name) if value in kept]


def with_settings(scenario: Scenario, asked: Mapping[str, Sequence[str]]) -> Scenario:
    """The scenario with an axis for each setting that was `asked` for, by name with its values.

    The axis has the values that the header gives it too. Where there are several, and the header does not compare
    along it, they are compared: the first in the setting's order with the others.
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
