"""Launches in order of time."""

from dataclasses import replace

from harness.analysis.course import timeline
from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.model.launch import Role, Status
from tests.factories import RESOURCES, broken, cell, launch, run


def moments(launches, asked=None):
    asked = asked or run([cell()])
    found = lookup(asked, launches)
    (table,) = tables(asked, found)
    return timeline(table, launches, found)


def at(minute, seconds=0.01, number=1, **changes):
    return launch(cell(), seconds, number, started=f"2026-11-21T04:{minute:02}:00Z", **changes)


def test_launches_come_in_the_order_in_which_they_began():
    made = moments([at(9, 0.02, 2), at(3, 0.01, 1)])
    assert [(each.place, each.launch.round) for each in made] == [(1, 1), (2, 2)]


def test_a_launch_is_set_against_the_mean_of_its_cell():
    first, second = moments([at(1, 0.01, 1), at(2, 0.04, 2)])
    assert (first.mean, second.mean) == (second.mean, first.mean)
    assert round(first.factor, 9) == 0.5
    assert round(second.factor, 9) == 2.0


def test_pilots_and_what_gave_no_number_are_left_out():
    made = moments([at(0, 0.01, 0), at(1), broken(cell(), Status.FAILED, 2)])
    assert [each.launch.round for each in made] == [1]


def test_what_disturbed_a_launch_and_whether_it_counts_are_told():
    noise = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    made = moments([at(1, resources=noise), at(2, attempt=1, resources=RESOURCES)])
    assert [(each.counts, each.disturbed) for each in made] == [(False, True), (True, False)]


def test_the_control_is_among_them():
    asked = run([cell()], controlled=True)
    made = moments([at(1), replace(at(2), role=Role.CONTROL)], asked)
    assert [each.launch.role for each in made] == [Role.MEASURE, Role.CONTROL]
