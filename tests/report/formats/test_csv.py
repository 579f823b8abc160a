"""CSV."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.report.formats.csv_ import escape_cell, render
from tests.factories import PHASES, RESOURCES, cell, launch, run
from tests.report.formats.examples import example, hostile


def read_rows(planned, launches) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(Results(planned, launches)), newline=""), strict=True))


def test_a_line_a_launch_in_their_order():
    planned, launches = example()
    rows = read_rows(planned, launches)
    assert [(row["environment"], int(row["round"]), row["role"]) for row in rows] == [
        (launch.cell.environment, launch.round, launch.role.value) for launch in launches
    ]
    assert (float(rows[0]["seconds_per_step"]), rows[0]["taken"]) == (launches[0].mean, "0.0")
    assert {row["axis:mode"] for row in rows} == {"graph", "eager"}
    assert float(rows[0]["phase:import"]) == PHASES["import"]
    # a launch without samples has no time
    killed = rows[-1]
    assert (killed["status"], killed["seconds_per_step"], killed["taken"]) == ("oom", "", "")
    assert killed["error"] == "killed at 2 GiB"
    # a run without launches has its headings
    assert read_rows(planned, []) == []


def test_what_counts_is_told():
    rows = read_rows(*example())
    assert {row["counted"] for row in rows if row["role"] == "pilot"} == {"no"}
    third = [row for row in rows if row["round"] == "3" and row["axis:call"] == "fit"]
    assert {(row["attempt"], row["counted"], bool(row["disturbed"])) for row in third} == {
        ("0", "no", True),
        ("1", "yes", False),
    }


def test_what_others_took_of_the_cpu_is_off_the_time():
    shared = launch(cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    (row,) = read_rows(run([cell()]), [shared])
    assert float(row["taken"]) == pytest.approx(0.2)
    assert float(row["seconds_per_step"]) == pytest.approx(0.008)
    assert row["disturbed"].startswith("other processes used 0.20 of the CPUs")


def test_lines_are_equally_long_and_hold_no_formulas():
    for stored in (example(), hostile()):
        text = render(Results(*stored))
        assert text.count("\r\n") == text.count("\n") == len(stored[1]) + 1
        assert len({len(line) for line in csv.reader(io.StringIO(text, newline=""), strict=True)}) == 1
    for text in ("=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", " =1", "\t=1", "＝1", "\x1b[31m=1"):
        assert escape_cell(text).startswith("'"), text
    for text in ("-1", "+2.5", "-1e-3", "graph", "1+1", ""):
        assert escape_cell(text) == text


@given(st.text())
def test_no_cell_begins_a_formula(text):
    assert escape_cell(text)[:1] not in {"=", "@", "\t", "\r"}


def test_memory_growth_is_a_column():
    rows = read_rows(run(), [launch(cell(), memory=[(0, 100), (10, 5100)]), launch(cell(), number=2)])
    assert [row["growth_bytes_per_call"] for row in rows] == ["500.0", ""]
