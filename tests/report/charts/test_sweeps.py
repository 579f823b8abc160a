import math
from dataclasses import replace
from xml.etree import ElementTree

import altair
import pytest
from syrupy.assertion import SnapshotAssertion

from harness.analysis.results import Results
from harness.model.scenario import Comparison, Sweep
from harness.report.charts.sweeps import CURVES, PANELS
from tests.report.charts.examples import HOSTILE, is_snapshot, picture
from tests.swept import CROSSING, SIZES, seconds, swept, swept_run


def draw(times=None, **changes):
    return picture(Results(*swept_run(times or seconds(CROSSING, ("tf1.14", "tf2.0")), **changes)), "sweeps")


def values(chart, mark, panel=0):
    """What one panel's marks of a type show."""
    layers = [layer for layer in chart.specification["concat"][panel]["layer"] if layer["mark"]["type"] == mark]
    return [value for layer in layers for value in layer["data"]["values"]]


def list_series(chart):
    return list(dict.fromkeys(value["series"] for value in values(chart, "line")))


def encoding(chart, mark="line"):
    (found,) = (layer for layer in chart.specification["concat"][0]["layer"] if layer["mark"]["type"] == mark)
    return found["encoding"]


def test_the_specification_is_the_snapshot_and_vega_lite():
    assert is_snapshot(draw())
    altair.Chart.from_dict(dict(draw().specification))


def test_each_environment_is_a_panel_with_a_curve_for_each_variant():
    chart = draw()
    assert [panel["title"]["text"] for panel in chart.specification["concat"]] == ["tf1.14", "tf2.0"]
    curves = [(series, float(size)) for series in ("numpy", "compiled") for size in SIZES]
    assert {(value["series"], value["size"]) for value in values(chart, "line")} >= set(curves)
    assert [(value["series"], value["size"]) for value in values(chart, "point") if "series" in value] == curves
    assert values(chart, "line")[0]["time"] == pytest.approx(math.sqrt(2.0), rel=0.05)


def test_where_nothing_but_environments_is_compared_these_are_the_curves():
    releases = swept(compare=swept().compare[1:], axes={"size": list(SIZES)})
    times = {
        replace(cell, axes={"size": cell.axes["size"]}): second * (2.0 if cell.environment == "tf2.0" else 1.0)
        for cell, second in seconds(CROSSING, ("tf1.14", "tf2.0")).items()
        if cell.axes["variant"] == "numpy"
    }
    chart = draw(times, of=releases)
    assert len(chart.specification["concat"]) == 1
    assert "title" not in chart.specification["concat"][0]
    assert list_series(chart) == ["tf1.14", "tf2.0"]


def test_both_axes_are_logarithmic_and_have_their_units():
    axes = encoding(draw())
    assert (axes["x"]["scale"]["type"], axes["y"]["scale"]["type"]) == ("log", "log")
    assert axes["x"]["axis"]["title"] == "size, values"
    assert axes["x"]["axis"]["values"] == [float(size) for size in SIZES]
    assert axes["y"]["axis"]["title"] == "time per step, µs (log scale)"
    # a sweep that begins with zero has a linear one
    from_zero = encoding(draw(seconds({"0": 0.5, "1": 0.8, "2": 2.0}), of=swept("012", sweeps={"size": Sweep()})))
    assert (from_zero["x"]["scale"]["type"], from_zero["x"]["axis"]["title"]) == ("linear", "size")


def test_points_have_their_intervals_and_crossings_theirs():
    chart = draw(spread=0.01)
    assert len([value for value in values(chart, "rule") if "low" in value]) == 2 * len(SIZES)
    (ring,) = [value for value in values(chart, "point") if "told" in value]
    (span,) = [value for value in values(chart, "rule") if "end" in value]
    assert span["size"] <= ring["size"] <= span["end"]
    # the ring lies on both curves
    sides = {value["series"]: value["time"] for value in values(chart, "line") if value["size"] == 1024.0}
    assert min(sides.values()) < ring["time"]
    assert [value["told"] for value in values(chart, "text")] == [ring["told"]]
    assert values(draw(count=1), "rule") == []


def test_curves_part_by_shape_as_well_as_by_colour():
    points = encoding(draw(seconds(dict.fromkeys(SIZES, 2.0))), "point")
    assert len(set(points["shape"]["scale"]["range"])) == len(points["shape"]["scale"]["domain"]) == 2


def draw_panels(count):
    names = [f"dtype{at}" for at in range(count)]
    axes = {"variant": ["numpy", "compiled"], "size": list(SIZES), "dtype": names}
    times = {cell: second for name in names for cell, second in seconds(CROSSING, dtype=name).items()}
    return draw(times, count=1, of=swept(axes=axes))


def draw_variants(count):
    names = [f"variant {letter}" for letter in "abcdefgh"[:count]]
    scenario_of = swept(axes={"variant": names, "size": ["1", "32"]}, compare=[Comparison("all", "variant", names[0])])
    one, *_ = seconds({"1": 1.0, "32": 1.0})
    times = {
        replace(one, axes={"variant": name, "size": size}): 0.001 * (1 + at)
        for at, name in enumerate(names)
        for size in ("1", "32")
    }
    return draw(times, of=scenario_of)


def draw_releases(count):
    """So many releases, each of which crosses the first one, and no other."""
    releases = [f"tf2.{minor}" for minor in range(count)]
    one, *_ = seconds(CROSSING)
    times = {
        replace(one, environment=release, axes={"size": size}): 1e-6 * (1.0 + at * ratio) if at else 2e-6
        for at, release in enumerate(releases)
        for size, ratio in CROSSING.items()
    }
    scenario_of = swept(compare=swept().compare[1:], axes={"size": list(SIZES)})
    return draw(times, of=scenario_of, count=1, reference=releases[0])


def test_more_panels_and_curves_than_there_is_room_for_are_left_out(snapshot: SnapshotAssertion):
    panels, variants, releases = draw_panels(PANELS + 3), draw_variants(8), draw_releases(2 + CURVES)
    assert len(panels.specification["concat"]) == PANELS
    assert len(list_series(variants)) == len(list_series(releases)) == CURVES
    # only crossings of drawn curves are marked
    assert len([value for value in values(releases, "point") if "told" in value]) == CURVES - 1
    charts = {"all": draw(), "one round": draw(count=1), "panels": panels, "variants": variants, "releases": releases}
    assert {name: [*chart.words.notes, chart.words.alt] for name, chart in charts.items()} == snapshot


def test_it_is_drawn_and_the_unit_of_an_untrusted_script_is_harmless_in_it():
    root = ElementTree.fromstring(draw(of=swept(sweeps={"size": Sweep(HOSTILE)})).svg())
    assert "\x1b" not in "".join(root.itertext())
    assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "foreignObject", "a"})
