"""What upstream issues claim, against stored launches."""

import math
from dataclasses import replace

import pytest

from harness.analysis.claim_rules import ClaimOutcome, judge_ratio, judge_value
from harness.analysis.results import Results
from harness.analysis.statistics import Interval
from harness.analysis.verdicts import Verdict
from harness.model.environment import Device, Environment
from harness.model.launch import Role, Status
from harness.model.run import Stop, StopReason, Unavailable
from tests.claims import BETTER, CLAIM, LEAK, WORSE, claimed_scenario
from tests.factories import ENVIRONMENTS, broken, cell, cells, contended, launch, rounds, run


def results(launches, claims=(CLAIM,), planned=(), **changes):
    """What the claims of a run with these launches come to."""
    measured_cells = list(planned) or list(dict.fromkeys(entry.cell for entry in launches))
    return Results(run(measured_cells, scenarios=[claimed_scenario(*claims)], **changes), launches).claims


def one(seconds, claim=CLAIM, *, spread=0.01, count=5):
    (result,) = results(rounds(seconds, count, spread), [claim], environments=ENVIRONMENTS)
    return result


def test_an_unclear_one_says_what_would_settle_it_and_that_it_is_below_the_claim():
    at = one({WORSE: 0.0115, BETTER: 0.01}, spread=0.2).at
    assert at.outcome is ClaimOutcome.UNCLEAR
    assert at.settling.rounds > 0
    assert at.at_most == at.estimate.interval.high < CLAIM.range[0]
    far = one({WORSE: 0.015, BETTER: 0.01}, spread=1.2).at
    assert (far.outcome, far.at_most) == (ClaimOutcome.UNCLEAR, None)
    vague = one({WORSE: 3.0}, replace(CLAIM, better=None, ratio=None, seconds=(2.0, 5.0)), spread=1.5, count=3).at
    assert (vague.outcome, vague.settling.rounds) == (ClaimOutcome.UNCLEAR, 3)


def cut_short(counts, claim):
    """Return the result of the claim if the budget ends after these rounds of each side."""
    points = [(100.0 * at, 1e9 + 5000.0 * 100.0 * at) for at in range(21)]
    launches = [
        launch(member, seconds, number, memory=points if claim is LEAK else ())
        for member, seconds, count in ((WORSE, 0.015, counts[0]), (BETTER, 0.01, counts[1]))
        for number in range(1, count + 1)
    ]
    plan = run([WORSE, BETTER], scenarios=[claimed_scenario(claim)], asked={"budget_seconds": 20.0})
    stops = {group.name: Stop(StopReason.BUDGET, max(counts)) for group in plan.plan.groups}
    (result,) = Results(replace(plan, stops=stops), launches).claims
    return result


def test_a_claim_that_was_not_judged_says_why(snapshot):
    better, both = rounds({BETTER: 0.01}), rounds({WORSE: 0.03, BETTER: 0.01})
    failed = broken(WORSE, Status.FAILED, error="ValueError: no such layer.")
    observed = [launch(side, (), 0, role=Role.PILOT, samples=[], observations={"n": 1}) for side in (WORSE, BETTER)]
    other_work = [replace(planned, fingerprint={"parameters": 1 if planned.cell == WORSE else 2}) for planned in both]
    absent = Unavailable(WORSE, "There is no Keras.", "Take another.")
    elsewhere = rounds({cell("tf2.1", mode="eager"): 0.03, cell("tf2.1", mode="graph"): 0.01})
    cases = {
        "two rounds": [one({WORSE: 0.015, BETTER: 0.01}, count=2)],
        "failed": results([*better, failed]),
        "not available": results(better, unavailable=[absent]),
        "interrupted": results(better, planned=[WORSE, BETTER]),
        "only other environments": results(elsewhere, environments=ENVIRONMENTS),
        "another device": results(both, [replace(CLAIM, visible=[Device.GPU])]),
        "different work": results(other_work),
        "only observed": results(observed),
        "no such phase": results(both, [replace(CLAIM, of="load")]),
        "CPU contention": results(
            rounds({WORSE: 0.011, BETTER: 0.01}, spread=0.001, resources=contended(0.5)),
            [replace(CLAIM, ratio=(1.1, 4.0))],
        ),
        "few calls": results(leaking(0.0, calls=40), [LEAK]),
        "one round of growth": results(leaking(5000.0, count=1), [LEAK]),
        "no memory": results(rounds({WORSE: 0.01}), [LEAK]),
        "two rounds in the budget": [cut_short((2, 2), CLAIM)],
        "one round in the budget": [cut_short((1, 1), CLAIM)],
        "one side in the budget": [cut_short((1, 0), CLAIM)],
        "growth in the budget": [cut_short((2, 0), LEAK)],
    }
    messages = {case: f"{result.at.outcome.value}: {result.at.why}" for case, (result,) in cases.items()}
    messages["fixed"] = releases([3.0, 1.0, 1.0]).fixed_between
    assert messages == snapshot
    (result,) = cases["only other environments"]
    assert [(place.environment, place.outcome) for place in result.elsewhere] == [("tf2.1", ClaimOutcome.CONFIRMED)]
    assert results(rounds({cell(call="train_on_batch"): 0.01})) == []
    # two rounds show a large ratio
    assert one({WORSE: 0.04, BETTER: 0.01}, count=2, spread=0.001).at.outcome is ClaimOutcome.CONFIRMED


