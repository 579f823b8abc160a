"""One line a cell."""

from dataclasses import replace

import pytest

from harness.analysis import distribution as analysis
from harness.analysis.distribution import Quantity, Share, Statistic
from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Clock
from harness.model.scenario import Cell
from harness.report.blocks import Heading, Where
from harness.report.sections import cells as sections
from tests.factories import PHASES, RESOURCES, cell, cells, growing, launch, rounds, run, scenario
from tests.report.sections.reading import all_tables, column, heads, rows, texts

GRAPH = dict(zip(cells(modes=["graph"]), [0.010, 0.011], strict=True))


def made(launches, asked=None):
    return list(sections.make_sections(Results(asked or run(GRAPH), launches)))


def _titled(sections_, title):
    (found,) = [section for section in sections_ if section.title == title]
    return found


def table(title, launches):
    (only,) = all_tables(_titled(made(launches), title))
    return only


def phases(launches):
    return table("Phases", launches)


def shape(launches):
    return table("Distribution", launches)


def resources(launches):
    return table("Resources", launches)


def test_phases_of_launches_that_started_beside_others_are_said_to_be_longer():
    beside = {**RESOURCES, "beside_starts": 1.0}
    for resources, said in ((RESOURCES, False), (beside, True)):
        told = _titled(made(rounds(GRAPH, phases=PHASES, resources=resources)), "Phases")
        assert any("not comparable" in text for text in texts(told)) is said


def test_phases_stand_in_the_order_in_which_launches_go_through_them_each_in_its_unit():
    told = phases(rounds(GRAPH, phases={"pre": 0.2, **PHASES}))
    assert heads(told) == [
        "cell",
        "container start, s",
        "interpreter start, ms",
        "import, s",
        "device, ms",
        "build, s",
        "first call, s",
        "pre, s",
        "to the first step, s",
        "steady state per step, ms",
    ]
    assert column(told, "cell") == ["tf1.14 graph", "tf2.0 graph"]


def test_each_line_knows_its_cell():
    for entry in made(rounds(GRAPH, phases=PHASES, resources=RESOURCES)):
        (told,) = all_tables(entry)
        assert [line.cell for line in told.lines] == list(GRAPH)


def test_a_phase_is_its_median_with_p10_and_p90_over_launches():
    launches = [launch(cell(), 0.01, number, phases={"import": 0.8 + 0.02 * number}) for number in range(1, 6)]
    ((_, *values),) = rows(phases(launches))
    assert values == ["0.860 (0.828 to 0.892)", "0.860 (0.828 to 0.892)", "10.0 (10.0 to 10.0)"]


def test_the_page_sorts_by_the_number_in_seconds():
    (line,) = phases([launch(cell(), 0.01, phases={"import": 0.08})]).lines
    assert [entry.order for entry in line.entries] == [None, 0.08, 0.08, 0.01]


def test_one_launch_has_no_spread():
    ((_, *values),) = rows(phases([launch(cell(), 0.01, phases={"import": 0.8})]))
    assert values == ["0.800", "0.800", "10.0"]


def test_a_cell_without_a_phase_has_an_empty_place():
    launches = [
        launch(cell(), 0.01, phases={"import": 0.8, "build": 0.2}),
        launch(cell("tf2.0"), phases={"import": 1.0}),
    ]
    assert column(phases(launches), "build, s") == ["0.200", ""]


def test_launches_of_old_runs_have_neither_phases_nor_resources():
    assert [entry.title for entry in made(rounds(GRAPH))] == ["Distribution"]


def test_a_run_without_a_number_has_none_of_it():
    assert made([]) == []


def test_a_shape_is_in_the_tables_unit():
    told = shape([launch(cell(), [0.010, 0.008, 0.012], number) for number in range(1, 4)])
    units = {Quantity.STEP: ", ms", Quantity.SHARE: ", %", Quantity.COUNT: ""}
    shown = [f"{statistic.name}{units[statistic.quantity]}" for statistic in analysis.STATISTICS]
    assert heads(told) == ["cell", *shown]
    ((_, *values),) = rows(told)
    found = dict(zip(heads(told)[1:], values, strict=True))
    assert [found[f"{name}, ms"] for name in ("mean", "median", "p10", "p90")] == ["10.0", "10.0", "8.00", "12.0"]
    assert (found["within launches, %"], found["launches"]) == ("20.0", "3")


@pytest.mark.parametrize(("number", "between"), [(1, False), (2, True)])
def test_one_launch_has_nothing_between(number, between):
    told = shape([launch(cell(), [0.01, 0.02], entry) for entry in range(1, number + 1)])
    assert ("between launches, %" in heads(told)) is between
    assert "within launches, %" in heads(told)


