"""What is said of time on the device, and beside verdicts of launch-bound cells."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import ON_DEVICE
from harness.report.blocks import Callout, Where
from harness.report.formats import json_
from harness.report.sections import on_device, scenarios, summary
from tests.factories import RESOURCES, cell, rounds, run
from tests.report.sections.reading import all_tables, column, heads, made, rows, told

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
    """Five rounds of both cells; their pilots have seen this of the GPU, and observed that."""
    return [
        replace(entry, resources=resources[entry.cell], observations=(observations or {}).get(entry.cell, {}))
        if entry.round == 0
        else entry
        for entry in rounds(TIMES, resources=RESOURCES)
    ]


BOUND = launches({OLD: seen(0.071), NEW: seen(0.9, profiled_launch_seconds=0.31)})


def test_a_table_has_shares_and_counts_of_each_cell_that_was_profiled():
    section = made(on_device.make_sections, RUN, BOUND)
    (table,) = all_tables(section)
    assert heads(table) == [
        "cell",
        "kernels, %",
        "copies alone, %",
        "nothing, %",
        "launching, %",
        "kernels per step",
        "copies per step",
        "under the profiler, ×",
    ]
    assert rows(table) == [
        ["tf1.14 graph", "7.10", "2.00", "90.9", "", "412", "2.00", "1.00"],
        ["tf2.0 graph", "90.0", "2.00", "8.00", "31.0", "412", "2.00", "1.00"],
    ]


@pytest.mark.parametrize("where", [Where.PASTE, Where.PAGE])
def test_a_reader_has_the_table_and_what_it_means(where):
    section = made(on_device.make_sections, RUN, BOUND)
    assert all_tables(section, where)
    (legend,) = told(section, where, notes=True)
    assert legend.startswith("The numbers come from untimed calls under TensorFlow's profiler")
    assert "Kernels: the share of a step in which at least one kernel ran." in legend


def test_a_column_that_no_release_of_the_run_tells_is_not_there():
    (table,) = all_tables(made(on_device.make_sections, RUN, launches({OLD: seen(0.5), NEW: seen(0.5)})))
    assert "launching, %" not in heads(table)


def test_a_run_that_never_looked_has_no_such_section():
    assert list(on_device.make_sections(Results(RUN, rounds(TIMES)))) == []


def test_why_nothing_was_seen_is_said_once_of_all_its_cells():
    why = {ON_DEVICE: "TensorFlow's profiler saw no kernel on a GPU. Only administrators may profile with this driver."}
    section = made(on_device.make_sections, RUN, launches({OLD: RESOURCES, NEW: RESOURCES}, {OLD: why, NEW: why}))
    assert told(section, Where.PASTE) == [f"Unknown for tf1.14 graph; tf2.0 graph: {why[ON_DEVICE]}"]
    one = made(on_device.make_sections, RUN, launches({OLD: RESOURCES, NEW: seen(0.9)}, {OLD: why}))
    assert column(all_tables(one)[0], "cell") == ["tf2.0 graph"]
    assert told(one, Where.PASTE) == [f"Unknown for tf1.14 graph: {why[ON_DEVICE]}"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (0.071, 0.9, "launch-bound: kernels ran in 7.1 % of a step of the second"),
        (0.9, 0.071, "launch-bound: kernels ran in 7.1 % of a step of the first"),
        (0.071, 0.12, "launch-bound: kernels ran in 12 % of a step of the first and 7.1 % of the second"),
        (0.6, 0.9, ""),
    ],
)
def test_a_comparison_of_launch_bound_cells_says_so_beside_its_verdict(old, new, said):
    results = Results(RUN, launches({OLD: seen(old), NEW: seen(new)}))
    (section,) = scenarios.make_sections(results)
    table = all_tables(section)[0]
    assert column(table, "verdict") == ["slower"]
    assert said in "".join(column(table, "remarks") if "remarks" in heads(table) else [""])
    assert (on_device.LEGEND in told(section, Where.PASTE, notes=True)) is bool(said)
    (compared,) = json_.build(results).comparisons
    assert said in compared.remarks


def test_two_cells_are_named_in_the_answer():
    (said,) = on_device.list_warnings(Results(RUN, launches({OLD: seen(0.071), NEW: seen(0.12)})))
    assert said.startswith("In tf2.0 graph, kernels ran in 12 % of a step, in tf1.14 graph in 7.1 %: the ratios of")


def test_the_answer_says_what_such_a_ratio_is_of():
    (alert,) = [
        block for block in next(summary.make_sections(Results(RUN, BOUND))).blocks if isinstance(block, Callout)
    ]
    notes = [block.words for block in alert.blocks]
    assert (
        "In tf1.14 graph, kernels ran in 7.1 % of a step: the ratios of such cells show how fast the CPU launches "
        "kernels, not how fast the GPU is."
    ) in notes
    assert list(on_device.list_warnings(Results(RUN, launches({OLD: seen(0.6), NEW: seen(0.9)})))) == []


def test_of_many_launch_bound_cells_the_answer_tells_how_many():
    several = [cell(name, device=Device.GPU, mode=mode) for mode in ("graph", "eager") for name in ("tf1.14", "tf2.0")]
    shares = dict(zip(several, [0.03, 0.41, 0.2, 0.8], strict=True))
    found = [
        replace(entry, resources=seen(shares[entry.cell])) for entry in rounds(dict.fromkeys(several, 0.01), count=1)
    ]
    (said,) = on_device.list_warnings(Results(run(several), found))
    assert said.startswith(
        "In 3 of 4 compared cells, kernels ran in less than 50 % of a step (3 % to 41 %): the ratios of"
    )


def test_the_report_as_data_has_the_shares():
    assert [entry.on_device.kernels for entry in json_.build(Results(RUN, BOUND)).cells] == [0.071, 0.9]