THREE = [(environment.name, mode) for environment in ENVIRONMENTS for mode in ("graph", "eager")]


def claimed_in(environment, **changes):
    """Return the claim for that environment."""
    sides = {name: replace(getattr(CLAIM, name), environment=environment) for name in ("worse", "better")}
    return replace(CLAIM, **sides, **changes)


def releases(ratios, **changes):
    """The claim of tf1.14's eager mode, with these ratios in tf1.14, tf2.0 and tf2.1."""
    seconds = {cell(name, mode=mode): 0.01 for name, mode in THREE}
    names = [environment.name for environment in ENVIRONMENTS]
    seconds |= {cell(name, mode="eager"): 0.01 * ratio for name, ratio in zip(names, ratios, strict=True)}
    return one(seconds, claimed_in("tf1.14", **changes))


def test_a_release_without_a_clear_outcome_may_have_the_fix_and_only_a_later_one_fixes():
    seconds = {cell(name, mode="graph"): 0.01 for name in ("tf1.14", "tf2.1")}
    seconds |= {cell("tf1.14", mode="eager"): 0.03, cell("tf2.1", mode="eager"): 0.01}
    other_work = [
        launch(cell("tf2.0", mode=mode), 0.01, number, fingerprint={"outputs": output})
        for number in range(1, 6)
        for mode, output in (("graph", 1.0), ("eager", 2.0))
    ]
    (result,) = results([*rounds(seconds), *other_work], [claimed_in("tf1.14")], environments=ENVIRONMENTS)
    assert {place.environment: place.outcome for place in result.elsewhere} == {
        "tf2.0": ClaimOutcome.DIFFERENT_WORK,
        "tf2.1": ClaimOutcome.NOT_SEEN,
    }
    assert result.fixed_between.split()[2::2] == ["tf1.14", "tf2.1"]
    # tf2.1 is where it was claimed: tf1.14 and tf2.0 had nothing yet
    seconds = {cell(name, mode=mode): 0.03 if (name, mode) == ("tf2.1", "eager") else 0.01 for name, mode in THREE}
    result = one(seconds, claimed_in("tf2.1"))
    assert (result.at.outcome, result.fixed) == (ClaimOutcome.CONFIRMED, None)
    assert [place.outcome for place in result.elsewhere] == [ClaimOutcome.NOT_SEEN] * 2


def test_a_claim_is_fixed_before_the_first_release_in_which_it_is_not_seen_any_more():
    for ratios, fixed, after in (([3.0, 3.0, 1.0], "tf2.1", "tf2.0"), ([3.0, 1.0, 0.5], "tf2.0", "tf1.14")):
        result = releases(ratios)
        assert {place.better.environment for place in result.places} == {place.environment for place in result.places}
        assert result.fixed.environment == fixed, ratios
        assert result.fixed_between.split()[2::2] == [after, fixed], ratios
    for ratios in ([3.0, 1.0, 3.0], [1.0, 1.0, 1.0]):
        assert (releases(ratios).fixed, releases(ratios).fixed_between) == (None, ""), ratios
    better = replace(CLAIM.better, environment="tf1.14", axes={"mode": "eager"})
    times = {cell("tf1.14", mode="eager"): 0.01, cell("tf2.0", mode="eager"): 0.03, cell("tf2.1", mode="eager"): 0.01}
    result = one(times, replace(CLAIM, better=better))
    assert [(place.worse.environment, place.better and place.better.environment) for place in result.places] == [
        ("tf2.0", "tf1.14"),
        ("tf2.1", "tf1.14"),
    ]
    assert result.fixed.environment == "tf2.1"


