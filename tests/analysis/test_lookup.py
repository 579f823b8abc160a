"""What is known of a cell."""

from harness.analysis.lookup import lookup
from harness.model.launch import Status
from harness.model.run import Unavailable
from tests.factories import broken, cell, launch, run


def test_a_cell_that_its_pilot_broke_has_the_pilots_status():
    assert lookup(run([cell()]), [broken(cell(), Status.OOM)]).status(cell()) is Status.OOM


def test_the_last_counted_launch_tells_before_the_pilot():
    launches = [launch(cell(), number=0), broken(cell(), Status.FAILED, 1), broken(cell(), Status.TIMEOUT, 2)]
    assert lookup(run([cell()]), launches).status(cell()) is Status.TIMEOUT


def test_a_cell_of_which_there_is_nothing_was_interrupted():
    assert lookup(run([cell()]), [launch(cell(), number=0)]).status(cell()) is Status.INTERRUPTED


def test_an_ok_without_a_step_is_a_failure():
    assert lookup(run([cell()]), [launch(cell(), ())]).status(cell()) is Status.FAILED


def test_a_cell_known_to_be_unavailable_is_so_whatever_was_launched():
    entry = Unavailable(cell("tf2.1"), "why")
    assert lookup(run([cell()], unavailable=[entry]), []).status(cell("tf2.1")) is Status.NOT_AVAILABLE


def test_a_cell_that_the_run_does_not_name_has_no_status():
    assert lookup(run([cell()]), []).status(cell("tf2.1")) is None


def test_a_cell_that_only_observes_is_ok_by_its_pilot_alone():
    found = lookup(run([cell()]), [launch(cell(), (), 0, observations={"traces": 3})])
    assert found.status(cell()) is Status.OK
    assert len(found.observed[cell()]) == 1


def test_its_later_launches_tell_before_the_pilot_and_lack_nothing():
    launches = [launch(cell(), (), number, observations={"traces": number}) for number in (0, 1, 2)]
    found = lookup(run([cell()]), launches)
    assert [each.round for each in found.observed[cell()]] == [1, 2]
    assert not found.lost
