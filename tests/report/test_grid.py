"""A table as text."""

from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.model.environment import Device
from harness.model.launch import Status
from harness.report.grid import build, label
from tests.factories import broken, cell, cells, launch, rounds, run, scenario

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def grid(run, launches):
    return build(tables(run, lookup(run, launches))[0])


def test_headings_name_environment_mode_unit_and_what_stands_against_what():
    made = grid(run(), rounds(TIMES))
    assert list(made.labels) == ["call"]
    assert list(made.headings) == [
        "tf1.14 graph, ms",
        "tf1.14 eager, ms",
        "tf2.0 graph, ms",
        "tf2.0 eager, ms",
        "tf2.0 against tf1.14, graph",
        "tf2.0 against tf1.14, eager",
        "graph against eager, tf1.14",
        "graph against eager, tf2.0",
        "each release's default mode: tf2.0 against tf1.14",
    ]
    assert made.times == 4


def test_a_number_tells_of_fewer_rounds_and_of_several_modes():
    launches = [launch(cell(), 0.01, number) for number in (1, 2, 3)]
    launches += [launch(cell(mode="eager"), [0.007] * 3 + [0.022] * 2, number) for number in (1, 2)]
    ((_, values),) = grid(run(cells(["tf1.14"])), launches).rows
    assert values[0] == "10.0 ± 0.1"
    assert values[1] == "13.0 ± 0.1 n=2 †"


def test_without_a_number_the_status_stands_and_where_there_is_no_cell_nothing():
    members = [cell(), cell(mode="eager"), cell(call="train_on_batch", mode="eager")]
    launches = [launch(cell()), broken(cell(mode="eager"), Status.OOM), launch(members[2])]
    rows = [list(values) for _, values in grid(run(members), launches).rows]
    assert rows == [["10.0", "oom"], ["", "10.0"]]


def test_rows_name_their_device_where_there_are_several():
    members = [cell(), cell(device=Device.GPU)]
    made = grid(run(members), [launch(member) for member in members])
    assert list(made.labels) == ["device", "call"]
    assert [list(labels) for labels, _ in made.rows] == [["cpu", "fit"], ["gpu", "fit"]]


def test_a_value_that_says_nothing_alone_is_named_by_its_axis():
    assert label(scenario(), "mode", "graph") == "graph"
    assert label(scenario(), "threads", "4") == "threads 4"
    assert label(scenario(), "xla", "on") == "xla on"
    assert label(scenario(), "environment", "2024") == "2024"


def test_a_value_that_two_axes_have_is_named_by_its_axis():
    sizes = scenario(axes={"model": ["small", "large"], "data": ["small"]})
    assert label(sizes, "model", "small") == "model small"
    assert label(sizes, "model", "large") == "large"