def test_requirements_are_found_by_what_was_asked():
    environment = Environment("moved", "2.0.0", "3.7", "2019-11-01T00:00:00Z", asked="tf2.0+numpy==1.17.4")
    worse, better = (replace(getattr(CLAIM, name), environment=environment.asked) for name in ("worse", "better"))
    pair = {cell("moved", mode="eager"): 0.03, cell("moved"): 0.01}
    (result,) = results(rounds(pair), [replace(CLAIM, worse=worse, better=better)], environments=[environment])
    assert (result.at.outcome, result.at.environment) == (ClaimOutcome.CONFIRMED, "moved")


def test_a_scenarios_claims_of_one_quantity_are_judged_together_and_those_that_were_asked_for_alone():
    other = replace(CLAIM, when={"call": "train_on_batch"})
    both = cells(["tf2.0"], ["fit", "train_on_batch"])
    slower = {entry: 0.03 if entry.axes["mode"] == "eager" else 0.01 for entry in both}
    judged = results(rounds(slower), [CLAIM, other])
    assert [entry.at.level for entry in judged] == [pytest.approx(1.0 - 0.05 / 2)] * 2
    assert [entry.claim.when["call"] for entry in judged] == ["fit", "train_on_batch"]
    other = replace(CLAIM, issue=replace(CLAIM.issue, number=CLAIM.issue.number + 1))
    planned = run([WORSE, BETTER], scenarios=[claimed_scenario(CLAIM, other)])
    for issues, expected in (([], [CLAIM, other]), ([str(CLAIM.issue)], [CLAIM])):
        asked_for = replace(planned, plan=replace(planned.plan, claims=issues))
        judged = Results(asked_for, rounds({WORSE: 0.03, BETTER: 0.01})).claims
        assert [entry.claim for entry in judged] == expected


def importing(times):
    """Return five rounds with these import times of the sides."""
    return [
        launch(side, 0.01, number, phases={"import": seconds * (1.0 + 0.01 * math.sin(number))})
        for number in range(1, 6)
        for side, seconds in times.items()
    ]


def test_a_claim_may_be_of_a_phase_or_of_its_seconds_on_one_side():
    (result,) = results(importing({WORSE: 3.0, BETTER: 1.0}), [replace(CLAIM, of="import")])
    assert result.at.outcome is ClaimOutcome.CONFIRMED
    claim = replace(CLAIM, better=None, ratio=None, seconds=(5.0, 20.0), of="import")
    for seconds, outcome in ((6.0, ClaimOutcome.CONFIRMED), (2.0, ClaimOutcome.SMALLER), (0.5, ClaimOutcome.NOT_SEEN)):
        (result,) = results(importing({WORSE: seconds}), [claim])
        assert (result.at.outcome, result.at.at_most) == (outcome, None), seconds
        assert result.at.estimate.value == pytest.approx(seconds, rel=0.02)


def leaking(growth, count=5, calls=2000):
    points = [calls * at / 20 for at in range(21)]
    return [
        launch(WORSE, 0.01, number, memory=[(at, 1e9 + growth * at * (1.0 + 0.02 * number)) for at in points])
        for number in range(1, count + 1)
    ]


def controlled(growths, repeats):
    """Rounds of a cell that keeps `growths` bytes a call, and of its control, which keeps `repeats`."""
    points = [100.0 * at for at in range(21)]
    return [
        launch(WORSE, 0.01, number, role=role, memory=[(at, 1e9 + growth * at) for at in points])
        for number, both in enumerate(zip(growths, repeats, strict=True), 1)
        for role, growth in zip((Role.MEASURE, Role.CONTROL), both, strict=True)
    ]


