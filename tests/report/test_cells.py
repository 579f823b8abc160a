"""One line a cell."""

from dataclasses import replace

import pytest

from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.report.cells import cells as told
from tests.factories import PHASES, RESOURCES, cell, cells, launch, rounds, run

GRAPH = dict(zip(cells(modes=["graph"]), [0.010, 0.011], strict=True))


def made(launches, asked=None):
    asked = asked or run(GRAPH)
    found = lookup(asked, launches)
    return told(tables(asked, found)[0], found)


def test_phases_stand_in_the_order_in_which_launches_go_through_them_each_in_its_unit():
    phases = made(rounds(GRAPH, phases={"pre": 0.2, **PHASES})).phases
    assert [*phases.labels, *phases.headings] == [
        "cell",
        "container start, s",
        "interpreter start, ms",
        "import, s",
        "device, ms",
        "build, s",
        "first call, s",
        "pre, s",
        "to the first step, s",
        "steady state a step, ms",
    ]
    assert [labels for labels, _ in phases.rows] == [["tf1.14 graph"], ["tf2.0 graph"]]


def test_a_phase_is_its_median_with_p10_and_p90_over_launches():
    launches = [launch(cell(), 0.01, number, phases={"import": 0.8 + 0.02 * number}) for number in range(1, 6)]
    ((_, values),) = made(launches).phases.rows
    assert values == ["0.860 (0.828 to 0.892)", "0.860 (0.828 to 0.892)", "10.0 (10.0 to 10.0)"]


def test_one_launch_has_no_spread():
    ((_, values),) = made([launch(cell(), 0.01, phases={"import": 0.8})]).phases.rows
    assert values == ["0.800", "0.800", "10.0"]


def test_a_cell_without_a_phase_has_an_empty_place():
    launches = [
        launch(cell(), 0.01, phases={"import": 0.8, "build": 0.2}),
        launch(cell("tf2.0"), phases={"import": 1.0}),
    ]
    phases = made(launches).phases
    assert [values[1] for _, values in phases.rows] == ["0.200", ""]


def test_launches_of_old_runs_have_neither_phases_nor_resources():
    view = made(rounds(GRAPH))
    assert view.phases is None
    assert view.resources is None


def test_a_shape_is_in_the_tables_unit():
    shape = made([launch(cell(), [0.008, 0.010, 0.012], number) for number in range(1, 4)]).shape
    assert list(shape.headings)[:4] == ["mean, ms", "median, ms", "p10, ms", "p90, ms"]
    ((_, values),) = shape.rows
    assert values == ["10.0", "10.0", "8.00", "12.0", "20.0", "0.00", "3"]


@pytest.mark.parametrize(("number", "between"), [(1, ""), (2, "0.00")])
def test_one_launch_has_nothing_between(number, between):
    ((_, values),) = made([launch(cell(), 0.01, each) for each in range(1, number + 1)]).shape.rows
    assert values[5] == between


def test_resources_have_a_unit_in_the_heading():
    resources = made(rounds(GRAPH, count=1, resources=RESOURCES)).resources
    assert list(resources.headings) == ["cores in the steady state", "CPU of the launch, s", "peak memory, MiB"]
    assert resources.rows[0][1] == ["0.990", "3.40", "412"]


def test_much_memory_is_in_gibibytes():
    large = {"max_rss_bytes": 3 * 1024.0**3}
    resources = made(rounds(GRAPH, count=1, resources=large)).resources
    assert list(resources.headings) == ["peak memory, GiB"]
    assert resources.rows[0][1] == ["3.00"]


def test_a_cell_without_a_number_has_no_line():
    view = made([replace(each, samples=()) if each.cell == cell() else each for each in rounds(GRAPH)])
    assert [labels for labels, _ in view.shape.rows] == [["tf2.0 graph"]]
