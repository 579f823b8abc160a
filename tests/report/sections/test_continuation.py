"""Why runs end, and what continues and repeats them."""

import shlex
from dataclasses import replace

from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.looks import FIRST_LOOK
from harness.analysis.results import Results
from harness.model.run import Stop, StopReason
from harness.model.texts import format_duration
from harness.report.blocks import Text
from harness.report.sections import continuation, summary
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import COMPARE, cell, cells, groups, rounds, run, scenario

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
BOTH = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}

#: The entry that picks each release's default mode, alone.
PICK = COMPARE[2:]


SETTLED = Results(run(BOTH, scenarios=[scenario(compare=PICK)]), rounds(BOTH, spread=0.0))


def make_unsettled(seconds, spread):
    times = {**BOTH, cell("tf2.0", mode="eager"): seconds}
    launches = [replace(launch, seconds=30.0) for launch in rounds(times, spread=spread)]
    return Results(run(times, scenarios=[scenario(compare=PICK)]), launches)


FIT, OTHER = "step cpu call=fit dtype=float32", "step cpu call=train_on_batch dtype=float32"


def end(measured, stops, **plan):
    return Results(replace(measured.run, stops=stops, plan=replace(measured.run.plan, **plan)), measured.launches)


def test_sentences_about_what_would_settle_unclear_comparisons(snapshot):
    narrow = {name: Stop(StopReason.PRECISION, FIRST_LOOK) for name in (FIT, OTHER)}
    unclear, of_claim = make_unsettled(0.0112, 0.025), {WORSE: 0.0115, BETTER: 0.01}
    by_precision = end(unclear, narrow, precision=0.2, rounds=100)
    by_claims = end(unclear, narrow, precision=None, claims=["tensorflow/tensorflow#1"])
    one_ended = {FIT: Stop(StopReason.ROUNDS, 5), OTHER: Stop(StopReason.PRECISION, 5)}
    runs = {
        "one": unclear,
        "several": make_unsettled(0.0103, 0.02),
        "one that is too close": make_unsettled(0.0112, 0.05),
        "several that are too close": make_unsettled(0.0101, 0.08),
        "ended by a precision": by_precision,
        "ended by claims": by_claims,
        "one group ended by a precision": end(make_unsettled(0.0103, 0.02), one_ended, precision=0.2, rounds=5),
        "a claim": Results(run([WORSE, BETTER], scenarios=[claimed_scenario()]), rounds(of_claim, spread=0.2)),
        "nothing is unclear": SETTLED,
    }
    assert {
        name: [block.words if isinstance(block, Text) else block.text for block in continuation.make_advice(measured)]
        for name, measured in runs.items()
    } == snapshot
    assert continuation.find_rounds_to_settle(by_precision) is None
    assert continuation.command_to_continue(by_precision) == ""


def test_the_suggestion_continues_the_groups_of_unclear_comparisons_alone():
    times = {member: seconds for member, seconds in BOTH.items() if member.axes["call"] != "fit"}
    unclear = {member: 0.0108 if member == cell("tf2.0", mode="eager") else 0.01 for member in TIMES}
    launches = [*rounds(times, count=50, spread=0.002), *rounds(unclear, count=5, spread=0.03)]
    measured = Results(run(BOTH, scenarios=[scenario(compare=PICK)]), [replace(x, seconds=30.0) for x in launches])
    text, command = continuation.make_advice(measured)
    assert measured.unsettled_groups == [FIT]
    total = continuation.find_rounds_to_settle(measured)
    assert total < 50
    assert text.words.startswith(f"{total - 5} more rounds (about {format_duration(4 * 30.0 * (total - 5))})")
    assert command.text.endswith(f" --rounds {total} --unsettled")
    # too few rounds are unsettled too, but not what is too close to the margin
    assert Results(measured.run, [x for x in measured.launches if x.round < 3]).unsettled_groups == [FIT, OTHER]
    assert make_unsettled(0.0112, 0.05).unsettled_groups == []
    # claims of another scenario, which are clear, don't hide it
    claimed, named = replace(claimed_scenario(), name="claimed"), {WORSE: 0.03, BETTER: 0.01}
    others = {replace(member, scenario="claimed"): seconds for member, seconds in named.items()}
    both = run([*BOTH, *others], scenarios=[*measured.run.scenarios, claimed])
    measured = Results(both, [*measured.launches, *rounds(others, spread=0.002)])
    assert [result.at.outcome for result in measured.claims] == [ClaimOutcome.CONFIRMED]
    assert (measured.unsettled_groups, list(continuation.make_advice(measured))[-1]) == ([FIT], command)


