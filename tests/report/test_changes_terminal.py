"""Two runs side by side, in a terminal."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from harness.report.changes import build
from harness.report.changes_terminal import show
from tests.factories import launch
from tests.two_runs import CELLS, MARGIN, all_but, first, found, second

ONE = CELLS[2]


def line_of(text, name):
    """The table's line of a cell."""
    return next(line for line in text.splitlines() if line.strip().startswith(f"{name} "))


def shown(one, other, width=160):
    console = Console(file=StringIO(), width=width, highlight=False)
    show(build(one[0], other[0], found(one, other), MARGIN), console)
    return console.file.getvalue()


def test_it_names_the_runs_and_counts_the_verdicts():
    text = shown(first(), second(all_but(ONE, 1.3)))
    assert text.startswith("A: 2026-11-20T04-10-00Z-aaaa, begun 2026-11-21T04:10:00Z\nB: 2026-11-21T04-10-00Z-bbbb, ")
    assert "6 cells have a number in both runs. B against A: 1 slower, 5 same." in text
    assert "so what moved a cell moved it alone" in text
    assert "Nothing else that the runs tell of differs" in text


def test_every_cell_has_a_line():
    text = shown(first(), second(all_but(ONE, 1.3)))
    assert "slower" in line_of(text, "tf1.14, b")
    assert "-30" in line_of(text, "tf1.14, b")


def test_a_slower_day_is_told_as_the_machines():
    text = shown(first(), second(all_but(ONE, 1.3, seconds=0.012)))
    assert "the 6 cells whose software is the same in both runs" in text
    assert "that is the machine, or how it was measured, and no release" in " ".join(text.split())
    assert "slower less the shift" in line_of(text, "tf1.14, b")
    assert "same less the shift" in line_of(text, "tf1.14, a")


def test_where_the_software_changed_too_the_machine_is_not_blamed():
    text = shown(first(), second(dict.fromkeys(CELLS, 0.012), sources={"step": "cd34"}))
    assert "all 6 cells that are judged" in text
    assert "machine and software cannot be told apart" in " ".join(text.split())
    assert "scenario step: its file, or the kit, has changed" in text


def test_of_few_cells_no_shift_is_told():
    few = dict.fromkeys(CELLS[:2], 0.01)
    text = shown(first(few), second(few))
    assert "No shift is told: that takes five cells that are judged, and there are 2." in text
    assert "less the shift" not in text


@pytest.mark.parametrize(("count", "said"), [(3, "fewer than four rounds in a run"), (5, "work not checked")])
def test_a_line_says_what_stands_behind_it(count, said):
    assert said in shown(first(count=count), second())


def test_another_machine_is_told_before_all_else():
    asked, launches = second()
    text = shown(first(), (replace(asked, host={**asked.host, "cpu": "Another CPU"}), launches))
    assert "These runs are of different machines: CPU Some CPU → Another CPU." in text
    assert text.index("different machines") < text.index("6 cells")


def test_different_work_has_no_percentage():
    one, other = (
        (asked, [launch(each.cell, each.centre, each.round, fingerprint={"parameters": n}) for each in launches])
        for n, (asked, launches) in enumerate((first(), second()))
    )
    text = shown(one, other, width=200)
    assert "6 different work" in text
    assert "parameters: 1 apart" in text
    assert "%" not in line_of(text, "tf1.14, a")


def test_cells_of_one_run_are_named():
    asked, launches = second()
    text = shown(first(), (asked, [each for each in launches if each.cell != ONE]))
    assert f"No number in B (interrupted): {ONE}." in text


def test_nothing_of_a_strangers_reaches_the_terminal():
    asked, launches = second()
    evil = "evil\x1b[31m\x07"
    stored = replace(asked, folder=evil, host={**asked.host, "kernel": evil}), launches
    text = shown(first(), stored)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "evil" in text


def test_lines_have_no_spaces_at_their_ends():
    assert all(line == line.rstrip() for line in shown(first(), second()).splitlines())
