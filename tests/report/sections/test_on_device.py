"""What is said of time on the device, and beside verdicts of launch-bound cells."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import ON_DEVICE
from harness.report.blocks import Where
from harness.report.formats import json_
from harness.report.sections import how_to_read, scenarios, summary, untimed
from tests.factories import RESOURCES, cell, rounds, run
from tests.report.sections import reading
from tests.report.sections.reading import column, make, render, tables, texts

OLD, NEW = (cell(environment, device=Device.GPU) for environment in ("tf1.14", "tf2.0"))
TIMES = {OLD: 0.01, NEW: 0.03}
RUN = run([OLD, NEW])


def seen(kernels, **changes):
    """A second under the profiler, as long as without it, in which kernels ran for so long."""
    return {
        **RESOURCES,
        "profiled_steps": 10.0,
        "profiled_seconds": 1.0,
        "profiled_plain_seconds": 1.0,
        "profiled_kernel_seconds": kernels,
        "profiled_copy_seconds": 0.02,
        "profiled_kernels": 4120.0,
        "profiled_copies": 20.0,
        **changes,
    }


def launches(resources, observations=None):
    return [
        replace(one, resources=resources[one.cell], observations=(observations or {}).get(one.cell, {}))
        if one.round == 0
        else one
        for one in rounds(TIMES, resources=RESOURCES)
    ]


BOUND = launches({OLD: seen(0.071), NEW: seen(0.9, profiled_launch_seconds=0.31)})


def test_a_table_has_shares_and_counts_of_each_cell_that_was_profiled(snapshot):
    why = {ON_DEVICE: "TensorFlow's profiler saw no kernel on a GPU. Only administrators may profile with this driver."}
    runs = {
        "both": BOUND,
        "no release tells of launching": launches({OLD: seen(0.5), NEW: seen(0.5)}),
        "nothing was seen": launches({OLD: RESOURCES, NEW: RESOURCES}, {OLD: why, NEW: why}),
        "nothing was seen of one": launches({OLD: RESOURCES, NEW: seen(0.9)}, {OLD: why}),
    }
    assert {name: render(make(untimed.make_sections, RUN, profiled)) for name, profiled in runs.items()} == snapshot
    # a run that never looked has no such section
    assert list(untimed.make_sections(Results(RUN, rounds(TIMES)))) == []


def test_a_comparison_of_launch_bound_cells_says_so_beside_its_verdict(snapshot):
    remarks = {}
    for old, new in ((0.071, 0.9), (0.9, 0.071), (0.071, 0.12), (0.6, 0.9), (0.5, 0.499)):
        results = Results(RUN, launches({OLD: seen(old), NEW: seen(new)}))
        (section,) = scenarios.make_sections(results)
        table = tables(section)[0]
        assert column(table, "verdict") == ["slower"]
        _, legends = how_to_read.make_sections(results)
        assert (untimed.LEGEND in texts(legends, Where.DETAILS)) is (min(old, new) < 0.5)
        document = json_.build(results)
        (compared,) = document.comparisons
        assert [result.on_device.kernels for result in document.cells] == [old, new]
        remarks[f"{old} and {new}"] = compared.remarks
        assert compared.remarks in [*column(table, "remarks")]
    assert remarks == snapshot


def test_the_answer_warns_of_launch_bound_cells(snapshot):
    several = [cell(name, device=Device.GPU, mode=mode) for mode in ("graph", "eager") for name in ("tf1.14", "tf2.0")]
    shares = dict(zip(several, [0.03, 0.41, 0.2, 0.8], strict=True))
    of_many = [replace(one, resources=seen(shares[one.cell])) for one in rounds(dict.fromkeys(several, 0.01), count=1)]
    runs = {
        "one cell": Results(RUN, BOUND),
        "two cells": Results(RUN, launches({OLD: seen(0.071), NEW: seen(0.12)})),
        "many cells": Results(run(several), of_many),
        "no cell": Results(RUN, launches({OLD: seen(0.6), NEW: seen(0.9)})),
    }
    warnings = {name: list(untimed.list_warnings(results)) for name, results in runs.items()}
    assert warnings == snapshot
    texts = reading.texts(next(summary.make_sections(runs["one cell"])), Where.PASTE)
    assert warnings["one cell"][0] in texts
