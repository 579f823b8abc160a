"""What is known of a cell."""

import pytest

from harness.analysis.lookup import lookup
from harness.model.launch import Status
from harness.model.run import Unavailable
from tests.factories import broken, cell, launch, run


@pytest.mark.parametrize(
    ("launches", "status"),
    [
        pytest.param([broken(cell(), Status.OOM)], Status.OOM, id="its pilot broke"),
        pytest.param(
            [launch(cell(), number=0), broken(cell(), Status.FAILED, 1), broken(cell(), Status.TIMEOUT, 2)],
            Status.TIMEOUT,
            id="the last counted launch tells before the pilot",
        ),
        pytest.param([launch(cell(), number=0)], Status.INTERRUPTED, id="nothing but a pilot"),
        pytest.param([launch(cell(), ())], Status.FAILED, id="ok without a step"),
    ],
)
def test_why_a_cell_has_no_number(launches, status):
    assert lookup(run([cell()]), launches).status(cell()) is status


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
