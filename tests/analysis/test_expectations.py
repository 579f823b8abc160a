"""Statements of a source against what was observed."""

import pytest

from harness.analysis.lookup import lookup
from harness.analysis.observations import Standing, statements
from harness.model.launch import Status
from harness.model.scenario import Expectation
from tests.factories import broken, cell, cells, launch, run, scenario


def checked(expectation, launches, planned=None):
    stated = scenario(expect=[expectation])
    known = run(planned or [each.cell for each in launches], scenarios=[stated])
    return [check for statement in statements(known, lookup(known, launches)) for check in statement.checks]


def expectation(value, **changes):
    return Expectation("traces", value, **{"when": {}, "requires": (), **changes})


@pytest.mark.parametrize(
    ("values", "standing"),
    [
        ([[1, 2]], Standing.AS_STATED),
        ([[1, 2], [1, 2]], Standing.AS_STATED),
        ([[1, 3]], Standing.DIFFERS),
        ([[1, 2], [1, 3]], Standing.VARIES),
    ],
)
def test_how_a_statement_stands(values, standing):
    launches = [launch(cell(), number=n, observations={"traces": value}) for n, value in enumerate(values, 1)]
    (check,) = checked(expectation([1, 2]), launches)
    assert check.standing is standing


def test_a_cell_that_ran_and_did_not_observe_it_is_told():
    (check,) = checked(expectation(1), [launch(cell(), observations={"else": 1})])
    assert check.standing is Standing.NOT_OBSERVED
    assert check.observed is None


def test_cells_that_gave_nothing_are_not_checked():
    assert checked(expectation(1), [broken(cell(), Status.FAILED)]) == []


def test_a_statement_is_about_the_cells_with_its_axis_values():
    launches = [launch(each, observations={"traces": 1}) for each in cells(["tf1.14"])]
    found = checked(expectation(1, when={"mode": "eager"}), launches)
    assert [check.cell.axes["mode"] for check in found] == ["eager"]


def test_a_statement_is_about_environments_that_satisfy_it():
    launches = [launch(each, observations={"traces": 1}) for each in cells(modes=["graph"])]
    found = checked(expectation(1, requires=["tensorflow>=2"]), launches)
    assert [check.cell.environment for check in found] == ["tf2.0"]
