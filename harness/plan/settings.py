"""Settings and free axes: adds them to scenarios as axes, and finds cells that can't have a setting.

The source code of releases shows which settings they have. scenarios/kit/settings.py applies settings, and checks that
they take effect.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from harness.model.environment import Device, Environment
from harness.model.gpu import Gpu, format_version
from harness.model.scenario import Cell, Scenario, Suite, SuitePart
from harness.model.settings import (
    AS_IT_COMES,
    SETTINGS,
    free_values,
    is_free,
    open_to,
    sort_values,
    values,
    with_settings,
)
from harness.plan.gpus import AMPERE
from harness.plan.selection import Catalog, Selection, resolve

#: The first TensorFlow release with a switch for TF32, with Keras's precision policies, and with a switch that makes
#: operations deterministic on a CPU too.
_TF32, _POLICIES, _CPU_DETERMINISM = (2, 4), (2, 1), (2, 8)


def add_setting_axes(selection: Selection, catalog: Catalog) -> Catalog:
    """Return the catalog with the settings in the selection and in the suite as axes of the scenarios.

    Free axes in the selection, such as the number of cores, become axes too.

    A selected setting applies to each part of a suite that has at most one value of the setting. If a part compares
    several values, the selection filters them. If only some parts with a scenario have a setting, the other parts get
    the value `default`. Raises UsageError for an unknown value of a setting, and for an invalid number of cores.
    """
    suite = catalog.suites.get(selection.suite)
    chosen = resolve(selection.scenarios or ["*"], list(catalog.scenarios), "scenario")
    selected = [catalog.scenarios[name] for name in chosen]
    typed = {
        name: _resolve_values(name, patterns, selected)
        for name, patterns in selection.axes.items()
        if name in SETTINGS or (is_free(name) and any(name in open_to(scenario, [name]) for scenario in selected))
    }
    typed = {name: resolved for name, resolved in typed.items() if resolved}
    if suite is None:
        extended = _extend_scenarios({name: [typed] for name in chosen}, catalog, typed)
        return replace(catalog, scenarios={**catalog.scenarios, **extended})
    parts = [_add_selected(part, typed, catalog) for part in suite.parts]
    by_scenario: dict[str, list[Mapping[str, Sequence[str]]]] = {}
    for part in parts:
        by_scenario.setdefault(part.scenario, []).append(part.axes)
    extended = _extend_scenarios(by_scenario, catalog, typed)
    extended_suite = _add_default_values(replace(suite, parts=parts), catalog.scenarios, extended)
    return replace(
        catalog, scenarios={**catalog.scenarios, **extended}, suites={**catalog.suites, suite.name: extended_suite}
    )


def _resolve_values(name: str, patterns: Sequence[str], scenarios: Iterable[Scenario] = ()) -> list[str]:
    """Return the values of a setting that the patterns match. For a free axis, the patterns are its values.

    If a scenario declares an axis with the name of the setting, the patterns may match values of that axis too.
    """
    if is_free(name):
        return free_values(name, patterns)
    axis_values = [value for scenario in scenarios if name not in open_to(scenario) for value in scenario.axes[name]]
    return sort_values(
        name, resolve(patterns, list(dict.fromkeys([*values(name), *axis_values])), f"value of the setting {name}")
    )


def _add_selected(part: SuitePart, typed: Mapping[str, Sequence[str]], catalog: Catalog) -> SuitePart:
    """Return a part of a suite with resolved values, and with the selected settings that it doesn't compare."""
    scenario = catalog.scenarios.get(part.scenario)
    available = open_to(scenario, typed) if scenario else []
    resolved = {
        name: _resolve_values(name, patterns) if name in available else patterns for name, patterns in part.axes.items()
    }
    added = {name: chosen for name, chosen in typed.items() if name in available and len(resolved.get(name, ())) <= 1}
    return replace(part, axes={**resolved, **added})


