"""The report in a terminal."""

import io

import pytest
from rich.console import Console

from harness.model.launch import Status
from harness.model.run import Stop, StopReason, Unavailable
from harness.report.grid import Grid
from harness.report.terminal import blocks, show
from tests.factories import RESOURCES, broken, cell, cells, groups, launch, rounds, run

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


def test_a_wide_terminal_shows_each_table_once():
    text = shown(run(TIMES), rounds(SECONDS, spread=0.0), 250)
    assert text.count("20.0 ± ") == 1
    assert text.count("remarks") == 1


def test_verdicts_are_counted_and_listed():
    text = shown(run(TIMES), rounds(SECONDS, spread=0.0), 160)
    assert "Of 10 comparisons: 5 slower, 4 faster, 1 same." in text
    line = next(line for line in text.splitlines() if "release's default" in line and line.startswith(" fit"))
    assert line.split()[-8:] == ["-170", "±", "1", "%", "slower", "work", "not", "checked"]


def test_labels_that_all_rows_share_stand_in_the_caption_only():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    text = shown(run(only), rounds(only), 160)
    assert "One training step: call fit" in text
    assert not [line for line in text.splitlines() if "fit" in line and "against" in line]


def test_what_the_control_shows_stands_over_the_numbers():
    text = shown(run(TIMES, controlled=True), rounds(SECONDS, controls={cell(): 0.010}), 250)
    assert text.index("A/A control") < text.index("10.1 ± ")
    assert "A/A control" not in shown(run([cell()]), rounds({cell(): 0.01}))


def test_what_happened_to_the_run_stands_at_the_head():
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    stops = {group.name: Stop(StopReason.ROUNDS, 5) for group in groups(TIMES)}
    text = shown(run(TIMES, stops=stops), rounds(SECONDS, resources=noisy), 250)
    head = text.split("One training step")[0]
    assert "5 rounds in every group, as asked." in head
    assert "10 of 10 rounds, repetitions included, were disturbed" in head


def test_what_accounts_for_the_times_is_one_sentence():
    text = " ".join(shown(run(TIMES), rounds(SECONDS, spread=0.0), 250).split())
    assert "What accounts for it: On average over the other axes, beyond the margin of 3 % and furthest first: " in text


def test_what_gave_no_number_stands_below():
    gone = [Unavailable(c, "needs keras<2.4", "Choose another.") for c in cells(["tf2.1"])]
    text = shown(run(TIMES, unavailable=gone), rounds(SECONDS))
    assert "not available: step, tf2.1, call fit (2 cells)" in text or "not available: step, tf2.1 (2 cells)" in text
    assert "needs keras<2.4. Choose another." in text


def test_without_a_number_it_says_so():
    assert "No cell gave a number." in shown(run([]), [])


def test_neither_markup_nor_sequences_of_untrusted_scripts_are_obeyed():
    text = shown(run([cell()]), [broken(cell(), Status.FAILED, error="[bold]x[/bold]\x1b[2J\nline [/nope]")])
    assert "[bold]x[/bold] line [/nope]" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 200])
def test_reasons_of_different_work_are_not_obeyed(width):
    launches = [
        launch(of, 0.01, number, fingerprint={"[bold]n[/bold]": f"\x1b[2J{of.environment}\n"})
        for number in range(1, 6)
        for of in cells(modes=["graph"])
    ]
    text = shown(run(cells(modes=["graph"])), launches, width)
    assert "\x1b" not in text
    assert "[bold]n[/bold] is tf1.14 and tf2.0" in " ".join(text.split())
    assert "did not do the same work" in " ".join(text.split())


def test_blocks_keep_every_column():
    grid = Grid(["call"], ["a", "b", "c", "d"], [(["fit"], ["1", "2", "3", "4"])])
    assert [list(block.headings) for block in blocks(grid, 40)] == [["a", "b"], ["c", "d"]]
    assert [list(block.headings) for block in blocks(grid, 10)] == [["a"], ["b"], ["c"], ["d"]]
    assert blocks(grid, 200) == [grid]
