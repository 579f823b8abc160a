"""CSV."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.report.formats.csv_ import escape_cell, render
from tests import factories
from tests.factories import PHASES, RESOURCES, launch, run
from tests.report.formats.examples import example, hostile


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_a_line_a_launch_in_their_order() -> None:
    asked, launches = example()
    read = rows(render(Results(asked, launches)))
    assert [(row["environment"], int(row["round"]), row["role"]) for row in read] == [
        (entry.cell.environment, entry.round, entry.role.value) for entry in launches
    ]
    assert (float(read[0]["seconds_per_step"]), read[0]["taken"]) == (launches[0].mean, "0.0")
    assert {row["axis:mode"] for row in read} == {"graph", "eager"}
    assert float(read[0]["phase:import"]) == PHASES["import"]


def test_what_counts_is_told() -> None:
    read = rows(render(Results(*example())))
    assert {row["counted"] for row in read if row["role"] == "pilot"} == {"no"}
    third = [row for row in read if row["round"] == "3" and row["axis:call"] == "fit"]
    assert {(row["attempt"], row["counted"], bool(row["disturbed"])) for row in third} == {
        ("0", "no", True),
        ("1", "yes", False),
    }


def test_a_launch_without_samples_has_no_time() -> None:
    *_, killed = rows(render(Results(*example())))
    assert (killed["status"], killed["seconds_per_step"], killed["taken"]) == ("oom", "", "")
    assert killed["error"] == "killed at 2 GiB"


def test_what_others_took_of_the_cpu_is_off_the_time() -> None:
    shared = launch(factories.cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    (row,) = rows(render(Results(run([shared.cell]), [shared])))
    assert float(row["taken"]) == pytest.approx(0.2)
    assert float(row["seconds_per_step"]) == pytest.approx(0.008)
    assert row["disturbed"] == "other processes used 0.20 of the CPUs of the launch (subtracted from its time)"


def test_lines_end_as_the_rfc_says_and_are_equally_long() -> None:
    for made in (example(), hostile()):
        text = render(Results(*made))
        assert text.count("\r\n") == text.count("\n") == len(made[1]) + 1
        assert len({len(line) for line in csv.reader(io.StringIO(text, newline=""), strict=True)}) == 1


def test_a_run_without_launches_has_its_headings() -> None:
    assert rows(render(Results(example()[0], []))) == []


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", " =1", "\t=1", "＝1", "\x1b[31m=1"]
)
def test_formulas_are_text(text: str) -> None:
    assert escape_cell(text).startswith("'")


@pytest.mark.parametrize("text", ["-1", "+2.5", "-1e-3", "graph", "1+1", ""])
def test_numbers_and_words_stay(text: str) -> None:
    assert escape_cell(text) == text


@given(st.text())
def test_no_cell_begins_a_formula(text: str) -> None:
    assert escape_cell(text)[:1] not in {"=", "@", "\t", "\r"}


def test_memory_growth_is_a_column() -> None:
    made = launch(factories.cell(), memory=[(0, 100), (10, 5100)])
    read = rows(render(Results(run(), [made, launch(factories.cell(), number=2)])))
    assert [row["growth_bytes_per_call"] for row in read] == ["500.0", ""]
