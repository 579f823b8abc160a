"""What a verdict may use of its level, where a run is judged more than once."""

import math
from dataclasses import replace

import pytest

from harness.analysis.cell_index import lookup
from harness.analysis.interval_widths import widths
from harness.analysis.looks import (
    FIRST_LOOK,
    LOOKS,
    Look,
    compute_last_share,
    compute_settling_share,
    find_claim_cells,
    list_looks_at_claims,
)
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.issues import parse
from harness.model.run import Stop, StopReason
from harness.model.scenario import MACHINE, Claim, ClaimSide
from tests.analysis.paired import around, family
from tests.factories import scenario


def test_a_look_has_what_was_not_spent_before_it():
    for rounds, share in (
        ([5], 1.0),
        ([3, 8], 1.0 - 3.0 / 8.0),
        ([3, 8, 12], 3.0 / 8.0 - 3.0 / 12.0),
        ([3, 8, 8], 1.0 - 3.0 / 8.0),
        ([0, 1, 3], 1.0),
    ):
        assert compute_last_share(rounds) == pytest.approx(share), rounds
    # those of a precision spend no more than half a level
    shares = [compute_settling_share(rounds) for rounds in LOOKS]
    assert math.fsum(shares) == pytest.approx(0.5 * (1.0 - 2.0 / LOOKS[-1]))
    assert compute_settling_share(7) == 0.0


def stop_all(one, reason, rounds, **plan):
    """The run of a family, all of whose groups ended so."""
    stops = {group.name: Stop(reason, rounds) for group in one.run.plan.groups}
    return replace(one.run, plan=replace(one.run.plan, **plan), stops=stops)


def compared(run, one):
    (table,) = Results(run, one.launches).tables
    return [value.compared for row in table.rows for value in row.values if value.compared]


def test_a_run_that_ended_as_planned_has_all_of_the_level():
    one = family(around(0.3, 0.01, 5))
    assert set(one.found.looks.values()) == {Look()}
    # and so has a group that had no more rounds
    (name,) = (group.name for group in one.run.plan.groups)
    assert compared(replace(one.run, looks=[{name: 5}]), one) == compared(one.run, one)
    # a verdict that is just clear may be unclear once the run was continued
    one = family(around(0.068, 0.04, 8))
    (plain,), (later,) = (compared(run, one) for run in (one.run, replace(one.run, looks=[{name: 6}])))
    assert (plain.verdict, later.verdict) == (Verdict.FASTER, Verdict.UNCLEAR)


def test_a_group_whose_verdicts_are_settled_is_known_well_enough_and_keeps_its_level():
    for mean, width in ((0.5, 0.0), (0.0, 0.0), (math.log(1.03), math.inf)):
        one = family(around(mean, 0.004, LOOKS[0]))
        assert list(widths(one.run, one.launches).values()) == [width], mean
    # between looks only what is narrow is
    one = family(around(0.5, 0.01, 7))
    (width,) = widths(one.run, one.launches).values()
    assert 0.0 < width < math.inf
    share = compute_settling_share(LOOKS[0])
    for mean, spread, others in ((0.5, 0.03, 0), *((0.1, 0.012, others) for others in range(4))):
        one = family(around(mean, spread, LOOKS[0]), *([around(0.0, 0.0001, LOOKS[0])] * others))
        comparison = compared(stop_all(one, StopReason.PRECISION, LOOKS[0], precision=0.02), one)[0]
        assert comparison.level == pytest.approx(1.0 - 0.05 / (1 + others) * share), others
        assert mean < 0.5 or (comparison.verdict, comparison.ratio.interval.high < 1.0 / 1.03) == (Verdict.FASTER, True)
    # what a look did not end has all of it
    for reason, rounds in ((StopReason.PRECISION, FIRST_LOOK + 1), (StopReason.ROUNDS, LOOKS[0])):
        one = family(around(0.5, 0.001, rounds))
        (comparison,) = compared(stop_all(one, reason, rounds, precision=0.02), one)
        assert comparison.level == pytest.approx(0.95), reason


def test_looks_at_claims_have_half_as_many_rounds_again_on_each_machine():
    for first, last, looks in [
        (3, 30, [3, 6, 12, 30]),
        (2, 30, [2, 4, 8, 16, 30]),
        (3, 4, [4]),  # with four rounds and the rest of the level, an interval is wider than with three rounds
        (2, 2, [2]),
    ]:
        assert list_looks_at_claims(first, last) == looks
    claimed = Claim(issue=parse("T#1"), reported="", worse=ClaimSide("tf1.14", {}), better=None, ratio=None)
    merged = scenario(axes={"call": ["0"], MACHINE: ["m-a", "m-b"]})
    assert {worse.axes[MACHINE] for worse, _ in find_claim_cells([], merged, claimed)} == {"m-a", "m-b"}


def test_claims_that_were_unclear_before_have_the_rest_of_the_level():
    # claims near the margin have a first look after four rounds, and had it after three before
    for rounds, rules, share in [
        *((4, 10, 1.0), (6, 10, 1.0 - 4.0 / 6.0), (30, 10, 4.0 / 16.0 - 4.0 / 30.0)),
        *((3, 9, 1.0), (5, 9, 0.4), (30, 9, 0.15)),
        # in older runs, outcomes didn't end a group
        (30, 7, 1.0),
    ]:
        one = family(around(0.3, 0.01, rounds))
        claimed = Claim(
            issue=parse("T#1"),
            reported="",
            worse=ClaimSide("tf1.14", {"call": "0"}),
            better=ClaimSide("tf2.0", {"call": "0"}),
            ratio=(1.1, 2.0),
        )
        (claiming,) = one.run.scenarios
        claiming = replace(claiming, claims=[claimed], axes={**claiming.axes, "call": ["0"]})
        run = replace(one.run, scenarios=[claiming], plan=replace(one.run.plan, claims=["T#1"], rounds=30))
        (look,) = lookup(replace(run, rules=rules), one.launches).looks.values()
        assert look.share == pytest.approx(share), (rounds, rules)
