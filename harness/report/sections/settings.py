"""Settings of TensorFlow that differ between compared cells, although the request doesn't set them."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.analysis.behaviour import SettingDifference
from harness.analysis.distribution import FAULTS, compare_faults
from harness.analysis.results import Results
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted, joined
from harness.report import names

#: The largest number of XLA-compiled functions that a sentence lists.
FUNCTIONS = 3

#: Functions that Keras compiles with XLA on its own.
_KERAS_FUNCTIONS = {"_update_step_xla": "Keras's optimizer", "one_step_on_data": "Keras's step"}

#: Page faults are reported if launches differ by more than this share of a step because of them.
SHARE = 0.01

#: The start of the sentence on a setting, and the value that every release and GPU supports.
_SUBJECTS = {
    "tf32": ("TF32 is", "off"),
    "xla": ("XLA compiles", "off"),
    "precision": ("Keras computes in", "float32"),
    "deterministic": ("determinism of operations is", "off"),
}


def describe_settings(results: Results) -> list[str]:
    """Return a sentence for each setting that differs, such as `XLA compiles nothing in tf2.0 and …; … -a xla=off`."""
    has_several_scenarios = len({setting.scenario.name for setting in results.settings}) > 1
    sentences = [
        (setting.scenario.name if has_several_scenarios else "", describe_setting(setting))
        for setting in results.settings
    ]
    return [f"{name}: {text}" if name else f"{text[0].upper()}{text[1:]}" for name, text in sentences]


def describe_page_faults(results: Results) -> list[str]:
    """Return a sentence about page faults that make launches of a cell differ, and the setting that avoids them."""
    by_share = [
        (share, table, cell)
        for table in results.tables
        for cell in results.measured[table.scenario.name]
        if cell.cell.axes.get("malloc") != "keep"
        if (share := compare_faults(cell.used, cell.step)) > SHARE
    ]
    if not by_share:
        return []
    _, table, cell = max(by_share, key=lambda entry: entry[0])
    faults = cell.used.resources[FAULTS]
    others = f"; {counted(len(by_share) - 1, 'more cell', 'is')} affected" if len(by_share) > 1 else ""
    return [
        f"The number of page faults differs between launches of {names.name_measured(table, cell)} ({faults.low:,.0f} "
        f"to {faults.high:,.0f} per step), and changes their times{others}. To avoid page faults, pass -a malloc=keep."
    ]


def describe_setting(difference: SettingDifference) -> str:
    """Return a sentence on a setting that differs, and how to make it equal."""
    subject, common = _SUBJECTS.get(difference.setting, (f"{difference.setting} is", ""))
    text = joined(
        [
            f"{_format_value(difference.setting, seen.value)} {_name_places(difference, seen.places)}"
            for seen in difference.seen
        ]
    )
    return f"{subject} {text}{f'; to make it equal, pass -a {difference.setting}={common}' if common else ''}."


def _format_value(setting: str, value: Any) -> str:
    if setting != "xla":
        return str(value)
    texts = (
        [_KERAS_FUNCTIONS.get(name, str(name)) for name in value] if isinstance(value, list | tuple) else [str(value)]
    )
    remainder = [f"{len(texts) - FUNCTIONS} more"] if len(texts) > FUNCTIONS else []
    return joined([*texts[:FUNCTIONS], *remainder]) or "nothing"


def _name_places(difference: SettingDifference, places: Sequence[Mapping[str, str]]) -> str:
    """Name the environments or axis values with which a value was observed."""
    if ENVIRONMENT in places[0]:
        return f"in {joined([place.get(ENVIRONMENT, '') for place in places])}"
    labels = [" ".join(names.label(difference.scenario, *pair) for pair in place.items()) for place in places]
    return f"with {joined(labels)}"
