"""One line a cell."""

from dataclasses import replace

from harness.analysis import distribution as analysis
from harness.analysis.distribution import Share
from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Clock
from harness.model.scenario import Cell
from harness.report.sections import cells as sections
from tests.factories import PHASES, RESOURCES, cell, cells, growing, launch, rounds, run, scenario
from tests.report.sections.reading import render, tables

GRAPH = dict(zip(cells(modes=["graph"]), [0.010, 0.011], strict=True))


def make_sections(launches, planned=None):
    return {section.title: section for section in sections.make_sections(Results(planned or run(GRAPH), launches))}


def test_phases_distribution_and_resources(snapshot):
    one, newer = cell(), cell("tf2.0")
    gpu = {"gpu_energy_joules": 0.5, "gpu_steady": 1.0, "gpu_sm_clock_mhz": 1410.0, "gpu_throttled_share": 0.0}
    other = scenario("other", title="Another", axes={"size": ["1"]}, default={}, compare=[])
    both = {one: 0.01, Cell("other", "tf1.14", Device.CPU, {"size": "1"}): 0.02}
    outliers = [launch(one, seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    lacking = [replace(entry, samples=()) if entry.cell == one else entry for entry in rounds(GRAPH)]
    everything = {"phases": PHASES, "resources": RESOURCES}
    reports = {
        "all phases": make_sections(rounds(GRAPH, phases={"pre": 0.2, **PHASES})),
        # median, p10 and p90
        "launches that differ": make_sections(
            [launch(one, 0.01, number, phases={"import": 0.8 + 0.02 * number}) for number in range(1, 6)]
        ),
        "a cell without a phase": make_sections(
            [launch(one, phases={"import": 0.8, "build": 0.2}), launch(newer, phases={"import": 1.0})]
        ),
        "starts beside others": make_sections(
            rounds(GRAPH, phases=PHASES, resources={**RESOURCES, "beside_starts": 1.0})
        ),
        "samples that differ": make_sections([launch(one, [0.010, 0.008, 0.012], number) for number in range(1, 4)]),
        "one launch whose samples differ": make_sections([launch(one, [0.01, 0.02])]),
        "outliers and uneven samples": make_sections([*outliers, launch(newer, [0.007] * 3 + [0.022] * 2)]),
        "a step that changes": make_sections(growing(one, phases=PHASES)),
        "a GPU": make_sections(rounds(GRAPH, count=1, resources=gpu)),
        "a cell without a number": make_sections(lacking),
        # one section of each, and a legend once
        "two scenarios": make_sections(rounds(both, **everything), run(both, scenarios=[scenario(), other])),
    }
    assert {name: "\n\n".join(map(render, report.values())) for name, report in reports.items()} == snapshot
    assert make_sections([]) == {}


def test_lines_know_their_cells_and_remarks_count_uneven_samples_and_outliers():
    for section in make_sections(rounds(GRAPH, phases=PHASES, resources=RESOURCES)).values():
        (table,) = tables(section)
        assert [line.cell for line in table.lines] == list(GRAPH)
    (table,) = tables(make_sections([launch(cell(), 0.01, phases={"import": 0.08})])["Phases"])
    assert [entry.order for entry in table.lines[0].entries] == [None, 0.08, 0.08, 0.01]

    def make_remark(uneven, outliers):
        return sections.make_remark(analysis.Shape({}, Share(uneven, 8), Share(outliers, 8)), Clock.WALL)

    assert make_remark(0, 0) == ""
    assert make_remark(2, 0) == "uneven samples in 2 of 8 launches"
    assert make_remark(0, 1) == "1 of 8 launches is an outlier"
    assert make_remark(2, 2) == "uneven samples in 2 of 8 launches; 2 of 8 launches are outliers"
