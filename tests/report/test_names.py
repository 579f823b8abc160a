"""What rows, columns and cells are called."""

from harness.analysis.cell_index import lookup
from harness.analysis.tables import tables
from harness.model.environment import Device
from harness.report.names import find_varying_axes, label, name_cell, name_comparison
from tests.factories import cell, cells, launch, rounds, run, scenario


def table(run, launches):
    return tables(run, lookup(run, launches))[0]


def test_a_value_that_says_nothing_alone_is_named_by_its_axis():
    assert label(scenario(), "mode", "graph") == "graph"
    assert label(scenario(), "threads", "4") == "threads=4"
    assert label(scenario(), "xla", "on") == "xla=on"
    assert label(scenario(), "environment", "2024") == "2024"


def test_a_value_that_two_axes_have_is_named_by_its_axis():
    sizes = scenario(axes={"model": ["small", "large"], "data": ["small"]})
    assert label(sizes, "model", "small") == "model=small"
    assert label(sizes, "model", "large") == "large"


def test_a_cell_is_named_by_what_tells_it_from_the_others():
    one = table(run(), rounds(dict.fromkeys(cells(), 0.01)))
    assert name_cell(one, one.rows[0], one.columns[0].side, find_varying_axes(one)) == "tf1.14 graph"
    members = cells(calls=("fit", "train_on_batch"))
    two = table(run(members), rounds(dict.fromkeys(members, 0.01)))
    assert name_cell(two, two.rows[1], two.columns[1].side, find_varying_axes(two)) == "train_on_batch, tf1.14 eager"


def test_a_cell_has_its_device_in_its_name_where_there_are_several():
    members = [cell(), cell(device=Device.GPU)]
    found = table(run(members), [launch(member) for member in members])
    assert name_cell(found, found.rows[1], found.columns[0].side, find_varying_axes(found)) == "gpu, tf1.14 graph"


def test_a_comparison_says_what_is_compared():
    found = table(run(), rounds(dict.fromkeys(cells(), 0.01)))
    assert [name_comparison(found, head) for head in found.columns if head.other] == [
        "tf2.0 vs tf1.14, graph",
        "tf2.0 vs tf1.14, eager",
        "graph vs eager, tf1.14",
        "graph vs eager, tf2.0",
        "each release's default mode: tf2.0 vs tf1.14",
    ]
