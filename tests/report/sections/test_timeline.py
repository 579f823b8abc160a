"""How a run went, in words."""

from dataclasses import replace

import pytest

from harness.analysis.interference import NoisyRound, RunInterference
from harness.analysis.results import Results
from harness.model.launch import Limits, Protocol, Sample, Sampling
from harness.model.run import Stop, StopReason
from harness.model.scenario import CPUS
from harness.report.blocks import Items, Where
from harness.report.sections import timeline
from tests.factories import RESOURCES, cell, cells, groups, rounds, run, scenario
from tests.report.sections.reading import everything, texts

MEMBERS = cells(calls=("fit", "train_on_batch"))
TIMES = dict.fromkeys(cells(), 0.01)


def stopped(*stops, suite="", **asked):
    members = cells(calls=["fit", "train_on_batch", "predict"][: len(stops)])
    ends = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    made = replace(run(members, stops=ends, asked=asked), suite=suite)
    return timeline.describe_stops(Results(made, []).ended, made)


def test_a_run_without_stops_says_what_was_planned():
    assert stopped() == "5 rounds"
    assert stopped(precision=0.02) == "at most 5 rounds"


@pytest.mark.parametrize(
    ("stops", "asked", "sentence"),
    [
        ([Stop(StopReason.ROUNDS, 5)] * 2, {}, "5 rounds in every group, as planned"),
        (
            [Stop(StopReason.ROUNDS, 5)] * 2,
            {"precision": 0.02},
            "every group stopped after 5 rounds, the requested maximum, with intervals wider than ±2 %",
        ),
        (
            [Stop(StopReason.PRECISION, 8), Stop(StopReason.BUDGET, 2)],
            {"precision": 0.02, "budget_seconds": 600.0},
            "1 group stopped after 8 rounds, with clear verdicts or at ±2 %; 1 group stopped when the budget of 10 min "
            "ended, after 2 rounds: no interval is checked before round 3",
        ),
        (
            [Stop(StopReason.PRECISION, 11), Stop(StopReason.PRECISION, 8)],
            {"precision": 0.025},
            "every group stopped after 8 and 11 rounds, with clear verdicts or at ±2.5 %",
        ),
        (
            [Stop(StopReason.INTERRUPTED, 1), Stop(StopReason.NO_NUMBERS, 0)],
            {},
            "1 group stopped after the pilot, because no cell had a result; 1 group stopped when the run was "
            "interrupted, "
            "after 1 round",
        ),
        (
            [Stop(StopReason.OBSERVED, 0), Stop(StopReason.ROUNDS, 5)],
            {},
            "1 group stopped after 5 rounds, the requested maximum; "
            "1 group stopped after the pilot, because no cell has anything to time, only observations",
        ),
        (
            [Stop(StopReason.PRECISION, 3), Stop(StopReason.PRECISION, 6)],
            {"claims": ["tensorflow/tensorflow#33487"]},
            "every group stopped after 3 and 6 rounds, with clear outcomes or at the width that the claims need",
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


def test_only_the_budget_of_a_suite_is_named_after_it():
    wish = {"budget_seconds": 90.0, "budget_is_wish": True}
    told = "every group stopped when the budget of 90 s{} ended, after 3 rounds"
    assert stopped(Stop(StopReason.BUDGET, 3), suite="quick", **wish) == told.format(" set by the suite")
    # `harness run` has a default budget
    assert stopped(Stop(StopReason.BUDGET, 3), **wish) == told.format("")


def test_groups_that_go_on_are_told():
    made = run(MEMBERS, stops={groups(MEMBERS)[0].name: Stop(StopReason.ROUNDS, 5)})
    assert timeline.describe_stops(Results(made, []).ended, made) == (
        "1 group stopped after 5 rounds, the requested maximum; 1 group not ended yet"
    )


def test_the_control_is_launched_twice():
    assert "and the control cell of each group twice" in timeline.describe_rounds(
        Results(run(MEMBERS, controlled=True), [])
    )
    assert "twice" not in timeline.describe_rounds(Results(run(MEMBERS), []))


def test_a_run_that_only_observes_has_no_rounds():
    ends = {group.name: Stop(StopReason.OBSERVED, 0) for group in groups(MEMBERS)}
    assert timeline.describe_rounds(Results(run(MEMBERS, stops=ends), [])).startswith(
        "none: no cell has anything to time"
    )


@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        (Sampling(warmup_seconds=0.5, measure_seconds=1.5), "warm up for 0.5 s, then measure for 1.5 s in samples of"),
        (
            Sampling(),
            "the pilot of each group determines the times: warm up for 0.1 s, then measure for 0.25 s in "
            "samples of at least",
        ),
        (Sampling(protocol=Protocol.DOCUMENT), "the number of iterations in the source"),
    ],
)
def test_how_long_launches_measured(sampling, sentence):
    asked = run(MEMBERS, asked={"sampling": sampling})
    assert timeline.describe_sampling(Results(asked, rounds(dict.fromkeys(MEMBERS, 0.01)))).startswith(sentence)


def test_how_long_launches_will_measure_is_their_pilots():
    asked = run(MEMBERS, asked={"sampling": Sampling()})
    assert timeline.describe_sampling(Results(asked, [])).startswith(
        "the pilot of each group determines the times: warm up, then measure in samples of"
    )


def test_which_cores_launches_had():
    assert timeline.describe_pinning(run()) == "pinned to 1 core (CPU 0)"
    limits = {"limits": Limits(cpus=(0, 1, 2, 8))}
    assert timeline.describe_pinning(run(asked=limits)) == "pinned to 4 cores (CPU 0-2, 8)"
    scaled = scenario(axes={**scenario().axes, CPUS: ["1", "4"]}, settings=[CPUS])
    members = [cell(cpus=count) for count in scaled.axes[CPUS]]
    assert timeline.describe_pinning(run(members, scenarios=[scaled], asked=limits)).startswith(
        "pinned to 1 or 4 of 4 cores"
    )
    assert timeline.describe_pinning(run(asked={"limits": Limits()})) == "on all cores of the machine"


def test_the_rounds_that_the_numbers_come_from():
    assert timeline.format_rounds(Results(run(), [])) == "5 rounds"
    assert timeline.format_rounds(Results(run(), rounds(TIMES, count=3))) == "3 rounds"


# What disturbed it.


def disturbed(*repeated):
    return [NoisyRound("group", number, "why", each) for number, each in enumerate(repeated, 1)]


@pytest.mark.parametrize(
    ("rounds_", "sentence"),
    [
        ([], "No round had interference from other processes."),
        (
            disturbed(True),
            "1 of 9 rounds had interference from other processes and was repeated. Only the repetition counts.",
        ),
        (
            disturbed(True, True),
            "2 of 9 rounds had interference from other processes and were repeated. Only the repetitions count.",
        ),
        (
            disturbed(True, False),
            "2 of 9 rounds had interference from other processes: 1 repeated, and 1 included in the results.",
        ),
        (disturbed(False, False), "2 of 9 rounds had interference from other processes and were not repeated."),
    ],
)
def test_what_disturbed_rounds(rounds_, sentence):
    assert timeline.describe_noisy_rounds(RunInterference(True, 9, rounds_, 30, [])) == sentence
    told = "The CPU time of other processes is subtracted: 4 % to 21.5 % of the time in 3 of 30 launches."
    assert (
        timeline.describe_noisy_rounds(RunInterference(True, 9, rounds_, 30, [0.04, 0.1, 0.215]))
        == f"{sentence} {told}"
    )


def test_what_a_quota_stopped_is_told_apart_from_what_others_took():
    told = timeline.describe_noisy_rounds(RunInterference(True, 9, disturbed(), 30, [0.05], [0.4, 0.5]))
    assert told.endswith(
        "is subtracted: 5 % of the time in 1 of 30 launches. "
        "The time for which a CPU quota paused launches is subtracted: 40 % to 50 % of the time in 2 of 30 launches."
    )


def test_one_share_that_is_taken_off_is_told_once():
    told = timeline.describe_noisy_rounds(RunInterference(True, 9, disturbed(False), 1, [0.05]))
    assert told.endswith("is subtracted: 5 % of the time in 1 of 1 launch.")


def test_where_nothing_was_watched_it_is_not_known():
    printed = timeline.describe_noisy_rounds(RunInterference(True, 9, [], 1, [0.05]), prints=True)
    assert (
        " is subtracted from the measured times, but not from printed numbers: 5 % of the time in 1 of 1 launch."
        in printed
    )
    assert timeline.describe_noisy_rounds(RunInterference(False, 9, [], 30, [])).startswith("Interference is unknown")
    assert timeline.describe_noisy_rounds(RunInterference(False, 0, [], 0, [])) == ""


def test_ten_disturbed_rounds_are_named_in_the_details():
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    (found,) = timeline.make_sections(Results(run(), rounds(TIMES, count=12, resources=noisy)))
    assert texts(found)[0] == "12 of 12 rounds had interference from other processes and were not repeated."
    (named,) = [block.items for block in everything(found) if isinstance(block, Items)]
    assert str(named[9]).startswith("Round 10 of step cpu call=fit dtype=float32: step tf1.14")
    assert named[10:] == ["and 2 more"]
    assert found.shown(Where.PASTE) is None


def test_a_repeated_round_says_so():
    launches = [replace(entry, resources=RESOURCES) for entry in rounds(TIMES, count=2)]
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    first = [replace(launch, resources=noisy) for launch in launches if launch.round == 2]
    again = [replace(launch, attempt=1) if launch.round == 2 else launch for launch in launches]
    (found,) = timeline.make_sections(Results(run(), [*first, *again]))
    (items,) = [block.items for block in everything(found) if isinstance(block, Items)]
    assert len(items) == 1
    assert str(items[0]).startswith("Round 2 of step cpu call=fit dtype=float32 (repeated): ")


def test_what_is_taken_off_is_told_with_the_rounds():
    shared = {**RESOURCES, "steady_cpu_seconds": 0.8}
    (found,) = timeline.make_sections(Results(run(), rounds(TIMES, count=2, resources=shared)))
    assert texts(found)[0].endswith(
        "not repeated. The CPU time of other processes is subtracted: 20 % of the time in 8 of 8 launches."
    )
    (items,) = [block.items for block in everything(found) if isinstance(block, Items)]
    assert str(items[0]).endswith(": other processes used 0.20 of the CPUs of the launch (subtracted from its time)")


def test_a_quiet_run_has_no_such_section():
    assert not list(timeline.make_sections(Results(run(), rounds(TIMES, resources=RESOURCES))))


def test_a_scenario_that_fixes_its_calls_is_sampled_as_it_says():
    once = rounds(TIMES, samples=[Sample(1.0, 1)])
    assert timeline.describe_sampling(Results(run(TIMES), once)) == "the number of calls that the scenario sets"
    mixed = [*once, *(entry for entry in rounds(TIMES) if entry.cell != once[0].cell)]
    assert timeline.describe_sampling(Results(run(TIMES), mixed)).endswith("; some scenarios set the number of calls")
