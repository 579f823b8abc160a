"""A table's comparisons as lines."""

from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.analysis.verdicts import Verdict
from harness.report.comparisons import comparisons, tally
from tests.factories import COMPARE, cell, cells, launch, rounds, run, scenario

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def made(asked, launches):
    return comparisons(tables(asked, lookup(asked, launches))[0])


def test_lines_go_by_the_tables_rows_then_by_the_headers_columns():
    view = made(run(TIMES), rounds(SECONDS))
    assert view.headings == ["call", "comparison", "difference", "verdict"]
    assert [(line.labels[0], line.what) for line in view.lines][4:7] == [
        ("fit", "each release's default mode: tf2.0 against tf1.14"),
        ("train_on_batch", "tf2.0 against tf1.14, graph"),
        ("train_on_batch", "tf2.0 against tf1.14, eager"),
    ]
    assert len(view.lines) == 10


def test_a_line_is_labels_what_percentage_and_verdict():
    view = made(run(TIMES), rounds(SECONDS, spread=0.0))
    assert view.lines[4].cells == [
        "fit",
        "each release's default mode: tf2.0 against tf1.14",
        "-170 ± 1 %",
        "slower",
    ]


def test_one_rows_lines_have_no_labels():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    view = made(run(only), rounds(only))
    assert view.headings == ["comparison", "difference", "verdict"]


def test_different_work_has_no_percentage():
    launches = [
        launch(of, 0.01, number, fingerprint={"parameters": len(of.environment)})
        for number in range(1, 6)
        for of in cells(modes=["graph"])
    ]
    (line,) = made(run(cells(modes=["graph"]), scenarios=[scenario(compare=COMPARE[:1])]), launches).lines
    assert line.cells == ["tf2.0 against tf1.14", "", "different work"]


def test_few_rounds_have_a_percentage_and_no_verdict():
    (line,) = made(
        run(cells(modes=["graph"]), scenarios=[scenario(compare=COMPARE[:1])]),
        rounds(dict.fromkeys(cells(modes=["graph"]), 0.01), count=3, spread=0.0),
    ).lines
    assert line.cells == ["tf2.0 against tf1.14", "+0.0 ± 0.1 %", ""]


def test_a_line_tells_of_fewer_rounds():
    launches = [*rounds({cell(): 0.01, cell("tf2.0"): 0.01}, count=6), *rounds({cell("tf2.1"): 0.01}, count=4)]
    view = made(run(cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph"])), launches)
    assert ["n=4" in line.gain for line in view.lines] == [False, True]


def test_those_judged_together_are_counted_without_what_is_not_judged():
    assert made(run(TIMES), rounds(SECONDS)).judged == 10
    assert made(run(TIMES), rounds(SECONDS, count=3)).judged == 0
    assert not made(run(TIMES), rounds(SECONDS)).moderated


def test_twelve_judged_together_have_moderated_variances():
    members = cells(calls=("fit", "train_on_batch", "predict"))
    calls = {**scenario().axes, "call": ["fit", "train_on_batch", "predict"]}
    view = made(run(members, scenarios=[scenario(axes=calls)]), rounds(dict.fromkeys(members, 0.01)))
    assert (view.judged, view.moderated) == (15, True)


def test_a_table_that_compares_nothing_has_none():
    assert made(run([cell()]), rounds({cell(): 0.01})) is None


def test_verdicts_are_counted_slower_first():
    counted = tally([Verdict.SAME, None, Verdict.SLOWER, Verdict.SAME])
    assert list(counted.verdicts) == [("slower", 1), ("same", 2)]
    assert (counted.none, counted.total) == (1, 4)
