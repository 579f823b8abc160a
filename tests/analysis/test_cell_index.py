"""What is known of a cell, and of its group."""

import math
from dataclasses import replace

import pytest

from harness.analysis.cell_index import lookup
from harness.analysis.moderation import residual
from harness.model.launch import Role, Status
from harness.model.run import Unavailable
from tests.factories import broken, cell, cells, groups, in_blocks, launch, rounds, run


def test_why_a_cell_has_no_number_and_one_that_only_observes_is_ok():
    pilot = launch(cell(), number=0)
    failed = broken(cell(), Status.FAILED, 1), broken(cell(), Status.TIMEOUT, 2)
    for case, launches, status in (
        ("its pilot broke", [broken(cell(), Status.OOM)], Status.OOM),
        ("the last counted launch tells before the pilot", [pilot, *failed], Status.TIMEOUT),
        ("nothing but a pilot", [pilot], Status.INTERRUPTED),
        ("ok without a step", [launch(cell(), ())], Status.FAILED),
    ):
        assert lookup(run([cell()]), launches).status(cell()) is status, case
    # what is known to be unavailable, and what the run does not name
    absent = [Unavailable(cell("tf2.1"), "why")]
    assert lookup(run([cell()], unavailable=absent), []).status(cell("tf2.1")) is Status.NOT_AVAILABLE
    assert lookup(run([cell()]), []).status(cell("tf2.1")) is None
    launches = [launch(cell(), (), number, observations={"traces": number}) for number in (0, 1, 2)]
    index = lookup(run([cell()]), launches[:1])
    assert (index.status(cell()), len(index.observed[cell()])) == (Status.OK, 1)
    # its later launches tell before the pilot, and lack nothing
    index = lookup(run([cell()]), launches)
    assert [entry.round for entry in index.observed[cell()]] == [1, 2]
    assert not index.lost


def test_a_cell_launched_twice_a_round_has_half_the_variance_there():
    one, other, third = cells(["tf1.14"], modes=["graph", "eager", "both"])
    launches = rounds(dict.fromkeys((one, other, third), 0.01), count=4, controls={one: 0.01})
    index = lookup(run([one, other, third], controlled=True), launches)
    assert (index.weight(one, other), index.weight(other, one), index.weight(third, other)) == (1.5, 1.5, 2.0)
    # ... and in two of three rounds
    lost = [x for x in launches if x.round < 4 and (x.role is not Role.CONTROL or x.round > 1)]
    index = lookup(run([one, other, third], controlled=True), lost)
    assert index.weight(one, other) == pytest.approx((2.0 + 1.5 + 1.5) / 3.0)


def test_cells_of_two_blocks_are_compared_through_the_reference_and_a_residual_is_free_of_what_blocks_met():
    members = cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph", "eager"])
    one, near, *_, far, beside = members
    index = lookup(run(members, controlled=True), in_blocks(dict.fromkeys(members, 0.01), 4, spread=0.02))
    assert (index.weight(near, one), index.weight(far, one)) == (1.5, 2.0)
    assert (index.weight(far, beside), index.weight(near, far)) == (2.0, 2.0 + 0.5 + 1.0)
    members = cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph", "eager"])
    met, none = (
        lookup(run(members, controlled=True), in_blocks(dict.fromkeys(members, 0.01), met=value)).residual(*members[:2])
        for value in (0.5, 0.0)
    )
    assert met.variance == pytest.approx(none.variance)


def test_a_cell_that_did_other_work_than_the_first_is_not_in_what_its_group_scatters_by():
    members = cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph", "eager"])
    launches = rounds(dict.fromkeys(members, 0.01), 4)

    def scatter(*odd):
        measured = [replace(x, fingerprint={"parameters": 2.0 if x.cell in odd else 1.0}) for x in launches]
        return lookup(run(members), measured).residual(*members[:2])

    every_cell = scatter()
    assert scatter(members[2]).freedom == every_cell.freedom - 3.0
    assert scatter(*members[1:4]) == scatter(*members[1:]) == every_cell


def test_a_group_scatters_by_its_own_launches_that_count_and_only_where_they_tell():
    members = cells(calls=("fit", "train_on_batch"))
    loud, _ = (group.name for group in groups(members))
    launches = [entry for entry in rounds(dict.fromkeys(members, 0.01), 4) if entry.group == loud or entry.round < 2]
    index = lookup(run(members), launches)
    measured = [
        item for member in members for item in launches if item.cell == member and item.group == loud and item.round
    ]
    logs = [math.log(entry.mean) for entry in measured]
    every_cell = residual([entry.cell for entry in measured], [entry.round for entry in measured], logs)
    for group in groups(members):
        assert index.residual(*group.cells[:2]) == (every_cell if group.name == loud else None)
