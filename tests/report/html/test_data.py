"""What the page's scripts are given."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Launch, Sample, Status
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.report import sections
from harness.report.blocks import Section
from harness.report.html.data import SAMPLES, LaunchData, PageData, build, dump
from tests.factories import broken, cell, cells, launch, run, scenario
from tests.report.formats.examples import example, hostile, nothing
from tests.report.handmade import everything, phases


def make_data(planned: Run, launches: list[Launch], contents: list[Section] | None = None) -> PageData:
    results = Results(planned, launches)
    return build(results, sections.build(results) if contents is None else contents)


def list_launches(launches: list[Launch]) -> list[LaunchData]:
    (one,) = make_data(run([cell()]), launches).cells
    return list(one.launches)


def test_columns_are_what_cells_differ_in():
    assert make_data(*example()).columns == ["environment", "call", "mode"]
    assert make_data(run([cell()]), [launch(cell())]).columns == []
    several = [cell(), cell(device=Device.GPU), Cell("other", "tf1.14", Device.CPU, {"size": "1"})]
    other = scenario("other", axes={"size": ["1"]}, default={}, compare=[])
    assert make_data(run(several, scenarios=[scenario(), other]), []).columns == ["scenario", "device"]


def test_a_cell_without_a_number_says_why():
    data = make_data(*example())
    lost, gone = (next(item for item in data.cells if item.status == status) for status in ("oom", "not available"))
    assert data.absences[lost.absence].reason == "killed at 2 GiB"
    assert data.absences[gone.absence].advice == "Choose an environment with keras<2.4."
    assert (lost.seconds, lost.time, lost.number) == (None, "", "")
    assert {item.absence for item in data.cells if item.status == "ok"} == {-1}
    failed = make_data(*nothing())
    assert ({item.status for item in failed.cells}, failed.charts) == ({"failed"}, {})


def test_all_launches_are_there_in_their_order_and_say_whether_they_count():
    planned, launches = example()
    data = make_data(planned, launches)
    assert sum(len(item.launches) for item in data.cells) == len(launches)
    first = data.cells[0].launches
    counted = [(entry.round, entry.attempt, entry.role) for entry in first if entry.counted]
    assert counted == [(number, int(number == 3), role) for number in range(1, 6) for role in ("measure", "control")]
    assert {entry.disturbed for entry in first if (entry.round, entry.attempt) == (3, 0)} == {
        "other processes used 0.41 of the CPUs of the launch"
    }
    assert [entry.role for entry in first if not entry.counted and not entry.disturbed] == ["pilot"]
    late, early = launch(cell(), number=1), launch(cell(), number=2, started="2026-11-21T04:09:30Z")
    assert [(entry.round, entry.started) for entry in list_launches([late, early])] == [(2, 0.0), (1, 30.0)]
    (unreadable,) = list_launches([launch(cell(), started="@SUM(1)")])
    assert unreadable.started is None


@pytest.mark.slow
@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40))
def test_samples_have_the_digits_of_the_middle_one(rates):
    (one,) = make_data(run([cell()]), [launch(cell(), rates)], []).cells
    ordered = sorted(rates)
    middle = ordered[(len(ordered) - 1) // 2]
    assert 10.0**one.exponent <= 1e-4 * middle * (1 + 1e-9)
    for rate, sample in zip(rates, one.launches[0].samples, strict=True):
        assert sample * 10.0**one.exponent == pytest.approx(rate, rel=1e-12, abs=0.51 * 10.0**one.exponent)


def test_a_launch_with_many_samples_has_some_of_them_and_one_without_a_number_no_centre():
    (many,) = list_launches([launch(cell(), [0.01] * (10 * SAMPLES + 1))])
    assert many.of == 10 * SAMPLES + 1
    assert SAMPLES / 2 < len(many.samples) <= SAMPLES
    failed = broken(cell(), Status.FAILED, error="it raised")
    empty = launch(cell(), number=1, samples=[Sample(0.0, 0)])
    assert [(entry.centre, list(entry.samples), entry.error) for entry in list_launches([failed, empty])] == [
        (None, [], "it raised"),
        (None, [], ""),
    ]
    for seconds in (math.inf, math.nan):
        samples = [Sample(seconds, 1), Sample(1.0, 1)]
        text = "".join(dump(make_data(run([cell()]), [launch(cell(), number=1, samples=samples)])))
        assert "cells" in json.loads(text, parse_constant=pytest.fail)


def test_what_tables_tell_of_a_cell_is_under_the_titles_of_their_sections():
    planned, launches = example()
    members = planned.plan.cells
    data = make_data(planned, launches, everything(members))
    (table,) = data.tables
    assert (table.title, table.headings) == ("Phases of it", ["import, s", "device"])
    assert data.cells[0].told == [(0, ["1.0", "cpu"])]
    assert data.cells[len(members) - 1].told == [(0, [f"1.{len(members) - 1}", ""])]
    assert data.cells[-1].told == ()
    # charts are there by name and share a configuration
    assert list(data.charts) == ["points", "panels", "folded"]
    assert all("config" not in chart for chart in data.charts.values())
    assert data.config["axis"]
    several = make_data(run(), [], [Section("First", "first", [phases(cells()), phases(cells()[:1])])])
    assert [table.title for table in several.tables] == ["First", "First"]
    assert [[place for place, _ in item.told] for item in several.cells] == [[0, 1], [0], [0], [0]]


def test_strings_of_untrusted_scripts_are_one_bounded_line_and_end_no_script():
    text = "".join(dump(make_data(*hostile())))
    assert "<" not in text
    assert len(text) < 200_000
    assert not any(ord(character) < 32 for character in text)
    assert json.loads(text)["cells"][0]["name"].startswith("<script>alert(1)</script> tf1.14 cpu =size=a|b")
