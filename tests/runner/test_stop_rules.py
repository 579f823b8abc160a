"""Why a group got no more rounds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.model.launch import Launch, Role, Status
from harness.model.run import Plan, Stop, StopReason
from harness.runner.rounds import RoundLog
from harness.runner.stop_rules import find_stops, open_groups, rounds_needed
from tests.runs import launch, plan

WIDE: Mapping[str, float] = {"step 0": 1.0}


def rounds(planned: Plan, count: int, **changes: Any) -> RoundLog:
    """Return a pilot and `count` rounds of the plan's first group, each launch of one second."""
    (group, *_) = planned.groups
    return RoundLog(
        planned,
        [
            launch(**{"group": group.name, "cell": cell, "round": number, "role": role, "seconds": 1.0, **changes})
            for number in range(count + 1)
            for role in [Role.MEASURE if number else Role.PILOT]
            for cell in group.cells
        ],
    )


def test_the_reason_is_stored_with_the_rounds():
    for reason, changes, width, count in [
        (StopReason.ROUNDS, {}, 1.0, 5),
        (StopReason.PRECISION, {"precision": 0.02, "rounds": 100}, 0.01, 9),
        (StopReason.ROUNDS, {"precision": 0.02}, 0.5, 5),
        (StopReason.BUDGET, {"budget_seconds": 10.0}, 1.0, 3),
        (StopReason.INTERRUPTED, {"budget_seconds": 10.0}, 1.0, 3),
    ]:
        planned = replace(plan(rounds=5), **changes)  # type: ignore[arg-type]
        is_interrupted = reason is StopReason.INTERRUPTED
        widths = dict.fromkeys(["step 0"], width)
        stops = find_stops(planned, rounds(planned, count), lambda _, widths=widths: widths, interrupted=is_interrupted)
        assert stops == {"step 0": Stop(reason, count)}


def test_a_group_whose_cells_all_failed_or_only_observe_ends_after_its_pilot():
    planned = plan()
    for reason, changes in {
        StopReason.NO_NUMBERS: {"status": Status.FAILED},
        StopReason.OBSERVED: {"samples": [], "observations": {"traces": 3}},
    }.items():
        ledger = rounds(planned, 0, **changes)
        assert find_stops(planned, ledger, lambda _: {}, interrupted=False) == {"step 0": Stop(reason, 0)}
        assert open_groups(planned, ledger, 1, lambda _: {}) == frozenset()


def test_a_group_ends_by_its_precision_or_when_its_claims_tell_what_they_can():
    planned = replace(plan(rounds=100), precision=0.02)
    for width, is_open in {0.0198: False, math.log1p(0.02): False, math.log(1.021): True}.items():
        assert bool(open_groups(planned, rounds(planned, 9), 10, lambda _, width=width: {"step 0": width})) is is_open
    for precision, width, is_open in [(None, 1.0, False), (None, 1.01, True), (0.02, 1.0, True)]:
        planned = replace(plan(rounds=100), claims=["T#1"], precision=precision)
        assert bool(open_groups(planned, rounds(planned, 3), 4, lambda _, width=width: {"step 0": width})) is is_open


def test_a_group_that_ended_stays_so_though_what_others_measure_widens_its_intervals():
    planned = replace(plan(rounds=100, groups=2), precision=0.02)
    finished, going = planned.groups
    launches_of_both = [*rounds(planned, 7).launches, *rounds(replace(planned, groups=[going]), 9).launches]
    ledger = RoundLog(planned, launches_of_both)

    def widths(launches: Sequence[Launch]) -> Mapping[str, float]:
        return {finished.name: 0.01 if max(entry.round for entry in launches) == 7 else 1.0, going.name: 1.0}

    assert open_groups(planned, ledger, 10, widths) == {going.name}
    # ... and where a run that goes on walks through its rounds again
    assert open_groups(planned, ledger, 8, widths) == {going.name}
    assert find_stops(planned, ledger, widths, interrupted=False)[finished.name] == Stop(StopReason.PRECISION, 7)


def test_a_group_that_the_budget_ended_goes_on_where_others_are_ahead():
    planned = replace(plan(rounds=100, groups=2), precision=0.02)
    behind, ahead = planned.groups
    launches = [*rounds(planned, 7).launches, *rounds(replace(planned, groups=[ahead]), 9).launches]
    wide = dict.fromkeys((behind.name, ahead.name), 1.0)
    assert open_groups(planned, RoundLog(planned, launches), 8, lambda _: wide) == {behind.name, ahead.name}


def test_widths_after_a_round_are_asked_for_once():
    planned = replace(plan(rounds=100), precision=0.02)
    ledger, counts = rounds(planned, 7), []

    def widths(launches: Sequence[Launch]) -> Mapping[str, float]:
        counts.append(len(launches))
        return WIDE

    for number in (8, 8):
        assert open_groups(planned, ledger, number, widths) == {"step 0"}
    assert len(counts) == 1


def test_a_group_is_expected_to_end_when_its_interval_is_narrow():
    planned = replace(plan(rounds=100), precision=math.expm1(0.02))
    (group,) = planned.groups
    for count, width, needed in [
        (1, math.inf, 3),  # before verdicts are looked at
        (3, math.inf, 6),  # before widths are
        (7, math.inf, 8),  # one that has no interval
        (4, 0.0399, 16),  # twice as wide
        (4, 0.4, 100),  # at most those planned
        (4, 0.01, 5),  # one more at least
    ]:
        ledger = rounds(planned, count)
        open_groups(planned, ledger, count + 1, lambda _, width=width: {group.name: width})
        assert rounds_needed(planned, group, ledger) == needed
        assert rounds_needed(replace(planned, precision=None), group, ledger) == 100
