"""The A/A control."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.control import Control, control, separate_control
from harness.analysis.moderation import Scatter
from harness.analysis.statistics import Estimate, Interval, student
from harness.model.launch import Role, Status
from tests.analysis.paired import controls
from tests.factories import broken, cell, cells, in_blocks, launch

ONE, OTHER = cell(call="one"), cell(call="other")
MARGIN = math.log(1.03)


def logs(estimate):
    """An estimate's value and its interval's ends, on the log scale."""
    return [math.log(value) for value in (estimate.value, estimate.interval.low, estimate.interval.high)]


def ranging(low, high):
    return Control(Estimate(math.exp((low + high) / 2.0), 5, Interval(math.exp(low), math.exp(high))), 1)


def test_one_groups_control_is_its_paired_ratio():
    found = control(controls([0.01, 0.02, 0.03]))
    half = student(2) * 0.01 / math.sqrt(3.0)
    assert logs(found.estimate) == pytest.approx([0.02, 0.02 - half, 0.02 + half])
    assert (found.estimate.rounds, found.groups) == (3, 1)


def test_groups_are_pooled_with_satterthwaites_degrees_of_freedom():
    found = control([*controls([0.00, 0.02], of=ONE), *controls([0.01, 0.03, 0.05], of=OTHER)])
    # s²/n: 0.0002 / 2 with 1 degree, 0.0004 / 3 with 2; (1 + 4/3)² / (1² / 1 + (4/3)² / 2) = 49 / 17 degrees
    half = student(49 / 17) * math.sqrt(0.0001 + 0.0004 / 3.0) / 2.0
    assert logs(found.estimate) == pytest.approx([0.02, 0.02 - half, 0.02 + half])
    assert (found.estimate.rounds, found.groups) == (3, 2)


def test_groups_of_one_size_are_known_by_all_their_degrees_together():
    found = control([entry for name in "abc" for entry in controls([0.00, 0.02], of=cell(call=name))])
    assert logs(found.estimate)[2] == pytest.approx(0.01 + student(3) * math.sqrt(0.0003) / 3.0)


def test_one_round_has_no_interval_and_says_nothing():
    found = control(controls([0.5]))
    assert found.estimate.value == pytest.approx(math.exp(0.5))
    assert found.estimate.interval is None
    assert not found.beyond(MARGIN)


def test_a_group_with_one_round_is_left_out_beside_those_with_more():
    alone = control(controls([0.01, 0.02, 0.03], of=ONE))
    assert control([*controls([0.01, 0.02, 0.03], of=ONE), *controls([0.5], of=OTHER)]) == alone


def test_groups_of_one_round_each_have_their_mean_and_no_interval():
    found = control([*controls([0.02], of=ONE), *controls([0.04], of=OTHER)])
    assert found == Control(Estimate(pytest.approx(math.exp(0.03)), 1), 2)


def test_without_a_cell_launched_twice_there_is_no_control():
    assert control([]) is None
    assert control([launch(ONE, 0.01, 1), launch(ONE, 0.02, 2)]) is None


def test_a_round_in_which_either_launch_gave_no_number_does_not_count():
    whole = controls([0.01, 0.02, 0.03])
    torn = [
        launch(ONE, 0.01, 4),
        broken(ONE, Status.FAILED, 4, role=Role.CONTROL),
        broken(ONE, Status.OOM, 5),
        launch(ONE, 0.01, 5, role=Role.CONTROL),
    ]
    moved = [launch(ONE, made.mean, made.round, role=made.role) for made in whole]
    assert control([*moved, *torn]) == control(moved)


def test_a_control_that_always_failed_is_none():
    assert control([launch(ONE), broken(ONE, Status.FAILED, 1, role=Role.CONTROL)]) is None


def test_the_groups_other_cells_are_not_in_it():
    pairs = controls([0.01, 0.02, 0.03], of=cell())
    others = [launch(cell("tf2.0"), 0.5 * number, number) for number in (1, 2, 3)]
    assert control([*pairs, *others]) == control(pairs)


def test_of_a_round_in_blocks_it_is_the_pair_that_was_alive_together():
    found = control(in_blocks(dict.fromkeys(cells(), 0.01)))
    assert (found.estimate.value, found.estimate.rounds) == (pytest.approx(1.0), 4)
    assert found.estimate.interval == Interval(pytest.approx(1.0), pytest.approx(1.0))


def test_launches_that_all_agree_have_an_interval_without_a_width():
    found = control([*controls([0.0] * 5, of=ONE), *controls([0.0] * 5, of=OTHER)])
    assert found.estimate.interval == Interval(pytest.approx(1.0), pytest.approx(1.0))


def test_whether_all_of_it_lies_beyond_the_margin():
    for low, high, beyond in [
        (-0.01, 0.02, False),
        (-0.05, 0.02, False),
        (0.04, 0.05, True),
        (-0.05, -0.04, True),
        (0.02, 0.04, False),
        (-0.09, 0.09, False),
    ]:
        found = ranging(low, high)
        assert found.beyond(MARGIN) is beyond, (low, high, beyond)


def group_of(logs, others):
    """A group's launches and scatter: a control cell with these differences by round, and cells of these logs."""
    made = [value for number, log in enumerate(logs, 1) for value in (launch(ONE, 0.01, number), second(log, number))]
    made += [launch(OTHER, 0.01 * math.exp(log), number) for number, log in enumerate(others, 1)]
    numbers = {cell: [entry for entry in made if entry.cell == cell] for cell in (ONE, OTHER)}
    every = [number for cell in numbers for number in numbers[cell]]
    scatter = Scatter(
        [entry.cell for entry in every], [entry.round for entry in every], [math.log(entry.mean) for entry in every], {}
    )
    return made, separate_control(scatter, numbers)


