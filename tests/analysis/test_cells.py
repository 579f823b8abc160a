"""What a run says of each of its cells, and what has no result."""

from dataclasses import replace

from harness.analysis.cells import CUT_OFF, STDERR_CHARACTERS, cell_name, get_tail
from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.run import Stop, StopReason
from tests.factories import cell, launch, run
from tests.report.formats.examples import example


def test_every_cell_of_the_run_is_there_once_and_has_a_number_or_a_cause():
    results = Results(*example())
    assert [entry.cell for entry in results.cells] == list(results.found.cells)
    assert len({item.name for item in results.cells}) == len(results.cells) == 10
    assert cell_name(cell("tf2.0", mode="eager")) == "step tf2.0 cpu call=fit dtype=float32 mode=eager"
    causes = {entry.cell: results.causes.get(entry.cell) for entry in results.cells}
    assert all((item.status is Status.OK) == bool(item.estimate) for item in results.cells)
    without = [value.cell for value in results.cells if not value.estimate]
    assert without == [planned for planned, cause in causes.items() if cause]
    # launches are those that count
    first = results.cells[0]
    measured = [(entry.round, entry.attempt) for entry in first.launches if entry.role == "measure"]
    assert measured == [(1, 0), (2, 0), (3, 1), (4, 0), (5, 0)]
    assert sum(item.role == "control" for item in first.launches) == 5


def find_missing(run, launches):
    return Results(run, launches).missing


def test_fewer_rounds_than_the_run_recorded_are_of_a_file_that_was_cut_off():
    for stop, reason in [
        (Stop(StopReason.BUDGET, 0), "the budget ended"),
        (Stop(StopReason.BUDGET, 1), "the budget ended"),  # as the budget leaves out a part of a group
        (Stop(StopReason.BUDGET, 2), CUT_OFF),
        (Stop(StopReason.ROUNDS, 1), CUT_OFF),
        (Stop(StopReason.PRECISION, 1), ""),
    ]:
        planned = run([cell(), cell(mode="eager")])
        stops = {group.name: stop for group in planned.plan.groups}
        (entry,) = find_missing(replace(planned, stops=stops), [launch(cell())])
        assert (entry.status, entry.reason, entry.cells) == (Status.INTERRUPTED, reason, [cell(mode="eager")]), stop


def test_the_end_of_standard_error_is_bounded():
    assert get_tail("a\n" * 100).count("a") == 20
    assert len(get_tail("x" * 10_000_000)) == STDERR_CHARACTERS
    assert get_tail("") == ""
