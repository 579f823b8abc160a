"""The report in a terminal."""

import io

import pytest
from rich.console import Console

from harness.model.launch import Status
from harness.model.run import Unavailable
from harness.report.grid import Grid
from harness.report.terminal import blocks, fold, show
from tests.factories import broken, cell, cells, rounds, run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def shown(run, launches, width=100):
    out = io.StringIO()
    show(run, launches, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 250])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width):
    text = shown(run(TIMES), rounds(SECONDS, spread=0.0), width)
    assert max(len(line) for line in text.splitlines()) <= width
    for number in ("10.0 ± 0.1", "27.0 ± 0.1", "-170 ± 1 %", "train_on_batch"):
        assert number in text
    assert "…" not in text


def test_a_wide_terminal_shows_one_table():
    assert shown(run(TIMES), rounds(SECONDS), 250).count("train_on_batch  ") == 1


def test_what_gave_no_number_stands_below():
    gone = [Unavailable(c, "needs keras<2.4", "Choose another.") for c in cells(["tf2.1"])]
    text = shown(run(TIMES, unavailable=gone), rounds(SECONDS))
    assert "not available: step, tf2.1, call fit (2 cells)" in text or "not available: step, tf2.1 (2 cells)" in text
    assert "needs keras<2.4 Choose another." in text


def test_without_a_number_it_says_so():
    assert "No cell gave a number." in shown(run([]), [])


def test_neither_markup_nor_sequences_of_strangers_are_obeyed():
    text = shown(run([cell()]), [broken(cell(), Status.FAILED, error="[bold]x[/bold]\x1b[2J\nline [/nope]")])
    assert "[bold]x[/bold] line [/nope]" in text
    assert "\x1b" not in text


def test_labels_that_all_rows_share_go_into_the_caption():
    grid = Grid(["model", "api"], ["a"], 1, [(["small", "keras"], ["1"]), (["large", "keras"], ["2"])])
    folded, shared = fold(grid)
    assert (list(folded.labels), shared) == (["model"], "api keras")
    assert [list(labels) for labels, _ in folded.rows] == [["small"], ["large"]]


def test_blocks_keep_times_and_percentages_apart_and_every_column():
    grid = Grid(["call"], ["a", "b", "c", "d"], 2, [(["fit"], ["1", "2", "3", "4"])])
    assert [list(block.headings) for block in blocks(grid, 40)] == [["a", "b"], ["c", "d"]]
    assert [list(block.headings) for block in blocks(grid, 10)] == [["a"], ["b"], ["c"], ["d"]]
    assert blocks(grid, 200) == [grid]
