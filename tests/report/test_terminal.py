"""Sections in a terminal."""

import io
import tarfile

from rich.console import Console

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.analysis.results import Results
from harness.report import sections
from harness.report.blocks import REPORT, Block, Column, Entry, Head, Line, Section, Table, tabulate
from harness.report.terminal import fit_widths, show, split_columns
from tests.factories import cells, rounds, run
from tests.report.handmade import compared, everything

HOSTILE = "[bold]x[/bold]\x1b[2J [/nope]"

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {member: milliseconds / 1000 for member, milliseconds in TIMES.items()}


def print_sections(member: list[Section], width: int = 100) -> str:
    out = io.StringIO()
    show(member, Console(file=out, width=width))
    return out.getvalue()


def print_block(block: Block, width: int) -> str:
    return print_sections([Section("Title", "title", [block])], width)


def squeeze(text: str) -> str:
    return " ".join(text.split())


def test_lines_fit_the_terminal_but_for_commands_and_plots_go_first():
    text = print_sections(everything(cells(), text=" and so on" * 9), 60)
    assert f"harness report{' and so on' * 9}\n" in text
    report = sections.build(Results(run(TIMES), rounds(SECONDS, spread=0.0)))
    for width in range(40, 200, 7):
        text = print_sections(report, width) + print_block(compared(cells()), width)
        assert max(map(len, text.splitlines())) <= width
        for number in ("15.0", "27.0", "1.40× (1.40 to 1.40)", "0.5× (0.4 to 9)"):
            assert number in text, width
        assert "…" not in text
    text = print_block(compared(cells()), 84)
    assert "●" in print_block(compared(cells()), 92)
    assert "●" not in text
    assert "below 1 faster" not in text
    assert squeeze(text).count("time ratio verdict remarks") == 1


def test_the_answer_of_make_matrix_with_unclear_comparisons_has_13_lines(tmp_path):
    with tarfile.open(EXAMPLES / "headline" / LAUNCHES) as archive:
        archive.extractall(tmp_path, filter="data")
    report = sections.build(session.read(tmp_path))
    text = print_sections([section for section in report if section.anchor == "answer"], 80)
    assert "unclear" in text
    # the fourteenth is the path of the report
    assert len(text.splitlines()) <= 13


def test_a_grid_is_cut_into_blocks_that_have_its_labels():
    heads = [Head("call", is_label=True), *(Head(entry, is_number=True) for entry in "abcd")]
    table = Table("Grid", heads, [Line([Entry("fit"), *(Entry(f"{entry}.0") for entry in "1234")])], where=REPORT)
    lines = [squeeze(line) for line in print_block(table, 20).splitlines()]
    assert [line for line in lines if line][1:] == ["call a b", "fit 1.0 2.0", "call c d", "fit 3.0 4.0"]
    wide = [squeeze(line) for line in print_block(table, 60).splitlines()]
    assert "fit 1.0 2.0 3.0 4.0" in wide


def test_columns_share_what_room_there_is_and_paths_are_not_torn():
    assert split_columns([10, 12, 12, 12, 12], [0], [1, 2, 3, 4], 40) == [[1, 2], [3, 4]]
    assert split_columns([10, 12, 12, 12, 12], [0], [1, 2, 3, 4], 10) == [[1], [2], [3], [4]]
    assert split_columns([10, 12, 12, 12, 12], [0], [1, 2, 3, 4], 68) == [[1, 2, 3, 4]]
    assert split_columns([10], [0], [], 66) == [[]]
    assert fit_widths([10, 40, 60], [10, 20, 20], 200) == [10, 40, 60]
    assert fit_widths([10, 40, 60], [10, 20, 20], 76) == [10, 30, 30]
    assert fit_widths([10, 22, 60], [10, 20, 20], 76) == [10, 22, 38]
    assert fit_widths([10, 40, 60], [10, 20, 20], 40) == [10, 20, 20]
    folder = "results/2026-11-25T03-31-40Z-37c6"
    why = "The run ended before the first counted launch."
    columns = [Column("why", lambda _: why, is_label=True), Column("what to do", lambda _: f"Continue: {folder}")]
    assert folder in print_block(tabulate("No result", columns, [0], where=REPORT), 60)


def test_neither_markup_nor_sequences_of_untrusted_scripts_are_obeyed():
    for width in (60, 200):
        text = print_sections(everything(cells(), text=HOSTILE), width)
        assert "\x1b" not in text
        line = squeeze(text)
        for part in ("as long as tf1.14", "- one", "harness report", "(https://example.org/question/1) of it"):
            assert f"{part}[bold]x[/bold] [/nope]" in line
        # a word is torn where a column of a table is narrow
        assert line.replace(" ", "").count("orso[bold]x[/bold][/nope]") == 3 or width == 60
