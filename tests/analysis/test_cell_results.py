"""What a run says of each of its cells."""

from harness.analysis.cells import cell_name
from harness.analysis.results import Results
from harness.model.launch import Status
from tests.factories import cell
from tests.report.formats.examples import example


def test_a_name_is_all_that_identifies_a_cell() -> None:
    assert cell_name(cell("tf2.0", mode="eager")) == "step tf2.0 cpu call=fit dtype=float32 mode=eager"


def test_every_cell_of_the_run_is_there_once() -> None:
    results = Results(*example())
    assert [each.cell for each in results.cells] == list(results.found.cells)
    assert len({each.name for each in results.cells}) == len(results.cells) == 10


def test_a_cell_has_a_number_or_a_cause() -> None:
    results = Results(*example())
    causes = [results.causes.get(each.cell) for each in results.cells]
    assert [(bool(each.estimate), bool(cause)) for each, cause in zip(results.cells, causes, strict=True)].count(
        (True, False)
    ) == 7
    assert {cause.status for cause in causes if cause} == {Status.OOM, Status.NOT_AVAILABLE}
    assert all((each.status is Status.OK) == bool(each.estimate) for each in results.cells)


def test_launches_are_those_that_count() -> None:
    first = Results(*example()).cells[0]
    assert [(each.round, each.attempt) for each in first.launches if each.role == "measure"] == [
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 0),
        (5, 0),
    ]
    assert sum(each.role == "control" for each in first.launches) == 5
