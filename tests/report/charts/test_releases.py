"""The line over releases, in place of a list of ratios."""

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.report import sections
from harness.report.blocks import find_pictures
from harness.report.charts import releases
from harness.report.comparisons import list_lines
from tests.factories import cells, rounds, run
from tests.report.charts.examples import values

#: Seconds by environment, not in order of release: slow from 2.2 on, fast again in 2.10.
SECONDS = {"tf1.14": 0.01, "tf2.10": 0.0101, "tf2.0": 0.0105, "tf2.2": 0.15, "tf2.2-py3.7": 0.15, "tf2.3": 0.14}


def measure(seconds=None, calls=("fit",), modes=("graph",), count=5):
    seconds = seconds or SECONDS
    environments = [
        Environment(name, f"{name.removeprefix('tf').partition('-')[0]}.0", "3.7", "2019-09-01T00:00:00Z")
        for name in seconds
    ]
    members = cells(list(seconds), calls, modes)
    times = {member: seconds[member.environment] * (1 + (member.axes["mode"] == "eager")) for member in members}
    return Results(run(members, environments=environments), rounds(times, count=count, spread=0.001))


def draw_all(results):
    (table,) = results.tables
    return list(releases.draw(results, table, list_lines(table)))


def draw(*arguments, **changes):
    (chart,) = draw_all(measure(*arguments, **changes))
    return chart


def test_the_words_say_where_the_line_goes_up_and_down(snapshot):
    charts = {
        "one line": draw(),
        "a level line": draw(dict.fromkeys(SECONDS, 0.01)),
        "two rounds": draw(count=2),
        "four lines": draw(calls=("fit", "train_on_batch"), modes=("graph", "eager")),
    }
    words = {name: chart.words for name, chart in charts.items()}
    assert {
        name: [chart_words.title, *chart_words.notes, chart_words.axis, chart_words.alt]
        for name, chart_words in words.items()
    } == snapshot


def test_the_specification_is_its_golden_file(is_golden_chart):
    assert is_golden_chart(draw())


def test_unclear_points_are_hollow_and_few_releases_have_no_line():
    assert "white" in {point["inside"] for point in values(draw(count=2), "point")}
    two = {name: SECONDS[name] for name in ("tf1.14", "tf2.2", "tf2.2-py3.7")}
    assert draw_all(measure(two)) == []
    assert len(draw_all(measure({**two, "tf2.10": 0.01}))) == 1

    def list_charts(results):
        return [chart.name.partition("-")[0] for chart in find_pictures(sections.build(results))]

    assert list_charts(measure()) == ["releases", "times"]
    assert list_charts(measure(modes=("graph", "eager"))) == ["releases", "ratios", "times"]
