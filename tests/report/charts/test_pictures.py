import re

import altair
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.report.charts.picture import file_names
from tests.factories import cell, rounds, run, scenario
from tests.report.charts.examples import HOSTILE, drawn, hostile, kind, results

KINDS = ["ratios", "times", "effects", "phases", "course"]


def test_a_table_has_its_comparisons_times_effects_phases_and_launches():
    made = list(drawn(results()))
    assert [kind(each) for each in made] == KINDS
    assert [each.file for each in made] == [f"charts/{name}-step.svg" for name in KINDS]


def test_each_device_has_effects_of_its_own():
    members = [
        cell(environment, device=device, call="fit", mode=mode)
        for device in Device
        for environment in ("tf1.14", "tf2.0")
        for mode in ("graph", "eager")
    ]
    seconds = {member: 0.01 + 0.001 * place for place, member in enumerate(members)}
    made = [each for each in drawn(Results(run(seconds), rounds(seconds))) if kind(each) == "effects"]
    assert [each.name for each in made] == ["effects-step-cpu", "effects-step-gpu"]
    assert [each.words.title.rpartition(" on ")[2] for each in made] == ["cpu", "gpu"]


def test_scenarios_whose_names_are_alike_have_files_of_their_own():
    names = ("a step", "a-step")
    seconds = {cell(of=name): 0.01 for name in names} | {cell("tf2.0", of=name): 0.02 for name in names}
    made = Results(run(seconds, scenarios=[scenario(name) for name in names]), rounds(seconds))
    assert [each.name for each in drawn(made) if kind(each) == "ratios"] == ["ratios-a-step", "ratios-a-step-2"]


def test_what_stands_for_a_picture_says_its_content():
    ratios, times, effects, phases, course = (each.words.alt for each in drawn(results()))
    assert ratios.startswith("Chart of 10 comparisons of step, time of the first over time of the second: from 0.")
    assert "×, slower (fit: each release's default mode: tf2.0 vs tf1.14)." in ratios
    assert times.startswith("Chart of the time per step of 8 cells of step, from ")
    assert effects.startswith("Chart of what explains the differences in step, 6 effects: from 0.")
    assert course.startswith("Chart of 50 launches of step in order of time: none more than 3 % from ")
    assert phases.startswith("Chart of the phases before the steady state of 8 cells of step, most of it import: ")


def test_words_are_sentences():
    for each in drawn(results()):
        text = " ".join([each.words.title, *each.words.notes, each.words.axis, each.words.alt])
        assert not any(mark in text for mark in ("{", "}", "None", "  "))
        assert all(note.endswith(".") for note in each.words.notes)
        assert each.words.alt.endswith(".")


def test_words_of_an_untrusted_script_are_plain():
    for each in drawn(hostile()):
        text = "".join([each.words.title, *each.words.notes, each.words.axis, each.words.alt])
        assert text.isprintable()
        assert HOSTILE not in text


def test_the_specifications_are_vega_lite():
    for each in drawn(results()):
        altair.Chart.from_dict(dict(each.specification))


def test_a_chart_is_drawn_to_any_width():
    """What is placed from the right edge is placed by Vega's own width, and no row has a label beside the plot."""
    for each in drawn(results()):
        assert each.specification["autosize"] == {"type": "fit-x", "contains": "padding"}
        for layer in each.specification["layer"]:
            x, y = (layer["encoding"].get(channel, {}) for channel in ("x", "y"))
            assert x.get("value", 0) in (0, "width")
            assert y.get("field") != "name" or y["axis"]["labels"] is False


@given(st.lists(st.text(max_size=100), max_size=10))
def test_whatever_a_scenario_is_called_its_files_names_are_harmless_and_its_own(scenarios):
    names = file_names(scenarios)
    assert names.keys() == set(scenarios)
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", name) for name in names.values())


def test_a_usual_name_stays():
    assert file_names(["keras_step", "../../etc/passwd"]) == {
        "keras_step": "keras_step",
        "../../etc/passwd": "etc-passwd",
    }
