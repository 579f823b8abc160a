"""A scenario's table."""

from dataclasses import replace

import pytest

from harness.analysis.cell_index import lookup
from harness.analysis.results import Results
from harness.analysis.tables import tables
from harness.analysis.verdicts import Verdict
from harness.model.launch import Status
from tests.factories import broken, cell, cells, launch, rounds, run
from tests.quantified import NEW, OLD, memory, quantified, quantified_run

TIMES = {
    cell("tf1.14", mode="graph"): 0.010,
    cell("tf1.14", mode="eager"): 0.020,
    cell("tf2.0", mode="graph"): 0.011,
    cell("tf2.0", mode="eager"): 0.027,
}


def table(run, launches):
    return tables(run, lookup(run, launches))[0]


def by_name(table, row=0):
    return {
        (c.comparison.name if c.comparison else "time", c.side.environment, c.side.axes["mode"]): value
        for c, value in zip(table.columns, table.rows[row].values, strict=True)
    }


def test_rows_cells_and_defaults_are_shown_only_where_they_tell_something():
    members = cells(calls=("fit", "train_on_batch"))
    shown_table = table(run(members), rounds(TIMES))
    assert [row.axes["call"] for row in shown_table.rows] == ["fit"]
    assert [shown_table.cell(shown_table.rows[0], head.side) for head in shown_table.columns[:4]] == cells()
    # without a number there is the status
    launches = [*rounds(TIMES), launch(cell(call="train_on_batch"))]
    launches += [broken(cell(call="train_on_batch", mode="eager"), Status.TIMEOUT, 1)]
    values = by_name(table(run(members), launches), row=1)
    assert values["time", "tf1.14", "eager"].status is Status.TIMEOUT
    assert values["time", "tf2.0", "graph"].status is Status.INTERRUPTED
    assert values["graph against eager", "tf1.14", "graph"].estimate is None
    assert (table(run(), []).rows, table(run(), []).rounds) == ([], 0)
    assert list(table(run(), rounds(TIMES)).row_axes) == ["call"]
    double = [cell(dtype="float64"), cell()]
    assert list(table(run(double), [launch(c) for c in double]).row_axes) == ["call", "dtype"]


def test_a_table_of_another_quantity_has_its_values_and_ratios():
    results = Results(quantified_run("first call", "peak memory", "traces", "memory growth"), quantified())
    rows = {table.quantity: row.values for table in results.all_tables[1:] for row in table.rows}
    for quantity, old, new, verdict in (("first call", 0.3, 1.2, Verdict.SLOWER), ("traces", 3, 300, Verdict.MORE)):
        one, two, ratio = rows[quantity]
        assert [one.estimate.value, two.estimate.value] == pytest.approx([old, new], rel=0.02)
        assert ratio.compared.ratio.value == pytest.approx(new / old, rel=0.02)
        assert (ratio.compared.verdict, one.shape) == (verdict, None), quantity
    # growth has bytes a call and differences
    one, two, difference = rows["memory growth"]
    assert [one.estimate.value, two.estimate.value] == pytest.approx([0.0, 1200.0], abs=30.0)
    assert 0.0 in one.estimate.interval
    assert (difference.compared.verdict, difference.estimate.value) == (Verdict.MORE, pytest.approx(1200.0, abs=40.0))
    # a column in which no cell tells the quantity is left out
    silent = [replace(entry, observations={}, memory=()) if entry.cell == NEW else entry for entry in quantified()]
    for quantity in ("traces", "memory growth"):
        table = Results(quantified_run(quantity), silent).all_tables[-1]
        assert [head.side.environment for head in table.columns] == ["tf1.14"]
    # a cell without a result has the status of its launches, in each table
    other = cell(call="train_on_batch")
    failed = broken(replace(other, environment="tf2.0"), Status.TIMEOUT, 1)
    third = cell(call="train_on_batch", dtype="float64")
    observed = replace(launch(replace(third, environment="tf2.0")), samples=(), observations={"loop": "fit"})
    planned = quantified_run("memory growth", planned=[OLD, NEW, other, failed.cell, third, observed.cell])
    launches = [*quantified(), *(launch(one, memory=memory(0.0)) for one in (other, third)), failed, observed]
    for table in Results(planned, launches).all_tables:
        assert table.cells()[failed.cell].status is Status.TIMEOUT, table.quantity
    assert table.cells()[observed.cell].status is Status.NOT_AVAILABLE
