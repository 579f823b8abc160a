"""How a run went, in sentences."""

import pytest

from harness.analysis.course import Disturbance, DisturbedRound
from harness.analysis.results import Results
from harness.model.job import Protocol, Sampling
from harness.model.run import Stop, StopReason
from harness.report.sections import course
from tests.factories import RESOURCES, cells, groups, rounds, run

GROUPS = cells(calls=("fit", "train_on_batch"))


def stopped(*stops, **asked):
    members = cells(calls=["fit", "train_on_batch", "predict"][: len(stops)])
    ends = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    made = Results(run(members, stops=ends, asked=asked), [])
    return course.stopped(made.ended, made.run.plan)


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
            "1 group stopped after the pilot, as no cell had a number; "
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
    made = Results(run(GROUPS, stops={groups(GROUPS)[0].name: Stop(StopReason.ROUNDS, 5)}), [])
    assert course.stopped(made.ended, made.run.plan) == (
        "1 group stopped after 5 rounds, the most that were asked for; 1 group not ended yet"
    )


def test_the_control_is_launched_twice():
    assert "and the control cell of each group twice" in course.told(Results(run(GROUPS, controlled=True), []))
    assert "twice" not in course.told(Results(run(GROUPS), []))


@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        (Sampling(warmup_seconds=0.5, measure_seconds=1.5), "warm up for 0.5 s, then measure for 1.5 s in samples of"),
        (Sampling(), "as each group's pilot asked: warm up for 0.1 s, then measure for 0.25 s in samples of at least"),
        (Sampling(protocol=Protocol.DOCUMENT), "as many iterations as the source says"),
    ],
)
def test_how_long_launches_measured(sampling, sentence):
    asked = run(GROUPS, asked={"sampling": sampling})
    assert course.sampling(Results(asked, rounds(dict.fromkeys(GROUPS, 0.01)))).startswith(sentence)


def test_how_long_launches_will_measure_is_their_pilots():
    told = course.sampling(Results(run(GROUPS, asked={"sampling": Sampling()}), []))
    assert told.startswith("as each group's pilot asks: warm up, then measure in samples of")


def disturbed(*repeated):
    return [DisturbedRound("group", number, "why", each) for number, each in enumerate(repeated, 1)]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([], "No round was disturbed by other processes."),
        (
            disturbed(True),
            "1 of 9 rounds was disturbed by other processes, and repeated: the repetition counts.",
        ),
        (
            disturbed(True, False),
            "2 of 9 rounds were disturbed by other processes; 1 repeated, 1 of them is in the numbers.",
        ),
        (disturbed(False, False), "2 of 9 rounds were disturbed by other processes; not repeated."),
    ],
)
def test_what_disturbed_rounds(found, sentence):
    assert course.disturbance(Disturbance(True, 9, found)) == sentence


def test_where_nothing_was_watched_it_is_not_known():
    assert "is not known: no launch recorded" in course.disturbance(Disturbance(False, 9, []))


def test_ten_disturbed_rounds_are_named():
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    launches = rounds(dict.fromkeys(cells(), 0.01), count=12, resources=noisy)
    (section,) = course.sections(Results(run(), launches))
    head, items, _ = section.blocks
    assert head.words.startswith("12 of 12 rounds were disturbed")
    assert items.items[9].startswith("Round 10 of step cpu call=fit dtype=float32: step tf1.14")
    assert items.items[10:] == ["and 2 more"]
    assert not list(course.sections(Results(run(), [])))
