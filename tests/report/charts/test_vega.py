import re
from xml.etree import ElementTree

import altair
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.analysis.tables import ScenarioTable
from harness.model.launch import Clock
from harness.model.scenario import PRINTED, STEP, Comparison
from harness.report import sections
from harness.report.blocks import Figure, Folded, Section, Text, find_pictures, number_pictures
from harness.report.charts import layout
from harness.report.charts.times import LOOKS
from harness.report.charts.vega import Picture, Words, make_file_name
from tests.factories import cell, cells, rounds, run, scenario
from tests.report.charts.examples import HOSTILE, drawn, hostile, kind, many, picture, results, values

KINDS = ["ratios", "times"]


def words(chart: Picture) -> list[str]:
    return [chart.words.title, *chart.words.notes, chart.words.axis, chart.words.alt]


def test_a_table_has_its_comparisons_and_times():
    charts = list(drawn(results()))
    assert [kind(chart) for chart in charts] == KINDS
    assert [chart.file for chart in charts] == [f"charts/{name}-step.svg" for name in KINDS]
    seconds = dict.fromkeys(cells(["tf1.14"], modes=["graph"]), 0.01)
    assert list(drawn(Results(run(seconds), rounds(seconds)))) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_specification_is_its_golden_file_and_vega_lite(name, is_golden_chart):
    chart = picture(results(spread=0.05), name)
    assert is_golden_chart(chart)
    altair.Chart.from_dict(dict(chart.specification))


def test_words_of_charts(snapshot):
    runs = {
        "five rounds": results(),
        "one round": results(count=1, spread=0.3),
        "intervals that leave the chart": results(count=2, spread=1.0),
        "many cells": many(60),
        "times far apart": results(dict(zip(cells(), (0.001, 0.002, 0.01, 0.1), strict=True))),
    }
    assert {
        name: {chart.name: words(chart) for chart in drawn(measured)} for name, measured in runs.items()
    } == snapshot


def test_times_of_more_values_than_looks_have_a_line_each():
    modes = [f"mode{at}" for at in range(len(LOOKS) + 1)]
    seconds = dict.fromkeys(cells(["tf1.14"], modes=modes), 0.01)
    planned = run(seconds, scenarios=[scenario(axes={**scenario().axes, "mode": modes})], reference="tf1.14")
    chart = picture(Results(planned, rounds(seconds)), "times")
    assert [point["name"] for point in values(chart, "point")] == [f"tf1.14 {mode}" for mode in modes]


def test_scenarios_and_quantities_whose_names_are_alike_have_files_of_their_own():
    names, numbers = ("a step", "a-Step"), [f"{PRINTED}{number}" for number in ("损失", "精度")]
    compare = [Comparison(of, along="environment", of=of) for of in (STEP, *numbers)]
    seconds = {cell(of=name): 0.01 for name in names} | {cell("tf2.0", of=name): 0.02 for name in names}
    launches = rounds(seconds, observations=dict.fromkeys(numbers, 0.5))
    both = Results(run(seconds, scenarios=[scenario(name, compare=compare) for name in names]), launches)
    charts = [chart.name for chart in find_pictures(sections.build(both)) if kind(chart) == "times"]
    endings = ["step", "step-printed", "step-printed-2", "Step-2", "Step-printed-3", "Step-printed-4"]
    assert charts == [f"times-a-{ending}" for ending in endings]


@given(st.lists(st.text(max_size=100), max_size=10, unique=True))
def test_whatever_a_scenario_is_called_its_files_names_are_harmless_and_its_own(scenarios):
    tables = [ScenarioTable(scenario(name), (), (), False, (), (), Clock.WALL) for name in scenarios]
    charts = [Figure(Picture(make_file_name("times", table), Words("", [], "", ""), {})) for table in tables]
    contents = [Section("Title", "title", [Folded("Charts", charts), Text("No chart.")])]
    names = [chart.name for chart in find_pictures(number_pictures(contents))]
    assert len({name.lower() for name in names}) == len(names) == len(scenarios)
    assert all(re.fullmatch(r"times-[A-Za-z0-9_-]{1,70}", name) for name in names)


# As SVG.

SVG = "{http://www.w3.org/2000/svg}"


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_a_picture_has_its_words_one_width_a_white_ground_a_title_and_no_address():
    # what a sweep draws has tests of its own
    for chart in drawn(results()):
        svg = chart.svg()
        root = ElementTree.fromstring(svg)
        # a line that is too long goes on in the next
        text = "".join("".join(texts(root)).split())
        beside = [value["told"] for value in values(chart, "text") if "told" in value]
        for part in (*beside, *chart.words.axis.split("; "), chart.words.title, *chart.words.notes):
            assert "".join(part.split()) in text
        assert root.attrib["width"] == str(layout.WIDTH)
        # a screen reader finds title and content
        assert root.attrib["role"] == "img"
        assert root.findtext(f"{SVG}title") == chart.words.title
        assert root.findtext(f"{SVG}desc") == chart.words.alt
        ground = next(root.iter(f"{SVG}rect"))
        assert [ground.attrib[name] for name in ("fill", "width", "height")] == [
            "white",
            root.attrib["width"],
            root.attrib["height"],
        ]
        addresses = re.findall(r"https?://[^\"' ]+", svg)
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
