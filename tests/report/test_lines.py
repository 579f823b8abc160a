"""Comparisons in a terminal."""

import io

import pytest
from rich.console import Console

from harness.analysis.comparisons import Compared
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import Verdict
from harness.analysis.work import Comparison, Work
from harness.report.comparisons import Comparisons, Line, tally
from harness.report.lines import fit, lay_out
from tests.factories import cell

COMPARED = Compared(
    cell("tf2.0"), cell(), Estimate(0.5, 5), 0.95, Verdict.SLOWER, None, None, Comparison(Work.SAME), None
)
VIEW = Comparisons(
    labels=["call"],
    lines=[
        Line(["fit"], "tf2.0 against tf1.14, graph", "-102 ± 6 %", COMPARED),
        Line(["train_on_batch"], "graph against eager, tf1.14", "+87 % (+80 to +95)", COMPARED),
    ],
    tally=tally([Verdict.SLOWER] * 2),
    judged=2,
    moderated=False,
)
REMARKS = ["", "work not checked; about 12 more rounds (3 min) would settle it"]


def printed(width, remarks=REMARKS):
    out = io.StringIO()
    console = Console(file=out, width=width)
    for part in lay_out(VIEW, remarks, width):
        console.print(part)
    return out.getvalue()


def test_with_room_it_is_a_table():
    first, second = printed(160).splitlines()[-3:-1]
    assert first.split("  ")[0].strip() == "fit"
    assert second.split() == [
        *("train_on_batch", "graph", "against", "eager,", "tf1.14", "+87", "%", "(+80", "to", "+95)", "slower"),
        *REMARKS[1].split(),
    ]


def test_without_room_it_is_two_lines_each():
    assert printed(60).splitlines() == [
        "fit: tf2.0 against tf1.14, graph",
        "  -102 ± 6 %  slower",
        "train_on_batch: graph against eager, tf1.14",
        "  +87 % (+80 to +95)  slower  work not checked; about 12    ",
        "  more rounds (3 min) would settle it                       ",
    ]


@pytest.mark.parametrize("width", range(40, 200, 7))
def test_no_line_is_wider_than_the_terminal_and_no_percentage_is_torn(width):
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert "+87 % (+80 to +95)" in text
    assert "-102 ± 6 %" in text


def test_a_column_of_remarks_stands_only_where_there_is_one():
    assert "remarks" in printed(160)
    assert "remarks" not in printed(160, ["", ""])


def test_words_share_what_room_there_is():
    assert fit([10, 40, 12, 8, 60], wrapped=(1, 4), width=200) == [10, 40, 12, 8, 60]
    assert fit([10, 40, 12, 8, 60], wrapped=(1, 4), width=100) == [10, 30, 12, 8, 30]
    assert fit([10, 22, 12, 8, 60], wrapped=(1, 4), width=100) == [10, 22, 12, 8, 38]
    assert fit([10, 40, 12, 8, 60], wrapped=(1, 4), width=79) is None
    assert fit([10, 40, 12, 8], wrapped=(1, 4), width=70) == [10, 32, 12, 8]
