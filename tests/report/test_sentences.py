"""The sentences that Markdown and the terminal share."""

import pytest

from harness.analysis.comparisons import Compared, Settling, Withheld
from harness.analysis.shape import Shape, Share
from harness.analysis.statistics import Estimate
from harness.analysis.verdicts import Verdict
from harness.analysis.work import Comparison, Work
from harness.model.job import Protocol, Sampling
from harness.model.run import Stop, StopReason
from harness.report import markdown
from harness.report.course import Disturbance, DisturbedRound, Resolution
from harness.report.document import build
from harness.report.escape import plain
from harness.report.templates import environment
from tests.factories import cell, cells, groups, rounds, run

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


def shaped(modes, outliers):
    return Shape(0.01, 0.01, 0.009, 0.011, 0.1, 0.1, Share(modes, 8), Share(outliers, 8))


@pytest.mark.parametrize(
    ("shape", "remarks"),
    [
        (shaped(0, 0), ""),
        (shaped(2, 0), "several modes within 2 of 8 launches"),
        (shaped(0, 1), "launches of this cell have several modes: 1 of 8 lies apart"),
        (
            shaped(2, 2),
            "several modes within 2 of 8 launches; launches of this cell have several modes: 2 of 8 lie apart",
        ),
    ],
)
def test_a_shape_has_its_remarks(shape, remarks):
    assert SAY.shape_remarks(shape) == remarks


def stopped(*stops, **asked):
    members = cells(calls=["fit", "train_on_batch", "predict"][: len(stops)])
    ends = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    return SAY.stopped(build(run(members, stops=ends, asked=asked), []))


def test_a_run_without_stops_says_what_was_planned():
    assert stopped() == "5 rounds"
    assert stopped(precision=0.02) == "at most 5 rounds"


@pytest.mark.parametrize(
    ("stops", "asked", "sentence"),
    [
        ([Stop(StopReason.ROUNDS, 5)] * 2, {}, "5 rounds in every group, as asked"),
        (
            [Stop(StopReason.ROUNDS, 5)] * 2,
            {"precision": 0.02},
            "every group stopped after 5 rounds, the most that were asked for, and wider than ±2 %",
        ),
        (
            [Stop(StopReason.PRECISION, 8), Stop(StopReason.BUDGET, 6)],
            {"precision": 0.02, "budget_seconds": 600.0},
            "1 group stopped at ±2 % after 8 rounds; 1 group stopped when the budget of 10 min ended, after 6 rounds: "
            "before round 8 no interval is looked at",
        ),
        (
            [Stop(StopReason.PRECISION, 11), Stop(StopReason.PRECISION, 8)],
            {"precision": 0.025},
            "every group stopped at ±2.5 % after 8 and 11 rounds",
        ),
        (
            [Stop(StopReason.INTERRUPTED, 1), Stop(StopReason.NO_NUMBERS, 0)],
            {},
            "1 group stopped after the pilot, as no cell gave a number; "
            "1 group stopped when the run was interrupted, after 1 round",
        ),
        (
            [Stop(StopReason.OBSERVED, 0), Stop(StopReason.ROUNDS, 5)],
            {},
            "1 group stopped after 5 rounds, the most that were asked for; "
            "1 group stopped after the pilot, as its cells observe and have nothing to time",
        ),
        (
            [Stop(StopReason.BUDGET, 3), Stop(StopReason.BUDGET, 4), Stop(StopReason.BUDGET, 5)],
            {"budget_seconds": 90.0},
            "every group stopped when the budget of 90 s ended, after 3 to 5 rounds",
        ),
    ],
)
def test_where_groups_stopped(stops, asked, sentence):
    assert stopped(*stops, **asked) == sentence


def test_groups_that_go_on_are_told():
    document = build(run(GROUPS, stops={groups(GROUPS)[0].name: Stop(StopReason.ROUNDS, 5)}), [])
    assert (
        SAY.stopped(document) == "1 group stopped after 5 rounds, the most that were asked for; 1 group not ended yet"
    )


def test_the_control_is_launched_twice():
    assert "and the control cell of each group twice" in SAY.rounds(build(run(GROUPS, controlled=True), []))
    assert "twice" not in SAY.rounds(build(run(GROUPS), []))


@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        (Sampling(warmup_seconds=0.5, measure_seconds=1.5), "warm up for 0.5 s, then measure for 1.5 s in samples of"),
        (Sampling(), "as each group's pilot asked: warm up for 0.1 s, then measure for 0.25 s in samples of at least"),
        (Sampling(protocol=Protocol.DOCUMENT), "as many iterations as the source document says"),
    ],
)
def test_how_long_launches_measured(sampling, sentence):
    asked = run(GROUPS, asked={"sampling": sampling})
    assert SAY.sampling(build(asked, rounds(dict.fromkeys(GROUPS, 0.01)))).startswith(sentence)


def test_how_long_launches_will_measure_is_their_pilots():
    document = build(run(GROUPS, asked={"sampling": Sampling()}), [])
    assert SAY.sampling(document).startswith("as each group's pilot asks: warm up, then measure in samples of")


def disturbed(*repeated):
    return [DisturbedRound("group", number, "why", each) for number, each in enumerate(repeated, 1)]


@pytest.mark.parametrize(
    ("rounds_", "sentence"),
    [
        ([], "No round was disturbed by other processes."),
        (
            disturbed(True),
            "1 of 9 rounds, repetitions included, was disturbed; it was repeated",
        ),
        (
            disturbed(True, True),
            "; all were repeated, and the repetition counts. This was judged by what else the machine ",
        ),
        (disturbed(True, False), "; 1 of these was repeated, and there the repetition counts. "),
        (disturbed(False, False), "; they were not repeated, and are in the numbers. "),
        (disturbed(False), "without looking at the times."),
    ],
)
def test_what_disturbed_rounds(rounds_, sentence):
    assert sentence in SAY.disturbance(Disturbance(True, 9, rounds_))


def test_where_nothing_was_watched_it_could_not_be_told():
    assert "could not be told" in SAY.disturbance(Disturbance(False, 9, []))
