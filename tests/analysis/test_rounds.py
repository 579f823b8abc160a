"""Which launches count, and what rounds cost."""

from dataclasses import replace

import pytest

from harness.analysis.rounds import counted, pilots, seconds_per_round, series
from harness.model.launch import Role, Sample, Status
from tests.factories import broken, cell, launch, run

GRAPH, EAGER = cell(mode="graph"), cell(mode="eager")
PLANNED = run([GRAPH, EAGER]).plan
PLAN = replace(PLANNED, groups=[replace(PLANNED.groups[0], control=None)])
CONTROLLED = replace(PLANNED, groups=[replace(PLANNED.groups[0], control=GRAPH)])


def test_the_pilot_does_not_count():
    assert counted(PLAN, [launch(GRAPH, number=0)]) == []


def test_controls_count():
    control = launch(GRAPH, role=Role.CONTROL)
    assert counted(PLAN, [control, launch(EAGER)]) == [control, launch(EAGER)]


def test_launches_of_a_group_that_the_plan_lacks_do_not_count():
    assert counted(PLAN, [launch(GRAPH, group="another")]) == []


def test_of_a_round_begun_twice_the_latest_complete_attempt_counts():
    first = [launch(GRAPH), launch(EAGER)]
    second = [launch(GRAPH, 0.02, attempt=1), launch(EAGER, 0.02, attempt=1)]
    torn = [launch(GRAPH, 0.03, attempt=2)]
    assert counted(PLAN, [*first, *second, *torn]) == second


def test_where_no_attempt_is_complete_the_latest_counts():
    assert counted(PLAN, [launch(GRAPH), launch(EAGER, attempt=1)]) == [launch(EAGER, attempt=1)]


def test_an_attempt_is_complete_without_the_cells_that_the_pilot_broke():
    torn = launch(GRAPH, 0.02, attempt=1)
    assert counted(PLAN, [broken(EAGER, Status.OOM), launch(GRAPH), torn]) == [torn]


def test_an_attempt_is_not_complete_without_a_cell_whose_pilot_went_well():
    whole, torn = [launch(GRAPH), launch(EAGER)], [launch(GRAPH, attempt=1)]
    assert counted(PLAN, [launch(GRAPH, number=0), launch(EAGER, number=0), *whole, *torn]) == whole


def test_a_broken_entry_makes_an_attempt_complete_too():
    attempt = [launch(GRAPH, attempt=1), broken(EAGER, Status.TIMEOUT, 1, attempt=1)]
    assert counted(PLAN, [launch(GRAPH), launch(EAGER), *attempt]) == attempt


def test_an_attempt_without_the_controls_second_launch_is_not_complete():
    whole = [launch(GRAPH), launch(GRAPH, role=Role.CONTROL), launch(EAGER)]
    torn = [launch(GRAPH, attempt=1), launch(EAGER, attempt=1)]
    assert counted(CONTROLLED, [*whole, *torn]) == whole
    finished = [*torn, launch(GRAPH, attempt=1, role=Role.CONTROL)]
    assert counted(CONTROLLED, [*whole, *finished]) == finished


def test_a_control_that_broke_makes_an_attempt_complete_too():
    attempt = [launch(GRAPH, attempt=1), broken(GRAPH, Status.OOM, 1, attempt=1, role=Role.CONTROL)]
    attempt.append(launch(EAGER, attempt=1))
    assert counted(CONTROLLED, [launch(GRAPH), launch(EAGER), *attempt]) == attempt


def test_a_control_does_not_stand_for_its_cells_own_launch():
    whole = [launch(GRAPH), launch(GRAPH, role=Role.CONTROL), launch(EAGER)]
    torn = [launch(GRAPH, attempt=1, role=Role.CONTROL), launch(EAGER, attempt=1)]
    assert counted(CONTROLLED, [*whole, *torn]) == whole


def test_a_control_that_its_pilot_broke_is_not_waited_for():
    alone = launch(EAGER, attempt=1)
    assert counted(CONTROLLED, [broken(GRAPH, Status.OOM), launch(EAGER), alone]) == [alone]


def test_the_latest_pilot_is_a_cells_pilot():
    early, late = broken(GRAPH, Status.INTERRUPTED), launch(GRAPH, number=0, attempt=1)
    assert pilots([late, early, launch(GRAPH)]) == {GRAPH: late}


def test_a_series_has_the_centres_by_round_and_leaves_out_what_gave_none():
    launches = [launch(GRAPH, 0.01, 1), broken(GRAPH, Status.FAILED, 2), launch(GRAPH, (), 3), launch(GRAPH, 0.02, 4)]
    assert {number: round(centre, 9) for number, centre in series(launches)[GRAPH].items()} == {1: 0.01, 4: 0.02}


def test_of_two_pilots_in_one_attempt_the_last_is_the_cells():
    first, second = launch(GRAPH, number=0), launch(GRAPH, 0.02, number=0)
    assert pilots([first, second]) == {GRAPH: second}


def test_a_single_step_is_a_number():
    assert series([launch(GRAPH, samples=[Sample(7.0, 1)])]) == {GRAPH: {1: pytest.approx(7.0)}}


def test_two_launches_in_a_round_are_joined_by_the_mean_of_their_logs():
    joined = series([launch(GRAPH, 0.01), launch(GRAPH, 0.04, role=Role.CONTROL)])
    assert round(joined[GRAPH][1], 9) == 0.02


def taking(seconds, number=1, **changes):
    return replace(launch(cell(), number=number), seconds=seconds, **changes)


def test_a_round_costs_what_its_launches_took_the_controls_too():
    control = taking(2.0, role=Role.CONTROL)
    assert seconds_per_round([taking(3.0), taking(4.0, cell=cell(mode="eager")), control]) == {control.group: 9.0}


def test_it_is_the_mean_over_rounds_by_group():
    launches = [taking(3.0), taking(5.0, number=2), taking(7.0, group="another")]
    assert seconds_per_round(launches) == {launches[0].group: pytest.approx(4.0), "another": 7.0}


def test_a_round_done_again_is_two_rounds():
    assert seconds_per_round([taking(3.0), taking(5.0, attempt=1)]) == {taking(0.0).group: pytest.approx(4.0)}


def test_nothing_costs_nothing_and_what_was_not_recorded_is_0():
    assert seconds_per_round([]) == {}
    assert seconds_per_round([launch(cell())]) == {launch(cell()).group: 0.0}