def test_one_more_statistic_is_one_line(monkeypatch):
    least = Statistic("minimum", Quantity.STEP, lambda times: times.samples[0], "The minimum is the least sample.")
    for module in (analysis, sections):
        monkeypatch.setattr(module, "STATISTICS", (*analysis.STATISTICS, least))
    launches = [launch(cell(), [0.008, 0.010, 0.012], number) for number in range(1, 4)]
    assert column(shape(launches), "minimum, ms") == ["8.00"]
    (legend,) = texts(_titled(made(launches), "Distribution"))
    assert legend.endswith("The minimum is the least sample.")


@pytest.mark.parametrize(
    ("uneven", "outliers", "remark"),
    [
        (0, 0, ""),
        (2, 0, "uneven samples in 2 of 8 launches"),
        (0, 1, "1 of 8 launches is an outlier"),
        (2, 2, "uneven samples in 2 of 8 launches; 2 of 8 launches are outliers"),
    ],
)
def test_a_shape_has_its_remarks(uneven, outliers, remark):
    assert sections.make_remark(analysis.Shape({}, Share(uneven, 8), Share(outliers, 8)), Clock.WALL) == remark


def test_a_step_that_changes_is_remarked_and_drawn():
    assert column(shape(growing(cell())), "remarks") == [
        "time per step depends on the number of earlier steps: 10.5 ms at the 61st step, 29.5 ms at the 241st"
    ]


def test_a_warm_ups_steps_stand_beside_the_measured_ones():
    warmed = growing(cell(), phases=PHASES)
    assert column(phases(warmed), "warm-up per step, ms") == ["10.0 (10.0 to 10.0)"]
    assert column(phases(warmed), "steady state per step, ms") == ["20.0 (20.0 to 20.0)"]


def test_remarks_stand_in_the_line_of_their_cell():
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    launches += [launch(cell("tf2.0"), [0.007] * 3 + [0.022] * 2)]
    assert column(shape(launches), "remarks") == [
        "1 of 6 launches is an outlier",
        "uneven samples in 1 of 1 launches",
    ]
    assert "remarks" not in heads(shape(rounds(GRAPH)))


def test_energies_and_clocks_of_a_gpu_have_theirs():
    seen = {"gpu_energy_joules": 0.5, "gpu_steady": 1.0, "gpu_sm_clock_mhz": 1410.0, "gpu_throttled_share": 0.0}
    told = resources(rounds(GRAPH, count=1, resources=seen))
    assert heads(told)[1:] == ["GPU energy per step, mJ", "GPU clock, MHz", "at the power limit, %"]
    assert rows(told)[0][1:] == ["50.0", "1,410", "0.00"]


def test_resources_have_a_unit_in_the_heading():
    told = resources(rounds(GRAPH, count=1, resources=RESOURCES))
    assert heads(told)[1:] == ["cores in the steady state", "CPU time of the launch, s", "peak memory, MiB"]
    assert rows(told)[0][1:] == ["0.990", "3.40", "412"]


def test_much_memory_is_in_gibibytes():
    told = resources(rounds(GRAPH, count=1, resources={"max_rss_bytes": 3 * 1024.0**3}))
    assert heads(told)[1:] == ["peak memory, GiB"]
    assert rows(told)[0][1:] == ["3.00"]


def test_a_cell_without_a_number_has_no_line():
    told = shape([replace(entry, samples=()) if entry.cell == cell() else entry for entry in rounds(GRAPH)])
    assert column(told, "cell") == ["tf2.0 graph"]


def test_two_scenarios_have_one_section_of_each_and_a_legend_once():
    other = scenario("other", title="Another", axes={"size": ["1"]}, default={}, compare=[])
    times = {cell(): 0.01, Cell("other", "tf1.14", Device.CPU, {"size": "1"}): 0.02}
    asked = run(times, scenarios=[scenario(), other])
    found = made(rounds(times, phases=PHASES, resources=RESOURCES), asked)
    assert [entry.title for entry in found] == ["Phases", "Distribution", "Resources"]
    for item in found:
        assert [block.title for block in item.blocks if isinstance(block, Heading)] == ["One training step", "Another"]
        assert len(all_tables(item)) == 2
        (legend,) = texts(item)
        sentences = [sentence for sentence in legend.split(". ") if sentence]
        assert len(sentences) == len(set(sentences)) > 1


def test_the_pasted_report_leaves_them_to_the_details():
    found = made(rounds(GRAPH, phases=PHASES, resources=RESOURCES))
    assert not any(entry.shown(Where.PASTE | Where.TERMINAL) for entry in found)
