"""Settings that differ between compared cells though nobody asked for it."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.launch import Launch
from harness.model.scenario import Cell
from harness.model.settings import with_settings
from harness.report.formats import json_
from harness.report.sections import settings, summary
from tests.factories import cell, cells, launch, run, scenario

OFF = {"xla": [], "precision": "float32", "deterministic": "off"}
OPTIMIZER = {**OFF, "xla": ["_update_step_xla"]}


def results(settings_seen, **changes):
    """A run in which each cell's launches saw these settings."""
    launches: list[Launch] = []
    for member, value in settings_seen.items():
        launches += [launch(member, number=number, observations={"settings": value}) for number in range(6)]
    return Results(run(settings_seen, **changes), launches)


def by_release(one, other):
    return results({entry: one if entry.environment == "tf1.14" else other for entry in cells()})


def test_settings_that_differ_are_told(snapshot):
    others = {"xla": [], "tf32": "on", "precision": "mixed_float16", "deterministic": "on"}
    axes = {
        member: Cell("step", "tf2.0", cell().device, {**cell().axes, "deterministic": member})
        for member in ("on", "off")
    }
    # what was asked for is not told, and what it brings with it is
    deterministic = results(
        {axes["on"]: {**OFF, "deterministic": "on"}, axes["off"]: OPTIMIZER},
        scenarios=[with_settings(scenario(), {"deterministic": ["on", "off"]})],
        reference="tf2.0",
    )
    cases = {
        "XLA": by_release(OFF, OPTIMIZER),
        "TF32, precision, and determinism": by_release({**OFF, "tf32": "off"}, others),
        "asked for": deterministic,
    }
    assert {case: settings.describe_settings(results_) for case, results_ in cases.items()} == snapshot
    # what is the same, and what one release or an old run does not tell
    old = [launch(entry, number=number) for entry in cells() for number in range(6)]
    for results_ in (by_release(OPTIMIZER, OPTIMIZER), by_release({**OFF, "tf32": "on"}, OFF), Results(run(), old)):
        assert settings.describe_settings(results_) == []


def test_the_sentence_is_on_the_first_screen_and_in_the_report_as_data():
    results_ = by_release(OFF, OPTIMIZER)
    (sentence,) = settings.describe_settings(results_)
    (section,) = summary.make_sections(results_)
    assert any(getattr(block, "words", "") == sentence for block in section.blocks)
    (hidden,) = json_.build(results_).settings
    assert hidden.text[0].lower() + hidden.text[1:] == sentence[0].lower() + sentence[1:]
    assert [settings_seen.value for settings_seen in hidden.difference.seen] == [[], ["_update_step_xla"]]


def faulting(counts, **changes):
    """What is said of cells whose launches of 0.1 s had so many page faults a step."""
    launches = [
        launch(member, [0.1, 0.1], number, resources={"steady_minor_faults": 20.0 * count})  # 20 steps are timed
        for member, faults in counts.items()
        for number, count in enumerate(faults, 1)
    ]
    return settings.describe_page_faults(Results(run(counts, **changes), launches))


def test_page_faults_that_differ_between_launches_say_which_setting_is_without_them(snapshot):
    one, other, *_ = cells()
    keeping = [replace(entry, axes={**entry.axes, "malloc": "keep"}) for entry in cells()]
    scenarios = [with_settings(scenario(), {"malloc": ["keep"]})]
    cases = {
        "one cell": faulting({one: [1000.0] * 5, other: [0.0, 0.0, 5000.0, 9000.0, 9000.0]}),
        "two cells": faulting({one: [0.0, 2000.0] * 3, other: [0.0, 9000.0] * 3}),
        "memory is kept": faulting({entry: [0.0, 9000.0] * 3 for entry in keeping}, scenarios=scenarios),
    }
    assert cases == snapshot
    # those that take no time, or are in all launches, are not told
    for counts in ([0.0] * 3, [0.0, 100.0] * 3, [9000.0] * 6):
        assert faulting(dict.fromkeys(cells(), counts)) == [], counts
