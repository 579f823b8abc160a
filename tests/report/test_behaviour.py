"""Observations and statements as tables, in Markdown and in the terminal."""

import io

import pytest
from rich.console import Console

from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.model.run import Stop, StopReason
from harness.model.scenario import Expectation
from harness.report.document import build
from harness.report.formats import Format, render
from harness.report.observed import CHARACTERS, SAME
from harness.report.terminal import show
from tests.factories import ENVIRONMENTS, cells, launch, run, scenario

EXPECT = [
    Expectation("traces", [1, 2], {"experiment": "retracing"}, ()),
    Expectation("raises", "TypeError", {"experiment": "assignment"}, ("tensorflow>=2",)),
]
OBSERVER = scenario(
    "behaviour",
    title="How functions behave",
    axes={"experiment": ["retracing", "assignment"]},
    default={},
    compare=[],
    expect=EXPECT,
)
NAMES = ["tf1.14", "tf2.0", "tf2.1"]


def observer(environment, experiment="retracing"):
    return Cell("behaviour", environment, Device.CPU, {"experiment": experiment})


def example(traces=([1, 2], [1, 2], [1, 3]), **changes):
    """Two experiments in three environments; nothing is timed."""
    seen = {observer(name): {"traces": value, "kind": "graph"} for name, value in zip(NAMES, traces, strict=True)}
    seen |= {observer(name, "assignment"): {"raises": "TypeError"} for name in NAMES}
    known = run(seen, scenarios=[OBSERVER], **changes)
    stops = {group.name: Stop(StopReason.OBSERVED, 0) for group in known.plan.groups}
    known = run(seen, scenarios=[OBSERVER], stops=stops, **changes)
    return known, [launch(of, (), 0, observations=values) for of, values in seen.items()]


def rows(told):
    return [[cell.text for cell in row] for row in told.rows]


def test_a_value_that_changes_stands_out_and_one_that_does_not_is_not_repeated():
    first, second = build(*example()).behaviours
    assert (first.name, second.name) == ("retracing", "assignment")
    assert list(first.told.headings) == ["observation", *NAMES]
    assert rows(first.told) == [["traces", "[1, 2]", SAME, "[1, 3]"], ["kind", "graph", SAME, SAME]]
    assert [cell.stands_out for cell in first.told.rows[0]] == [False, False, False, True]


def test_statements_stand_beside_what_was_seen_where_it_differs():
    found = build(*example()).expectations
    (view,) = found.views
    assert list(view.told.headings) == ["observation", "where", "stated", *NAMES]
    assert rows(view.told) == [
        ["traces", "retracing", "[1, 2]", "as stated", "as stated", "[1, 3]"],
        ["raises", "assignment", "TypeError", "", "as stated", "as stated"],
    ]
    assert found.counts == [("as stated", 4), ("differs", 1)]


def test_launches_that_disagree_stand_out():
    known, launches = example()
    again = launch(observer("tf1.14"), (), 1, observations={"traces": [1, 9], "kind": "graph"})
    later = launch(observer("tf1.14"), (), 2, observations={"traces": [1, 2], "kind": "graph"})
    document = build(known, [*launches, again, later])
    assert rows(document.behaviours[0].told)[0][1] == "varies: [1, 9]; [1, 2]"
    assert ("varies", 1) in document.expectations.counts


def test_many_environments_are_lines_and_those_that_agree_share_one():
    environments = [Environment(f"e{n}", f"2.{n}.0", "3.8", "") for n in range(9)]
    seen = {observer(each.name): {"kind": "a" if n < 5 else "b"} for n, each in enumerate(environments)}
    pins = {each.name: {"tensorflow": each.tensorflow} for each in environments}
    known = run(seen, scenarios=[OBSERVER], environments=environments, pins=pins)
    (view,) = build(known, [launch(of, (), 0, observations=values) for of, values in seen.items()]).behaviours
    assert view.told.by_line
    assert rows(view.told) == [["kind", "e0 to e4 (5)", "a"], ["", "e5 to e8 (4)", "b"]]
    assert [row[-1].stands_out for row in view.told.rows] == [False, True]


def test_a_long_value_is_cut_in_its_table_and_whole_below():
    code = "def tf__f(x):\n" + "    return x\n" * 40
    told = build(*example((code, code, "short"))).behaviours[0].told
    assert len(told.rows[0][1].text) == CHARACTERS
    (full,) = told.full
    assert full.text == code
    assert full.what == "traces, tf1.14, tf2.0"
    assert "    return x\n    return x" in render(Format.MD, *example((code, code, "short")))


def test_a_run_that_times_nothing_says_what_it_is():
    text = render(Format.MD, *example())
    assert "Nothing was timed: 6 of 6 cells told what they observed. Of 5 statements of the sources" in text
    assert "6 cells on cpu, 0 with a number, 6 that only observe." in text
    assert "**Rounds:** none: no cell has anything to time" in text
    assert "## No number" not in text
    assert r"**\[1, 3\]**" in text


def test_it_is_whole_in_the_terminal_too():
    out = io.StringIO()
    show(*example(), Console(file=out, width=120))
    text = out.getvalue()
    assert "How functions behave: retracing" in text
    assert "4 as stated, 1 differs" in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("format", [Format.JSON, Format.CSV, Format.JUNIT, Format.SUMMARY])
def test_no_format_calls_it_broken(format):
    text = render(format, *example())
    assert "failed" not in text
    assert "interrupted" not in text
    assert "<error" not in text


def test_environments_are_those_of_the_run():
    assert [each.name for each in ENVIRONMENTS] == NAMES


def test_beside_times_each_number_has_its_line():
    seen = {each: {"loop": f"{each.axes['mode']} loop", "parameters": 7} for each in cells(calls=("fit", "predict"))}
    launches = [launch(of, 0.01, number, observations=values) for number in (1, 2) for of, values in seen.items()]
    (view,) = build(run(seen), launches).behaviours
    assert list(view.told.headings) == ["cell", "time, ms", "loop"]
    assert rows(view.told)[:2] == [
        ["fit, tf1.14 graph", "10.0 ± 0.1", "graph loop"],
        ["fit, tf1.14 eager", "10.0 ± 0.1", "eager loop"],
    ]
    assert len(view.told.rows) == 8


def test_a_statement_of_many_environments_has_a_line_for_those_where_it_stands_alike():
    environments = [Environment(f"e{n}", f"2.{n}.0", "3.8", "") for n in range(9)]
    seen = {observer(each.name): {"traces": [1, 2] if n != 4 else [9]} for n, each in enumerate(environments)}
    pins = {each.name: {"tensorflow": each.tensorflow} for each in environments}
    known = run(seen, scenarios=[OBSERVER], environments=environments, pins=pins)
    found = build(known, [launch(of, (), 0, observations=values) for of, values in seen.items()]).expectations
    assert rows(found.views[0].told) == [
        ["traces", "retracing", "[1, 2]", "e0 to e3 (4)", "as stated"],
        ["", "", "", "e4", "[9]"],
        ["", "", "", "e5 to e8 (4)", "as stated"],
    ]
    assert [row[-1].stands_out for row in found.views[0].told.rows] == [False, True, False]
