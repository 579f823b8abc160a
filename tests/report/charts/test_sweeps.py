import math
from dataclasses import replace
from xml.etree import ElementTree

import altair
import pytest

from harness.analysis.results import Results
from harness.model.scenario import Sweep
from harness.report.charts.sweeps import CURVES, PANELS
from tests.report.charts.examples import HOSTILE, is_snapshot, picture
from tests.swept import CROSSING, SIZES, seconds, swept, swept_run


def chart(times=None, **changes):
    return picture(Results(*swept_run(times or seconds(CROSSING, ("tf1.14", "tf2.0")), **changes)), "sweeps")


def values(of, mark, panel=0):
    """What one panel's marks of a type show."""
    layers = [entry for entry in of.specification["concat"][panel]["layer"] if entry["mark"]["type"] == mark]
    return [value for layer in layers for value in layer["data"]["values"]]


def encoding(of, mark="line"):
    (found,) = (entry for entry in of.specification["concat"][0]["layer"] if entry["mark"]["type"] == mark)
    return found["encoding"]


def test_the_specification_is_the_snapshot_and_vega_lite():
    assert is_snapshot(chart())
    altair.Chart.from_dict(dict(chart().specification))


def test_each_environment_is_a_panel_with_a_curve_for_each_variant():
    made = chart()
    assert [panel["title"]["text"] for panel in made.specification["concat"]] == ["tf1.14", "tf2.0"]
    line = [(value["series"], value["size"]) for value in values(made, "line")]
    assert set(line) >= {(series, float(size)) for series in ("numpy", "compiled") for size in SIZES}
    points = [(value["series"], value["size"]) for value in values(made, "point") if "series" in value]
    assert points == [(series, float(size)) for series in ("numpy", "compiled") for size in SIZES]
    assert [value["time"] for value in values(made, "line")][:1] == pytest.approx([math.sqrt(2.0)], rel=0.05)


def test_where_nothing_but_environments_is_compared_these_are_the_curves():
    releases = swept(compare=swept().compare[1:], axes={"size": list(SIZES)})
    times = {
        replace(cell, axes={"size": cell.axes["size"]}): each * (2.0 if cell.environment == "tf2.0" else 1.0)
        for cell, each in seconds(CROSSING, ("tf1.14", "tf2.0")).items()
        if cell.axes["variant"] == "numpy"
    }
    made = chart(times, of=releases)
    assert len(made.specification["concat"]) == 1
    assert "title" not in made.specification["concat"][0]
    assert dict.fromkeys(value["series"] for value in values(made, "line")) == {"tf1.14": None, "tf2.0": None}


def test_both_axes_are_logarithmic_and_have_their_units():
    axes = encoding(chart())
    assert (axes["x"]["scale"]["type"], axes["y"]["scale"]["type"]) == ("log", "log")
    assert axes["x"]["axis"]["title"] == "size, values"
    assert axes["x"]["axis"]["values"] == [float(size) for size in SIZES]
    assert axes["y"]["axis"]["title"] == "time per step, µs (log scale)"


def test_a_sweep_that_begins_with_zero_has_a_linear_axis():
    ratios = {"0": 0.5, "1": 0.8, "2": 2.0}
    axes = encoding(chart(seconds(ratios), of=swept(["0", "1", "2"], sweeps={"size": Sweep()})))
    assert axes["x"]["scale"]["type"] == "linear"
    assert axes["x"]["axis"]["title"] == "size"


def test_points_have_their_intervals_and_crossings_theirs():
    made = chart(spread=0.01)
    bars = [value for value in values(made, "rule") if "low" in value]
    assert len(bars) == 2 * len(SIZES)
    (ring,) = [value for value in values(made, "point") if "told" in value]
    (span,) = [value for value in values(made, "rule") if "end" in value]
    assert span["size"] <= ring["size"] <= span["end"]
    # the ring lies on both curves
    sides = {value["series"]: value["time"] for value in values(made, "line") if value["size"] == 1024.0}
    assert min(sides.values()) < ring["time"]
    assert [value["told"] for value in values(made, "text")] == [ring["told"]]


def test_one_round_has_points_and_no_intervals():
    made = chart(count=1)
    assert values(made, "rule") == []
    assert made.words.notes == ["From one round: no intervals. Rings: crossings."]


def test_curves_part_by_shape_as_well_as_by_colour():
    points = encoding(chart(seconds(dict.fromkeys(SIZES, 2.0))), "point")
    assert len(set(points["shape"]["scale"]["range"])) == len(points["shape"]["scale"]["domain"]) == 2


def test_more_panels_than_there_is_room_for_are_told():
    many = [f"dtype{index}" for index in range(PANELS + 3)]
    axes = {"variant": ["numpy", "compiled"], "size": list(SIZES), "dtype": many}
    times = {cell: each for dtype in many for cell, each in seconds(CROSSING, dtype=dtype).items()}
    made = chart(times, count=1, of=swept(axes=axes))
    assert len(made.specification["concat"]) == PANELS
    assert f"Only {PANELS} of {PANELS + 3} panels are drawn: the first ones." in made.words.notes


def test_more_curves_than_shapes_are_told():
    names = [f"variant {letter}" for letter in "abcdefgh"]
    of = swept(
        axes={"variant": names, "size": ["1", "32"]}, compare=[type(swept().compare[0])("all", "variant", names[0])]
    )
    one, *_ = seconds({"1": 1.0, "32": 1.0})
    times = {
        replace(one, axes={"variant": name, "size": size}): 0.001 * (1 + index)
        for index, name in enumerate(names)
        for size in ("1", "32")
    }
    made = chart(times, of=of)
    assert len({value["series"] for value in values(made, "line")}) == CURVES
    assert f"Only {CURVES} of 8 curves are drawn: the first ones." in made.words.notes


def test_only_crossings_of_drawn_curves_are_marked():
    releases = [f"tf2.{minor}" for minor in range(2 + CURVES)]
    of = swept(compare=swept().compare[1:], axes={"size": list(SIZES)})
    one, *_ = seconds(CROSSING)
    # each release crosses the first one, and no other
    times = {
        replace(one, environment=release, axes={"size": size}): 1e-6 * (1.0 + index * ratio) if index else 2e-6
        for index, release in enumerate(releases)
        for size, ratio in CROSSING.items()
    }
    made = chart(times, of=of, count=1, reference=releases[0])
    assert len({value["series"] for value in values(made, "line")}) == CURVES
    assert len([value for value in values(made, "point") if "told" in value]) == CURVES - 1
    assert f"{CURVES - 1} crossings marked" in made.words.alt


def test_what_stands_for_it_says_its_content():
    assert chart().words.alt == (
        "Chart of the time per step of sigmoid by size, 2 panels with numpy, compiled, 2 crossings marked."
    )


def test_it_is_drawn_and_the_unit_of_an_untrusted_script_is_harmless_in_it():
    made = chart(of=swept(sweeps={"size": Sweep(HOSTILE)}))
    root = ElementTree.fromstring(made.svg())
    told = "".join(root.itertext())
    assert "\x1b" not in told
    assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "foreignObject", "a"})
