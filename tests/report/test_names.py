"""What rows, columns and cells are called."""

from harness.analysis.cell_index import lookup
from harness.analysis.tables import tables
from harness.model.environment import Device
from harness.report.names import find_varying_axes, label, name_cell
from tests.factories import cell, cells, rounds, run, scenario


def make_table(members=None):
    members = members or cells()
    variants = run(members)
    return tables(variants, lookup(variants, rounds(dict.fromkeys(members, 0.01))))[0]


def name_at(table, row, column):
    return name_cell(table, table.rows[row], table.columns[column].side, find_varying_axes(table))


def test_a_value_that_says_nothing_alone_or_that_two_axes_have_is_named_by_its_axis():
    sizes = scenario(axes={"model": ["small", "large"], "data": ["small"]})
    labels = [
        label(scenario(), *pair)
        for pair in (("mode", "graph"), ("threads", "4"), ("xla", "on"), ("environment", "2024"))
    ]
    assert labels == ["graph", "threads=4", "xla=on", "2024"]
    assert [label(sizes, "model", value) for value in ("small", "large")] == ["model=small", "large"]


def test_a_cell_is_named_by_what_tells_it_from_the_others():
    assert name_at(make_table(), 0, 0) == "tf1.14 graph"
    assert name_at(make_table(cells(calls=("fit", "train_on_batch"))), 1, 1) == "train_on_batch, tf1.14 eager"
    # by its device where there are several
    assert name_at(make_table([cell(), cell(device=Device.GPU)]), 1, 0) == "gpu, tf1.14 graph"