def test_the_command_after_an_early_end_depends_on_what_is_unclear():
    def end_by_budget(measured):
        stops = {group.name: Stop(StopReason.BUDGET, 5) for group in measured.run.plan.groups}
        return end(measured, stops, budget_seconds=60.0, rounds=100)

    # more rounds are of no use to a run that is settled
    settled = end_by_budget(SETTLED)
    assert list(continuation.make_advice(settled)) == []
    # one that somebody interrupted is continued whatever it found
    interrupted = end(settled, {name: Stop(StopReason.INTERRUPTED, 5) for name in settled.run.stops})
    _, command = advice = list(continuation.make_advice(interrupted))
    assert command.text == f"harness matrix --resume results/{settled.run.id}"
    assert advice == next(summary.make_sections(interrupted)).blocks[-2:]
    # what settles the unclear comparisons is the only advice
    unclear = end_by_budget(make_unsettled(0.0112, 0.025))
    _, command = continuation.make_advice(unclear)
    assert command.text.endswith(f"--rounds {continuation.find_rounds_to_settle(unclear)} --unsettled")


def run_ended(*stops, suite="", **plan):
    members = cells(calls=["fit", "train_on_batch"][: len(stops)])
    named = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    return run(members, stops=named, folder="results/a run", asked=plan, suite=suite)


def test_what_ended_a_run_before_its_rounds_and_the_command_that_continues_it(snapshot):
    budget = {"budget_seconds": 90.0, "rounds": 100}
    wish = {"budget_seconds": 230.0, "budget_is_wish": True}
    by_budget, by_rounds, by_precision, interrupted = (
        lambda count, reason=reason: Stop(reason, count)
        for reason in (StopReason.BUDGET, StopReason.ROUNDS, StopReason.PRECISION, StopReason.INTERRUPTED)
    )
    runs = {
        "as planned": run_ended(by_rounds(5), by_rounds(5)),
        "a budget": run_ended(by_budget(2), by_budget(2), **budget),
        "a group left out": run_ended(by_budget(4), by_budget(0), **budget),
        "enough for verdicts": run_ended(by_budget(4), by_budget(4), **budget),
        "a suite's budget": run_ended(by_budget(3), by_rounds(5), suite="quick", **wish),
        "the default budget": run_ended(by_budget(4), by_budget(4), **wish),
        "a precision": run_ended(by_precision(3), by_precision(8), precision=0.02, rounds=100),
        "an interruption": run_ended(interrupted(1), interrupted(1)),
    }
    texts = {
        name: [continuation.explain_early_end(Results(planned, [])), continuation.make_resume_command(planned)]
        for name, planned in runs.items()
    }
    assert texts == snapshot
    assert {
        continuation.make_resume_command(replace(planned, merged=["one", "other"])) for planned in runs.values()
    } == {""}


def test_the_command_is_that_of_the_run_with_the_seed():
    assert {
        command: continuation.repeat_run(run(TIMES, command=["harness", "matrix", *shlex.split(command)]))
        for command in ("", "--seed 7", "--seed=7", "-a 'mode=op by op; rm'")
    } == {
        "": "harness matrix --seed 7",
        "--seed 7": "harness matrix --seed 7",
        "--seed=7": "harness matrix --seed=7",
        "-a 'mode=op by op; rm'": "harness matrix -a 'mode=op by op; rm' --seed 7",
    }
