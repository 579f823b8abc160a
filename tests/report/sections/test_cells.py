"""One line a cell."""

from dataclasses import replace

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


def make_sections(launches, of=None):
    """Return the sections by title."""
    return {section.title: section for section in sections.make_sections(Results(of or run(GRAPH), launches))}


def find_table(title, launches):
    (table,) = all_tables(make_sections(launches)[title])
    return table


def find_phases(launches):
    return find_table("Phases", launches)


def find_distribution(launches):
    return find_table("Distribution", launches)


def find_resources(resources):
    """Return the headings without the cell, and the first line."""
    table = find_table("Resources", rounds(GRAPH, count=1, resources=resources))
    return heads(table)[1:], rows(table)[0][1:]


def test_phases_stand_in_the_order_in_which_launches_go_through_them_each_in_its_unit():
    phases = find_phases(rounds(GRAPH, phases={"pre": 0.2, **PHASES}))
    assert heads(phases) == [
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
    assert column(phases, "cell") == ["tf1.14 graph", "tf2.0 graph"]


def test_each_line_knows_its_cell_and_the_pasted_report_has_none_of_it():
    found = make_sections(rounds(GRAPH, phases=PHASES, resources=RESOURCES))
    assert list(found) == ["Phases", "Distribution", "Resources"]
    for section in found.values():
        (table,) = all_tables(section)
        assert [line.cell for line in table.lines] == list(GRAPH)
        assert section.shown(Where.PASTE | Where.TERMINAL) is None


def test_a_phase_is_its_median_with_p10_and_p90_over_launches():
    launches = [launch(cell(), 0.01, number, phases={"import": 0.8 + 0.02 * number}) for number in range(1, 6)]
    assert rows(find_phases(launches))[0][1:] == ["0.860 (0.828 to 0.892)"] * 2 + ["10.0 (10.0 to 10.0)"]
    # one launch has no spread
    assert rows(find_phases([launch(cell(), 0.01, phases={"import": 0.8})]))[0][1:] == ["0.800", "0.800", "10.0"]


def test_the_page_sorts_by_the_number_in_seconds():
    (line,) = find_phases([launch(cell(), 0.01, phases={"import": 0.08})]).lines
    assert [entry.order for entry in line.entries] == [None, 0.08, 0.08, 0.01]


def test_a_cell_without_a_phase_has_an_empty_place():
    phases = {cell(): {"import": 0.8, "build": 0.2}, cell("tf2.0"): {"import": 1.0}}
    table = find_phases([launch(of, phases=values) for of, values in phases.items()])
    assert column(table, "build, s") == ["0.200", ""]


def test_launches_of_old_runs_have_neither_phases_nor_resources():
    assert list(make_sections(rounds(GRAPH))) == ["Distribution"]
    assert make_sections([]) == {}


def test_phases_of_launches_that_started_beside_others_are_said_to_be_longer():
    for resources, is_said in ((RESOURCES, False), ({**RESOURCES, "beside_starts": 1.0}, True)):
        section = make_sections(rounds(GRAPH, phases=PHASES, resources=resources))["Phases"]
        assert any("not comparable" in text for text in texts(section)) is is_said


def test_a_distribution_is_in_the_tables_unit():
    table = find_distribution([launch(cell(), [0.010, 0.008, 0.012], number) for number in range(1, 4)])
    units = {Quantity.STEP: ", ms", Quantity.SHARE: ", %", Quantity.COUNT: ""}
    names = [f"{statistic.name}{units[statistic.quantity]}" for statistic in analysis.STATISTICS]
    assert heads(table) == ["cell", *names]
    values = dict(zip(heads(table), rows(table)[0], strict=True))
    assert [values[f"{name}, ms"] for name in ("mean", "median", "p10", "p90")] == ["10.0", "10.0", "8.00", "12.0"]
    assert (values["within launches, %"], values["launches"]) == ("20.0", "3")


def test_one_launch_has_nothing_between():
    for count in (1, 2):
        table = find_distribution([launch(cell(), [0.01, 0.02], number) for number in range(1, count + 1)])
        assert ("between launches, %" in heads(table)) is (count > 1)
        assert "within launches, %" in heads(table)


def test_one_more_statistic_is_one_line(monkeypatch):
    least = Statistic("minimum", Quantity.STEP, lambda times: times.samples[0], "The minimum is the least sample.")
    for module in (analysis, sections):
        monkeypatch.setattr(module, "STATISTICS", (*analysis.STATISTICS, least))
    launches = [launch(cell(), [0.008, 0.010, 0.012], number) for number in range(1, 4)]
    assert column(find_distribution(launches), "minimum, ms") == ["8.00"]
    (legend,) = texts(make_sections(launches)["Distribution"])
    assert legend.endswith(least.legend)


def test_remarks_on_uneven_samples_and_outliers_stand_in_the_line_of_their_cell():
    remarks = {
        (uneven, outliers): sections.make_remark(analysis.Shape({}, Share(uneven, 8), Share(outliers, 8)), Clock.WALL)
        for uneven, outliers in ((0, 0), (2, 0), (0, 1), (2, 2))
    }
    assert remarks == {
        (0, 0): "",
        (2, 0): "uneven samples in 2 of 8 launches",
        (0, 1): "1 of 8 launches is an outlier",
        (2, 2): "uneven samples in 2 of 8 launches; 2 of 8 launches are outliers",
    }
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    launches += [launch(cell("tf2.0"), [0.007] * 3 + [0.022] * 2)]
    assert column(find_distribution(launches), "remarks") == [
        "1 of 6 launches is an outlier",
        "uneven samples in 1 of 1 launches",
    ]
    assert "remarks" not in heads(find_distribution(rounds(GRAPH)))


def test_a_warm_ups_steps_stand_beside_the_measured_ones():
    phases = find_phases(growing(cell(), phases=PHASES))
    assert column(phases, "warm-up per step, ms") == ["10.0 (10.0 to 10.0)"]
    assert column(phases, "steady state per step, ms") == ["20.0 (20.0 to 20.0)"]


def test_resources_have_a_unit_in_the_heading():
    seen = {"gpu_energy_joules": 0.5, "gpu_steady": 1.0, "gpu_sm_clock_mhz": 1410.0, "gpu_throttled_share": 0.0}
    assert find_resources(seen) == (
        ["GPU energy per step, mJ", "GPU clock, MHz", "at the power limit, %"],
        ["50.0", "1,410", "0.00"],
    )
    assert find_resources(RESOURCES) == (
        ["cores in the steady state", "CPU time of the launch, s", "peak memory, MiB"],
        ["0.990", "3.40", "412"],
    )
    assert find_resources({"max_rss_bytes": 3 * 1024.0**3}) == (["peak memory, GiB"], ["3.00"])


def test_a_cell_without_a_number_has_no_line():
    launches = [replace(entry, samples=()) if entry.cell == cell() else entry for entry in rounds(GRAPH)]
    assert column(find_distribution(launches), "cell") == ["tf2.0 graph"]


def test_two_scenarios_have_one_section_of_each_and_a_legend_once():
    other = scenario("other", title="Another", axes={"size": ["1"]}, default={}, compare=[])
    times = {cell(): 0.01, Cell("other", "tf1.14", Device.CPU, {"size": "1"}): 0.02}
    launches = rounds(times, phases=PHASES, resources=RESOURCES)
    for section in make_sections(launches, run(times, scenarios=[scenario(), other])).values():
        titles = [block.title for block in section.blocks if isinstance(block, Heading)]
        assert titles == ["One training step", "Another"]
        assert len(all_tables(section)) == 2
        (legend,) = texts(section)
        sentences = [sentence for sentence in legend.split(". ") if sentence]
        assert len(sentences) == len(set(sentences)) > 1
