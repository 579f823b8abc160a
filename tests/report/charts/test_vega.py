import re
from xml.etree import ElementTree

import altair
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.report.charts import layout
from harness.report.charts.vega import Picture, make_file_names
from tests.factories import cell, cells, launch, rounds, run, scenario
from tests.report.charts.examples import HOSTILE, drawn, hostile, is_snapshot, kind, many, picture, results, values

KINDS = ["ratios", "times", "effects", "phases", "course"]


def words(chart: Picture) -> list[str]:
    return [chart.words.title, *chart.words.notes, chart.words.axis, chart.words.alt]


def test_a_table_has_its_comparisons_times_effects_phases_and_launches():
    charts = list(drawn(results()))
    assert [kind(chart) for chart in charts] == KINDS
    assert [chart.file for chart in charts] == [f"charts/{name}-step.svg" for name in KINDS]
    seconds = dict.fromkeys(cells(["tf1.14"], modes=["graph"]), 0.01)
    assert [kind(chart) for chart in drawn(Results(run(seconds), rounds(seconds)))] == ["course"]
    assert list(drawn(Results(run(seconds), [launch(cell())]))) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_specification_is_the_snapshot_and_vega_lite(name):
    chart = picture(results(count=2 if name == "course" else 5), name)
    assert is_snapshot(chart)
    altair.Chart.from_dict(dict(chart.specification))


def test_words_of_charts(snapshot: SnapshotAssertion):
    runs = {
        "five rounds": results(),
        "one round": results(count=1, spread=0.3),
        "intervals that leave the chart": results(count=2, spread=1.0),
        "many cells": many(60),
    }
    assert {
        name: {chart.name: words(chart) for chart in drawn(measured)} for name, measured in runs.items()
    } == snapshot


def test_each_device_has_effects_of_its_own():
    members = [
        cell(environment, device=device, call="fit", mode=mode)
        for device in Device
        for environment in ("tf1.14", "tf2.0")
        for mode in ("graph", "eager")
    ]
    seconds = {member: 0.01 + 0.001 * place for place, member in enumerate(members)}
    charts = [chart for chart in drawn(Results(run(seconds), rounds(seconds))) if kind(chart) == "effects"]
    assert [chart.name for chart in charts] == ["effects-step-cpu", "effects-step-gpu"]
    assert [chart.words.title.rpartition(" on ")[2] for chart in charts] == ["cpu", "gpu"]


def test_scenarios_whose_names_are_alike_have_files_of_their_own():
    names = ("a step", "a-step")
    seconds = {cell(of=name): 0.01 for name in names} | {cell("tf2.0", of=name): 0.02 for name in names}
    both = Results(run(seconds, scenarios=[scenario(name) for name in names]), rounds(seconds))
    assert [chart.name for chart in drawn(both) if kind(chart) == "ratios"] == ["ratios-a-step", "ratios-a-step-2"]
    assert make_file_names(["keras_step", "../../etc/passwd"]) == {
        "keras_step": "keras_step",
        "../../etc/passwd": "etc-passwd",
    }


@given(st.lists(st.text(max_size=100), max_size=10))
def test_whatever_a_scenario_is_called_its_files_names_are_harmless_and_its_own(scenarios):
    names = make_file_names(scenarios)
    assert names.keys() == set(scenarios)
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", name) for name in names.values())


def test_a_chart_is_drawn_to_any_width():
    """What is placed from the right edge is placed by Vega's own width, and no row has a label beside the plot."""
    for chart in drawn(results()):
        assert chart.specification["autosize"] == {"type": "fit-x", "contains": "padding"}
        for layer in chart.specification["layer"]:
            x, y = (layer["encoding"].get(channel, {}) for channel in ("x", "y"))
            assert x.get("value", 0) in (0, "width")
            assert y.get("field") != "name" or y["axis"]["labels"] is False


# As SVG.

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def parsed() -> list[tuple[Picture, ElementTree.Element]]:
    return [(chart, ElementTree.fromstring(chart.svg())) for chart in drawn(results())]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_lines_numbers_axes_and_titles_are_text_in_the_picture(parsed):
    # what a sweep draws has tests of its own
    assert {kind(chart) for chart, _ in parsed} == set(KINDS)
    for chart, root in parsed:
        layers = chart.specification["layer"]
        names = {value["name"] for layer in layers for value in layer["data"]["values"] if "name" in value}
        assert names <= set(texts(root))
        beside = [value["told"] for value in values(chart, "text") if "told" in value]
        assert {" ".join(text.split()) for text in beside} <= {" ".join(text.split()) for text in texts(root)}
        # a line that is too long goes on in the next
        text = "".join("".join(texts(root)).split())
        for part in (*chart.words.axis.split("; "), chart.words.title, *chart.words.notes):
            assert "".join(part.split()) in text


def test_every_picture_has_one_width_a_white_ground_a_title_and_no_address(parsed):
    for chart, root in parsed:
        assert root.attrib["width"] == str(layout.WIDTH)
        # a screen reader finds title and content
        assert root.attrib["role"] == "img"
        assert root.findtext(f"{SVG}title") == chart.words.title
        assert root.findtext(f"{SVG}desc") == chart.words.alt
        ground = next(root.iter(f"{SVG}rect"))
        assert ground.attrib["fill"] == "white"
        assert (ground.attrib["width"], ground.attrib["height"]) == (root.attrib["width"], root.attrib["height"])
        addresses = re.findall(r"https?://[^\"' ]+", chart.svg())
        assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_strings_of_untrusted_scripts_are_harmless_text():
    for chart in drawn(hostile()):
        text = "".join(words(chart))
        assert text.isprintable()
        assert HOSTILE not in text
        svg = chart.svg()
        assert "\x1b" not in svg
        root = ElementTree.fromstring(svg)
        allowed = {"svg", "title", "desc", "g", "path", "rect", "text", "tspan", "line", "defs", "clipPath"}
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert "<script>alert(1)</script>" in "".join(texts(root))
