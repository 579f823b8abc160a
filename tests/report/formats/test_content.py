"""Cells and comparisons as all formats have them."""

import pytest

from harness.analysis.verdicts import Verdict
from harness.model.errors import NothingSelectedError
from harness.model.launch import Role, Status
from harness.report.formats.content import gather, with_numbers
from harness.report.names import full_name
from tests.factories import cell
from tests.report.formats.examples import example, nothing


def test_a_name_is_all_that_identifies_a_cell() -> None:
    assert full_name(cell("tf2.0", mode="eager")) == "step tf2.0 cpu call=fit dtype=float32 mode=eager"


def test_every_cell_of_the_run_is_there_once() -> None:
    run, launches = example()
    content = gather(run, launches)
    assert [result.cell for result in content.cells] == list(content.found.cells)
    assert len({result.name for result in content.cells}) == len(content.cells) == 10


def test_a_cell_has_a_number_or_a_cause() -> None:
    content = gather(*example())
    assert [(bool(each.estimate), bool(each.cause)) for each in content.cells].count((True, False)) == 7
    assert {each.status for each in content.cells if each.cause} == {Status.OOM, Status.NOT_AVAILABLE}
    assert all((each.status is Status.OK) == bool(each.estimate) for each in content.cells)


def test_launches_are_those_that_count() -> None:
    first = gather(*example()).cells[0]
    assert [(each.round, each.attempt) for each in first.launches if each.role is Role.MEASURE] == [
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 0),
        (5, 0),
    ]
    assert sum(each.role is Role.CONTROL for each in first.launches) == 5


def test_a_comparison_is_named_by_its_row_and_sides() -> None:
    named = {each.name: each.compared.verdict for each in gather(*example()).comparisons}
    assert named["fit: tf2.0 against tf1.14, eager"] is Verdict.SLOWER
    assert named["train_on_batch: tf2.0 against tf1.14, eager"] is Verdict.SAME
    assert "train_on_batch: tf2.0 against tf1.14, graph" not in named


def test_the_entrys_name_stands_once_in_a_comparisons_full_name() -> None:
    names = {each.full_name for each in gather(*example()).comparisons}
    assert "TF 2 against TF 1: fit: tf2.0 against tf1.14, eager" in names
    assert "fit: each release's default mode: tf2.0 against tf1.14" in names


def test_only_cells_with_numbers() -> None:
    assert len(with_numbers(gather(*example()), "x")) == 7
    with pytest.raises(NothingSelectedError, match="a file of x holds nothing else"):
        with_numbers(gather(*nothing()), "x")