def test_growth_that_is_not_shown_or_that_the_control_may_change_is_unclear():
    # the intervals reach from below 0 to less and to more than half of the claimed 1,000 bytes
    for growths, outcome in (
        ([-100.0, 0.0, 150.0], ClaimOutcome.NOT_SEEN),
        ([-300.0, 0.0, 400.0], ClaimOutcome.UNCLEAR),
    ):
        (result,) = results(controlled(growths, growths), [LEAK])
        assert result.at.estimate.interval.low < 0.0
        assert (result.at.outcome, bool(result.at.settling)) == (outcome, outcome is ClaimOutcome.UNCLEAR)
    # nothing kept is 0 bytes, and no trifle
    (result,) = results(controlled([3.6e-8, 3.6e-8, 3.7e-8], [0.0, 0.0, 0.0]), [LEAK])
    assert (result.at.estimate.value, result.at.estimate.interval) == (0.0, Interval(0.0, 0.0))
    for growths, repeats, outcome in (
        # the control's difference is 500 bytes, half of the smallest claimed value
        ([5000.0, 5100.0, 4900.0], [5500.0, 5610.0, 5420.0], ClaimOutcome.CONFIRMED),
        ([600.0, 610.0, 590.0], [1100.0, 1120.0, 1090.0], ClaimOutcome.UNCLEAR),
        ([10.0, 10.0, 11.0], [510.0, 520.0, 500.0], ClaimOutcome.UNCLEAR),
        # less than a tenth of the claim has no effect
        ([940.0, 941.0, 939.0], [990.0, 991.0, 989.0], ClaimOutcome.SMALLER),
    ):
        (result,) = results(controlled(growths, repeats), [LEAK])
        assert result.at.outcome is outcome, growths
        assert ("identical" in result.at.why) == (outcome is ClaimOutcome.UNCLEAR)


def test_the_outcome_of_a_claim_by_its_interval():
    for low, high, claimed, outcome in [
        (0.95, 1.10, (10.0, 20.0), ClaimOutcome.NOT_SEEN),
        (0.95, 3.10, (10.0, 20.0), ClaimOutcome.NOT_SEEN),
        (0.95, 3.30, (10.0, 20.0), ClaimOutcome.UNCLEAR),
        (0.98, 1.06, (1.1, 1.2), ClaimOutcome.NOT_SEEN),
        (0.98, 1.07, (1.1, 1.2), ClaimOutcome.UNCLEAR),
    ]:
        claim = replace(CLAIM, ratio=claimed)
        assert judge_ratio(Verdict.UNCLEAR, Interval(low, high), claim, 0.03) is outcome, (low, high, claimed)
        assert judge_ratio(Verdict.UNCLEAR, None, claim, 0.03) is ClaimOutcome.UNCLEAR
    retraced = replace(CLAIM, ratio=(5.0, 20.0), of="traces")
    assert judge_ratio(Verdict.SLOWER, Interval(2.0, 2.0), retraced) is ClaimOutcome.NOT_SEEN
    assert judge_ratio(Verdict.SLOWER, Interval(3.0, 3.0), retraced) is ClaimOutcome.SMALLER
    # a time that is twice as long is slower, however much was claimed
    assert judge_ratio(Verdict.SLOWER, Interval(2.0, 2.0), replace(retraced, of="step")) is ClaimOutcome.SMALLER
    outcomes = {
        (0.24, 1450.0): ClaimOutcome.UNCLEAR,  # as was measured of an import in a few rounds
        (0.24, 50.0): ClaimOutcome.CONFIRMED,
        (3.0, 49.0): ClaimOutcome.CONFIRMED,
        (3.0, 51.0): ClaimOutcome.UNCLEAR,
        (5.1, 1450.0): ClaimOutcome.LARGER,
    }
    assert {ends: judge_value(Interval(*ends), (2.0, 5.0)) for ends in outcomes} == outcomes


def test_an_effect_that_is_absent_or_smaller_in_a_release_with_the_fix_was_fixed_before():
    expected = {"1.4": ClaimOutcome.FIXED_BEFORE, "2.0": ClaimOutcome.FIXED_BEFORE, "2.1": None}
    for seconds, unfixed in {0.01: ClaimOutcome.NOT_SEEN, 0.015: ClaimOutcome.SMALLER}.items():
        for fixed, outcome in expected.items():
            result = one({WORSE: seconds, BETTER: 0.01}, replace(CLAIM, fixed=fixed))
            assert result.at.outcome is (outcome or unfixed), (seconds, fixed)
    # an unclear effect is smaller only if the whole interval is below the claim
    claim = replace(CLAIM, fixed="1.4")
    assert one({WORSE: 0.0115, BETTER: 0.01}, claim, spread=0.2).at.outcome is ClaimOutcome.FIXED_BEFORE
    for count, spread in ((1, 0.01), (2, 0.15)):
        assert one({WORSE: 0.03, BETTER: 0.01}, claim, count=count, spread=spread).at.outcome is ClaimOutcome.UNCLEAR
    # the fix didn't help, or the source is wrong
    assert one({WORSE: 0.03, BETTER: 0.01}, claim).at.outcome is ClaimOutcome.CONFIRMED
