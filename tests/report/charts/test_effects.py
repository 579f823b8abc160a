import pytest

from harness.report.charts.effects import effects
from harness.report.charts.picture import Kind
from harness.report.charts.pictures import pictures
from harness.report.document import build
from tests.factories import cells, rounds, run
from tests.report.charts.examples import document, is_snapshot, picture, values


def test_the_specification_is_the_snapshot():
    assert is_snapshot(picture(document(), Kind.EFFECTS))


def test_each_effect_is_a_line_with_its_factor_its_interval_and_its_verdict():
    made = document()
    (view,) = made.attributions
    chart = picture(made, Kind.EFFECTS)
    points = values(chart, "point")
    assert [point["name"] for point in points] == [line.term for line in view.lines]
    assert [point["ratio"] for point in points] == [line.estimate.value for line in view.lines]
    assert [point["verdict"] for point in points] == [line.verdict for line in view.lines]
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    ends = [(line.estimate.interval.low, line.estimate.interval.high) for line in view.lines]
    assert [(bar["low"], bar["high"]) for bar in bars] == ends
    assert {f"×{line.factor}" for line in view.lines} <= {text["told"] for text in values(chart, "text")}


def test_the_margin_is_a_band():
    assert values(picture(document(), Kind.EFFECTS), "rect") == [{"low": 1 / 1.03, "high": 1.03}]


def test_a_triangle_points_to_the_side_of_its_verdict():
    looks = picture(document(), Kind.EFFECTS).specification["layer"][5]["encoding"]["shape"]["scale"]
    assert dict(zip(looks["domain"], looks["range"], strict=True))["slower"] == "triangle-right"


def test_what_changes_do_together_is_explained_where_it_is_drawn():
    chart = picture(document(), Kind.EFFECTS)
    assert any("additional factor" in note for note in chart.words.notes)
    (view,) = document().attributions
    single = effects(view, 0.03)
    assert single.pairs


def test_what_stands_for_it_says_its_ends():
    alt = picture(document(), Kind.EFFECTS).words.alt
    assert alt.startswith("Chart of what accounts for the times of step, ")
    assert "slower (" in alt


def test_without_a_factorial_there_is_no_such_chart():
    seconds = dict.fromkeys(cells(modes=["graph"], environments=["tf1.14"]), 0.01)
    made = build(run(seconds), rounds(seconds))
    assert Kind.EFFECTS not in [each.kind for each in pictures(made)]


@pytest.mark.parametrize("count", [1, 3])
def test_few_rounds_have_no_verdicts(count):
    assert {point["verdict"] for point in values(picture(document(count=count), Kind.EFFECTS), "point")} == {
        "no verdict"
    }
