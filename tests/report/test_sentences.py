"""The sentences that Markdown and the terminal share."""

import pytest

from harness.analysis.comparisons import Compared, Settling, Withheld
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import Verdict
from harness.analysis.work import Comparison, Work
from harness.report import markdown
from harness.report.course import Resolution
from harness.report.escape import plain
from harness.report.templates import environment
from tests.factories import cell, cells

SAY = environment(plain).get_template("sentences.j2").module
GROUPS = cells(calls=("fit", "train_on_batch"))


def compared(verdict=Verdict.SLOWER, withheld=None, settling=None, *, work=Work.SAME, reason="", pythons=None):
    return Compared(
        cell=cell("tf2.0"),
        other=cell(),
        estimate=Estimate(0.5, 5),
        level=0.95,
        verdict=verdict,
        withheld=withheld,
        settling=settling,
        work=Comparison(work, reason),
        pythons=pythons,
    )


CONTROL = Resolution("-0.4 ± 0.9 %", 3, True, "1.3 %", lost=False, beyond=False)
BEYOND = Resolution("+5.0 ± 0.9 %", 3, True, "5.9 %", lost=True, beyond=True)


@pytest.mark.parametrize(
    ("resolution", "sentence"),
    [
        (CONTROL, "differs from itself by -0.4 ± 0.9 %, over 3 groups: this run resolves nothing smaller than 1.3 %."),
        (
            Resolution("-3.0 ± 1.1 %", 1, True, "4.1 %", lost=True, beyond=False),
            "over 1 group: differences of up to 4.1 % are lost in what the machine does, so verdicts are given only to",
        ),
        (
            BEYOND,
            "All of that lies beyond the margin of 3 %: this run calls a thing different from itself, so no verdi",
        ),
        (BEYOND, "Measure on a quieter machine (harness doctor says what disturbs it), and with more rounds."),
        (Resolution("+0.1 %", 1, True, "", lost=False, beyond=False), "with too few rounds for an interval."),
        (
            Resolution("+0.1 %", 2, False, "", lost=False, beyond=False),
            "A/A control: one cell of each group, launched twice",
        ),
        (None, "No A/A control"),
    ],
)
def test_a_control_says_what_the_run_resolves(resolution, sentence):
    assert sentence in SAY.control(resolution, 0.03)


@pytest.mark.parametrize(
    ("of", "remarks"),
    [
        (compared(), ""),
        (compared(pythons=("3.11", "3.7")), "Python 3.11 against 3.7"),
        (compared(work=Work.NOT_CHECKED), "work not checked"),
        (
            compared(Verdict.DIFFERENT_WORK, work=Work.DIFFERENT, reason="parameters is 1 and 2"),
            "parameters is 1 and 2",
        ),
        (compared(Verdict.UNCLEAR, settling=Settling(12, 187.0)), "about 12 more rounds (3.1 min) would settle it"),
        (compared(Verdict.UNCLEAR, settling=Settling(1, 0.0)), "about 1 more round would settle it"),
        (compared(Verdict.UNCLEAR), "the difference lies at the margin: no number of rounds settles it"),
        (compared(None, Withheld.FEW_ROUNDS), "fewer than four rounds"),
        (compared(None, Withheld.CONTROL), "within what the control shows"),
        (
            compared(None, Withheld.FEW_ROUNDS, work=Work.NOT_CHECKED, pythons=("3.11", "3.7")),
            "Python 3.11 against 3.7; work not checked; fewer than four rounds",
        ),
    ],
)
def test_a_comparison_has_its_remarks(of, remarks):
    assert SAY.remarks(of, CONTROL) == remarks


def test_where_the_control_takes_all_verdicts_the_remark_says_so():
    assert SAY.remarks(compared(None, Withheld.CONTROL), BEYOND) == "the control lies beyond the margin"


def test_remarks_of_strangers_are_escaped():
    hostile = compared(Verdict.DIFFERENT_WORK, work=Work.DIFFERENT, reason="a|b <script> \x1b[2J`x`\n# y")
    assert SAY.remarks(hostile, None) == "a|b <script> `x` # y"
    say = markdown._environment(None).get_template("sentences.j2").module
    assert say.remarks(hostile, None) == "a\\|b &lt;script&gt; \\`x\\` # y"
