import re
from xml.etree import ElementTree

import altair
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.report.charts import layout
from harness.report.charts.vega import Picture, make_file_names
from tests.factories import cell, cells, launch, rounds, run, scenario
from tests.report.charts.examples import HOSTILE, drawn, hostile, is_snapshot, kind, picture, results, values

KINDS = ["ratios", "times", "effects", "phases", "course"]


def test_a_table_has_its_comparisons_times_effects_phases_and_launches():
    made = list(drawn(results()))
    assert [kind(entry) for entry in made] == KINDS
    assert [entry.file for entry in made] == [f"charts/{name}-step.svg" for name in KINDS]


@pytest.mark.parametrize("shown", KINDS)
def test_the_specification_is_the_snapshot(shown):
    assert is_snapshot(picture(results(count=2 if shown == "course" else 5), shown))


def test_a_chart_without_enough_to_show_is_left_out():
    alone = dict.fromkeys(cells(["tf1.14"], modes=["graph"]), 0.01)
    assert [kind(entry) for entry in drawn(Results(run(alone), rounds(alone)))] == ["course"]
    assert [kind(entry) for entry in drawn(Results(run(alone), [launch(cell())]))] == []


def test_each_device_has_effects_of_its_own():
    members = [
        cell(environment, device=device, call="fit", mode=mode)
        for device in Device
        for environment in ("tf1.14", "tf2.0")
        for mode in ("graph", "eager")
    ]
    seconds = {member: 0.01 + 0.001 * place for place, member in enumerate(members)}
    made = [entry for entry in drawn(Results(run(seconds), rounds(seconds))) if kind(entry) == "effects"]
    assert [entry.name for entry in made] == ["effects-step-cpu", "effects-step-gpu"]
    assert [entry.words.title.rpartition(" on ")[2] for entry in made] == ["cpu", "gpu"]


def test_scenarios_whose_names_are_alike_have_files_of_their_own():
    names = ("a step", "a-step")
    seconds = {cell(of=name): 0.01 for name in names} | {cell("tf2.0", of=name): 0.02 for name in names}
    made = Results(run(seconds, scenarios=[scenario(name) for name in names]), rounds(seconds))
    assert [entry.name for entry in drawn(made) if kind(entry) == "ratios"] == ["ratios-a-step", "ratios-a-step-2"]


def test_what_stands_for_a_picture_says_its_content():
    ratios, times, effects, phases, course = (entry.words.alt for entry in drawn(results()))
    assert ratios.startswith("Chart of 10 comparisons of step, time of the first over time of the second: from 0.")
    assert "×, slower (fit: each release's default mode: tf2.0 vs tf1.14)." in ratios
    assert times.startswith("Chart of the time per step of 8 cells of step, from ")
    assert effects.startswith("Chart of the effect of each change in step, 6 effects: from 0.")
    assert "×, slower (" in effects
    assert course.startswith("Chart of 50 launches of step in order of time: none more than 3 % from ")
    assert phases.startswith("Chart of the phases before the steady state of 8 cells of step, mostly import. Total: ")


def test_words_are_sentences():
    for entry in drawn(results()):
        text = " ".join([entry.words.title, *entry.words.notes, entry.words.axis, entry.words.alt])
        assert not any(mark in text for mark in ("{", "}", "None", "  "))
        assert all(note.endswith(".") for note in entry.words.notes)
        assert entry.words.alt.endswith(".")


def test_words_of_an_untrusted_script_are_plain():
    for entry in drawn(hostile()):
        text = "".join([entry.words.title, *entry.words.notes, entry.words.axis, entry.words.alt])
        assert text.isprintable()
        assert HOSTILE not in text


def test_the_specifications_are_vega_lite():
    for entry in drawn(results()):
        altair.Chart.from_dict(dict(entry.specification))


def test_a_chart_is_drawn_to_any_width():
    """What is placed from the right edge is placed by Vega's own width, and no row has a label beside the plot."""
    for entry in drawn(results()):
        assert entry.specification["autosize"] == {"type": "fit-x", "contains": "padding"}
        for layer in entry.specification["layer"]:
            x, y = (layer["encoding"].get(channel, {}) for channel in ("x", "y"))
            assert x.get("value", 0) in (0, "width")
            assert y.get("field") != "name" or y["axis"]["labels"] is False


@given(st.lists(st.text(max_size=100), max_size=10))
def test_whatever_a_scenario_is_called_its_files_names_are_harmless_and_its_own(scenarios):
    names = make_file_names(scenarios)
    assert names.keys() == set(scenarios)
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", name) for name in names.values())


def test_a_usual_name_stays():
    assert make_file_names(["keras_step", "../../etc/passwd"]) == {
        "keras_step": "keras_step",
        "../../etc/passwd": "etc-passwd",
    }


# As SVG.

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def parsed() -> list[tuple[Picture, ElementTree.Element]]:
    return [(entry, ElementTree.fromstring(entry.svg())) for entry in drawn(results())]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_every_line_and_every_number_beside_it_is_text_in_the_picture(parsed):
    for each, root in parsed:
        told = texts(root)
        names = {
            value["name"]
            for layer in each.specification["layer"]
            for value in layer["data"]["values"]
            if "name" in value
        }
        assert names <= set(told)
        beside = [value["told"] for value in values(each, "text") if "told" in value]
        assert {" ".join(text.split()) for text in beside} <= {" ".join(text.split()) for text in told}


def test_axes_have_their_titles_with_units(parsed):
    for each, root in parsed:
        # a line that is too long goes on in the next
        told = "".join("".join(texts(root)).split())
        for part in (*each.words.axis.split("; "), each.words.title, *each.words.notes):
            assert "".join(part.split()) in told
    # what a sweep draws has tests of its own
    assert {kind(each) for each, _ in parsed} == set(KINDS)


def test_every_picture_is_as_wide_as_the_others(parsed):
    assert {root.attrib["width"] for _, root in parsed} == {str(layout.WIDTH)}


def test_a_screen_reader_finds_title_and_content(parsed):
    for each, root in parsed:
        assert root.attrib["role"] == "img"
        assert root.findtext(f"{SVG}title") == each.words.title
        assert root.findtext(f"{SVG}desc") == each.words.alt


def test_the_ground_is_white_on_a_dark_page_too(parsed):
    for _, root in parsed:
        ground = next(root.iter(f"{SVG}rect"))
        assert ground.attrib["fill"] == "white"
        assert (ground.attrib["width"], ground.attrib["height"]) == (root.attrib["width"], root.attrib["height"])


def test_a_picture_asks_no_host_for_anything(parsed):
    for each, _ in parsed:
        addresses = re.findall(r"https?://[^\"' ]+", each.svg())
        assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_strings_of_untrusted_scripts_are_harmless_text():
    for entry in drawn(hostile()):
        text = entry.svg()
        assert "\x1b" not in text
        root = ElementTree.fromstring(text)
        allowed = {"svg", "title", "desc", "g", "path", "rect", "text", "tspan", "line", "defs", "clipPath"}
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert "<script>alert(1)</script>" in "".join(texts(root))
