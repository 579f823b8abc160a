"""The chart of a table's comparisons."""

from dataclasses import replace

from harness.analysis.results import Results
from tests.factories import cell, cells, rounds, run
from tests.report.charts.examples import picture, results, values


def test_different_work_is_left_out_and_few_rounds_have_no_verdicts():
    seconds = dict(zip(cells(), (0.01, 0.02, 0.01, 0.03), strict=True))
    other = cell("tf2.0", mode="eager")
    launches = [
        replace(launch, fingerprint={"parameters": 2 if launch.cell == other else 1}) for launch in rounds(seconds)
    ]
    chart = picture(Results(run(seconds), launches), "ratios")
    assert [point["name"] for point in values(chart, "point")] == ["tf2.0 vs tf1.14, graph", "graph vs eager, tf1.14"]
    assert any(note.startswith("3 comparisons ") for note in chart.words.notes)
    for count in (1, 2):
        chart = picture(results(count=count, spread=1.0), "ratios")
        points = values(chart, "point")
        bars = [bar for bar in values(chart, "rule") if "low" in bar]
        assert {point["verdict"] for point in points} == {"no verdict"}
        assert len(bars) == (0 if count == 1 else len(points))
    assert 0 < len(values(chart, "tick")) < 2 * len(bars)
