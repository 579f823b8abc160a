"""The A/A control."""

import math

import pytest

from harness.analysis.control import Control, find_control, separate_control
from harness.analysis.moderation import LaunchVariances
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


def test_groups_are_pooled_with_satterthwaites_degrees_of_freedom():
    pooled = find_control([*controls([0.00, 0.02], member=ONE), *controls([0.01, 0.03, 0.05], member=OTHER)])
    # s²/n: 0.0002 / 2 with 1 degree, 0.0004 / 3 with 2; (1 + 4/3)² / (1² / 1 + (4/3)² / 2) = 49 / 17 degrees
    half = student(49 / 17) * math.sqrt(0.0001 + 0.0004 / 3.0) / 2.0
    assert logs(pooled.estimate) == pytest.approx([0.02, 0.02 - half, 0.02 + half])
    assert (pooled.estimate.rounds, pooled.groups) == (3, 2)


def test_one_round_has_no_interval_and_says_nothing():
    one = find_control(controls([0.5], member=ONE))
    assert one == Control(Estimate(pytest.approx(math.exp(0.5)), 1), 1, one.cells)
    assert not one.is_beyond(MARGIN)
    # a group with one is left out beside those with more, and groups of one each have their mean
    more = controls([0.01, 0.02, 0.03], member=ONE)
    assert find_control([*more, *controls([0.5], member=OTHER)]) == find_control(more)
    both = find_control([*controls([0.02], member=ONE), *controls([0.04], member=OTHER)])
    assert both == Control(Estimate(pytest.approx(math.exp(0.03)), 1), 2, both.cells)
    # the sentence about the control names these cells
    assert [pooled.cells for pooled in (one, find_control(more), both)] == [(ONE,), (ONE,), (ONE, OTHER)]
    # without a cell that was launched twice there is no control
    failed = broken(ONE, Status.FAILED, 1, role=Role.CONTROL)
    for launches in ([], [launch(ONE, 0.01, 1), launch(ONE, 0.02, 2)], [launch(ONE), failed]):
        assert find_control(launches) is None


def test_rounds_and_blocks_in_which_both_launches_gave_a_number_count():
    pairs = controls([0.01, 0.02, 0.03], member=cell())
    others = [launch(cell("tf2.0"), 0.5 * number, number) for number in (1, 2, 3)]
    torn = [
        launch(cell(), 0.01, 4),
        broken(cell(), Status.FAILED, 4, role=Role.CONTROL),
        broken(cell(), Status.OOM, 5),
        launch(cell(), 0.01, 5, role=Role.CONTROL),
    ]
    assert find_control([*pairs, *others]) == find_control([*pairs, *torn]) == find_control(pairs)
    no_width = Interval(pytest.approx(1.0), pytest.approx(1.0))
    pooled = find_control(in_blocks(dict.fromkeys(cells(), 0.01)))
    assert pooled.estimate == Estimate(pytest.approx(1.0), 4, no_width)
    alike = find_control([*controls([0.0] * 5, member=ONE), *controls([0.0] * 5, member=OTHER)])
    assert alike.estimate.interval == no_width


def test_whether_all_of_it_lies_beyond_the_margin():
    beyond = {
        (-0.05, 0.02): False,
        (-0.05, -0.04): True,
        (MARGIN - 0.001, MARGIN + 0.059): False,
        (MARGIN + 0.001, MARGIN + 0.061): True,
    }
    assert {ends: ranging(*ends).is_beyond(MARGIN) for ends in beyond} == beyond


def group_of(logs, others):
    """A group's launches and scatter: a control cell with these differences by round, and cells of these logs."""
    launches = controls(logs, member=ONE)
    launches += [launch(OTHER, 0.01 * math.exp(log), number) for number, log in enumerate(others, 1)]
    numbers = {cell: [entry for entry in launches if entry.cell == cell] for cell in (ONE, OTHER)}
    every = [number for cell in numbers for number in numbers[cell]]
    scatter = LaunchVariances(
        [entry.cell for entry in every], [entry.round for entry in every], [math.log(entry.mean) for entry in every], {}
    )
    return launches, separate_control(scatter, numbers)


def test_the_groups_other_cells_lend_it_what_they_scatter_by():
    launches, scatter = group_of([0.01, -0.01], [0.0, 0.02])
    single, moderated = find_control(launches), find_control(launches, {launches[0].group: scatter})
    # residuals of three cells and two rounds: 0.0004 with two degrees, one of them the pair's own; and so one is lent
    left = scatter.between(ONE, (ONE, Role.CONTROL))
    assert left.freedom == 2.0
    variance = 2.0 * (left.variance + 0.0002 / 2.0) / 2.0
    half = student(2) * math.sqrt(variance / 2.0)
    assert logs(moderated.estimate) == pytest.approx([0.0, -half, half])
    assert moderated.estimate.interval.high < single.estimate.interval.high