def second(log, number):
    return launch(ONE, 0.01 * math.exp(log), number, role=Role.CONTROL)


def test_the_groups_other_cells_lend_it_what_they_scatter_by():
    made, scatter = group_of([0.01, -0.01], [0.0, 0.02])
    alone, moderated = control(made), control(made, {made[0].group: scatter})
    # residuals of three cells and two rounds: 0.0004 with two degrees, one of them the pair's own; and so one is lent
    left = scatter.between(ONE, (ONE, Role.CONTROL))
    assert left.freedom == 2.0
    variance = 2.0 * (left.variance + 0.0002 / 2.0) / 2.0
    half = student(2) * math.sqrt(variance / 2.0)
    assert logs(moderated.estimate) == pytest.approx([0.0, -half, half])
    assert moderated.estimate.interval.high < alone.estimate.interval.high


def test_what_the_two_launches_differ_by_is_not_in_what_they_scatter_by():
    narrow, wide = (
        control(made, {made[0].group: scatter}).estimate.interval
        for made, scatter in (group_of([at + 0.01, at - 0.01], [0.0, 0.02]) for at in (0.0, 0.2))
    )
    assert wide.high / wide.low == pytest.approx(narrow.high / narrow.low)


def test_the_least_bias_is_the_margin_and_half_of_the_interval():
    found = ranging(-0.04, 0.02)
    assert found.least_bias(MARGIN) == pytest.approx(MARGIN + 0.03)
    assert not ranging(MARGIN - 0.001, MARGIN + 0.059).beyond(MARGIN)
    assert ranging(MARGIN + 0.001, MARGIN + 0.061).beyond(MARGIN)


def test_a_control_that_could_not_show_a_tenth_is_no_check():
    for half, is_check in [(0.065, True), (0.067, False)]:
        assert ranging(-half, half).is_check(MARGIN) is is_check
        assert not Control(Estimate(1.0, 1), 1).is_check(MARGIN), (half, is_check)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=8))
def test_which_launch_was_the_first_turns_it_over(values):
    there, back = control(controls(values)), control(controls([-value for value in values]))
    assert back.estimate.value == pytest.approx(1.0 / there.estimate.value)
    assert back.beyond(MARGIN) is there.beyond(MARGIN)
