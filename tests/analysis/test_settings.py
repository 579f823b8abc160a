"""Settings that differ between compared cells though nobody asked for it."""

from dataclasses import replace
from typing import Any

from harness.analysis.results import Results
from harness.model.launch import Launch
from harness.model.scenario import Cell
from harness.model.settings import with_settings
from harness.report.formats import json_
from harness.report.sections import settings, summary
from tests.factories import cell, cells, launch, run, scenario

OFF = {"xla": [], "precision": "float32", "deterministic": "off"}
OPTIMIZER = {**OFF, "xla": ["_update_step_xla"]}


def results(seen, **changes) :
    """A run in which each cell's launches saw these settings."""
    launches: list[Launch] = []
    for of, value in seen.items():
        launches += [launch(of, number=number, observations={"settings": value}) for number in range(6)]
    return Results(run(seen, **changes), launches)


def by_release(one, other) :
    return results({entry: one if entry.environment == "tf1.14" else other for entry in cells()})


def test_what_xla_compiles_is_said_where_it_differs() :
    (told,) = settings.describe_settings(by_release(OFF, OPTIMIZER))
    assert told == ("XLA compiles nothing in tf1.14 and Keras's optimizer in tf2.0; to make it equal, pass -a xla=off.")


def test_the_same_settings_are_not_told() :
    assert settings.describe_settings(by_release(OPTIMIZER, OPTIMIZER)) == []


def test_what_one_release_does_not_tell_is_no_difference() :
    assert settings.describe_settings(by_release({**OFF, "tf32": "on"}, OFF)) == []


def test_tf32_precision_and_determinism_are_said_too() :
    told = settings.describe_settings(
        by_release(
            {**OFF, "tf32": "off"}, {"xla": [], "tf32": "on", "precision": "mixed_float16", "deterministic": "on"}
        )
    )
    assert [entry.partition(";")[0] for entry in told] == [
        "Keras computes in float32 in tf1.14 and mixed_float16 in tf2.0",
        "Determinism of operations is off in tf1.14 and on in tf2.0",
        "TF32 is off in tf1.14 and on in tf2.0",
    ]


def asked(of) :
    return Cell("step", "tf2.0", cell().device, {**cell().axes, "deterministic": of})


def test_what_was_asked_for_is_not_told_and_what_it_brings_with_it_is() :
    made = results(
        {asked("on"): {**OFF, "deterministic": "on"}, asked("off"): OPTIMIZER},
        scenarios=[with_settings(scenario(), {"deterministic": ["on", "off"]})],
        reference="tf2.0",
    )
    assert settings.describe_settings(made) == [
        "XLA compiles Keras's optimizer with deterministic=off and nothing with deterministic=on; to make it equal, "
        "pass -a xla=off."
    ]


def test_the_sentence_follows_the_first_screen_and_is_in_the_report_as_data() :
    made = by_release(OFF, OPTIMIZER)
    (sentence,) = settings.describe_settings(made)
    _, section = summary.make_sections(made)
    assert any(getattr(block, "words", "") == sentence for block in section.blocks)
    (hidden,) = json_.build(made).settings
    assert hidden.text[0].lower() + hidden.text[1:] == sentence[0].lower() + sentence[1:]
    assert [seen.value for seen in hidden.difference.seen] == [[], ["_update_step_xla"]]


def faulting(counts, **changes) :
    """What is said of cells whose launches of 0.1 s had so many page faults a step."""
    launches = [
        launch(of, [0.1, 0.1], number, resources={"steady_minor_faults": 20.0 * each})  # 20 steps are timed
        for of, told in counts.items()
        for number, each in enumerate(told, 1)
    ]
    return settings.describe_page_faults(Results(run(counts, **changes), launches))


def test_page_faults_that_differ_between_launches_say_which_setting_is_without_them() :
    one, other, *_ = cells()
    assert faulting({one: [1000.0] * 5, other: [0.0, 0.0, 5000.0, 9000.0, 9000.0]}) == [
        "The number of page faults differs between launches of tf1.14 eager (0 to 9,000 per step), and changes their "
        "times. To avoid page faults, pass -a malloc=keep."
    ]
    (told,) = faulting({one: [0.0, 2000.0] * 3, other: [0.0, 9000.0] * 3})
    assert "changes their times; 1 more cell is affected." in told


def test_a_run_without_page_faults_says_what_measures_with_them() :
    kept = [replace(entry, axes={**entry.axes, "malloc": "keep"}) for entry in cells()]
    known = [with_settings(scenario(), {"malloc": ["keep"]})]
    assert faulting({entry: [0.0] * 3 for entry in kept}, scenarios=known) == [
        "Freed memory stays in the process (malloc=keep), so page faults don't add variability. To measure with each "
        "release's default, pass -a malloc=default."
    ]
    assert faulting({item: [0.0] * 3 for item in cells()}) == []


def test_page_faults_that_take_no_time_are_not_told() :
    assert faulting({entry: [0.0, 100.0] * 3 for entry in cells()}) == []
    assert faulting({item: [9000.0] * 6 for item in cells()}) == []


def test_runs_of_before_tell_nothing() :
    launches = [launch(entry, number=number) for entry in cells() for number in range(6)]
    assert settings.describe_settings(Results(run(), launches)) == []
