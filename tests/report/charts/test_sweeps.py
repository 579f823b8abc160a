from dataclasses import replace
from xml.etree import ElementTree

import altair
import pytest

from harness.analysis.results import Results
from harness.model.scenario import Sweep
from harness.report.charts.sweeps import CURVES, PANELS
from tests.report.charts.examples import HOSTILE, picture, values
from tests.swept import CROSSING, SIZES, seconds, swept, swept_run


def draw(times=None, **changes):
    return picture(Results(*swept_run(times or seconds(CROSSING, ("tf1.14", "tf2.0")), **changes)), "sweeps")


@pytest.mark.slow
def test_the_specification_is_its_golden_file_and_vega_lite(is_golden_chart):
    chart = draw(spread=0.01)
    assert is_golden_chart(chart)
    altair.Chart.from_dict(dict(chart.specification))
    assert values(draw(count=1), "rule") == []


def test_a_sweep_that_begins_with_zero_has_a_linear_axis():
    chart = draw(seconds({"0": 0.5, "1": 0.8, "2": 2.0}), of=swept("012", sweeps={"size": Sweep()}))
    layers = chart.specification["concat"][0]["layer"]
    (axis,) = (layer["encoding"]["x"] for layer in layers if layer["mark"]["type"] == "line")
    assert (axis["scale"]["type"], axis["axis"]["title"]) == ("linear", "size")


def draw_panels(count):
    names = [f"dtype{at}" for at in range(count)]
    axes = {"variant": ["numpy", "compiled"], "size": list(SIZES), "dtype": names}
    times = {cell: second for name in names for cell, second in seconds(CROSSING, dtype=name).items()}
    return draw(times, count=1, of=swept(axes=axes))


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


def test_more_panels_and_curves_than_there_is_room_for_are_left_out(snapshot):
    panels, releases = draw_panels(PANELS + 3), draw_releases(2 + CURVES)
    assert len(panels.specification["concat"]) == PANELS
    assert len({value["series"] for value in values(releases, "line")}) == CURVES
    assert releases.specification["concat"][0]["layer"][0]["encoding"]["color"]["legend"]["columns"] == 5
    # only crossings of drawn curves are marked
    assert len([value for value in values(releases, "point") if "told" in value]) == CURVES - 1
    charts = {"all": draw(), "one round": draw(count=1), "panels": panels, "releases": releases}
    assert {name: [*chart.words.notes, chart.words.alt] for name, chart in charts.items()} == snapshot


@pytest.mark.slow
def test_it_is_drawn_and_the_unit_of_an_untrusted_script_is_harmless_in_it():
    root = ElementTree.fromstring(draw(of=swept(sweeps={"size": Sweep(HOSTILE)})).svg())
    assert "\x1b" not in "".join(root.itertext())
    assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "foreignObject", "a"})