def _extend_scenarios(
    by_scenario: Mapping[str, Sequence[Mapping[str, Sequence[str]]]], catalog: Catalog, typed: Iterable[str]
) -> dict[str, Scenario]:
    """Return the scenarios with an axis for each setting in their parts, with `default` if some parts don't set it.

    `typed` contains the names in the selection. Free axes among them become axes too.
    """
    extended = {}
    for scenario in (catalog.scenarios[name] for name in by_scenario if name in catalog.scenarios):
        by_setting: dict[str, list[str]] = {}
        for name in open_to(scenario, typed):
            value_lists = [part[name] for part in by_scenario[scenario.name] if name in part]
            if value_lists:
                is_partial = len(value_lists) < len(by_scenario[scenario.name]) and name not in scenario.axes
                by_setting[name] = [value for levels in value_lists for value in levels] + [AS_IT_COMES] * is_partial
        extended[scenario.name] = with_settings(scenario, by_setting)
    return extended


def _add_default_values(
    suite: Suite, scenarios_before: Mapping[str, Scenario], scenarios: Mapping[str, Scenario]
) -> Suite:
    """Return the suite, with the value `default` for each setting that only other parts with the same scenario have."""

    def complete(part: SuitePart) -> SuitePart:
        scenario = scenarios.get(part.scenario)
        if scenario is None:
            return part
        new_settings = [name for name in scenario.settings if name not in scenarios_before[part.scenario].axes]
        return replace(part, axes={**{name: [AS_IT_COMES] for name in new_settings}, **part.axes})

    return replace(suite, parts=[complete(part) for part in suite.parts])


def explain_refusal(
    cell: Cell, scenario: Scenario, environment: Environment, gpus: Sequence[Gpu]
) -> tuple[str, str] | None:
    """Return why the cell can't have one of its settings (a clause) and advice (a sentence); None if it can."""
    reasons = (
        _explain_setting(name, cell, scenario, environment, gpus)
        for name in scenario.settings
        if cell.axes[name] != AS_IT_COMES
    )
    return next(filter(None, reasons), None)


def _explain_setting(
    name: str, cell: Cell, scenario: Scenario, environment: Environment, gpus: Sequence[Gpu]
) -> tuple[str, str] | None:
    """Return why the cell can't have its value of the setting `name`, and advice; None if it can."""
    is_on_cpu = cell.device is Device.CPU
    old_card = next((gpu for gpu in gpus if gpu.capability < AMPERE), None)
    advice = "Choose a newer environment."
    match name, cell.axes[name]:
        case ("cuda_loading" | "cudnn_autotune", _) if is_on_cpu:
            reason = f"{name} is a setting of NVIDIA GPUs, but this cell runs on the CPU"
            advice = f"Add --gpu, or omit {name}."
        case ("cuda_loading", "lazy") if environment.cuda_image:
            image = f"the image of {environment.name} has CUDA {environment.cuda}"
            reason = f"lazy loading needs CUDA 11.7 or newer, but {image}"
            advice = "Choose tf2.5 or a newer environment."
        case ("tf32", _) if is_on_cpu:
            reason = "TF32 is a format of NVIDIA GPUs, but this cell runs on the CPU"
            advice = "Add --gpu, or omit tf32."
        case ("tf32", "on") if environment.release < _TF32 and not environment.gpu_image:
            reason = f"TF32 needs TensorFlow 2.4 or newer (CUDA 11), but {environment.name} is older"
        case ("tf32", "on") if old_card:
            capability = format_version(old_card.capability)
            reason = f"TF32 needs a GPU of compute capability 8.0 or higher, but {old_card.name} has {capability}"
            advice = ""
        case ("precision", _) if not scenario.uses_keras:
            reason, advice = f"precision is a Keras policy, but {scenario.name} doesn't use Keras", "Omit precision."
        case ("precision", "mixed_float16") if environment.release < _POLICIES:
            reason = f"mixed-precision policies of Keras need TensorFlow 2.1 or newer, but {environment.name} is older"
        case ("deterministic", "on") if is_on_cpu and environment.release < _CPU_DETERMINISM:
            reason = "up to TensorFlow 2.7, operations can be deterministic only on GPUs, but "
            reason += f"{environment.name} runs on a CPU"
            advice = "Add --gpu, or choose an environment of TensorFlow 2.8 or newer."
        case _:
            return None
    return reason, advice
