"""What cells observed, as tables."""

from harness.analysis.results import Results
from harness.model.scenario import Cell
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.sections import observations
from harness.report.sections.observations import CHARACTERS, FULL, FULL_CHARACTERS, SAME
from tests.factories import cells, launch, run, scenario
from tests.observing import NAMES, OBSERVER, example, many, observer
from tests.report.sections import reading

EVERYWHERE = (Where.PASTE, Where.TERMINAL, Where.DETAILS, Where.PAGE)


def make_section(of, launches):
    return reading.made(observations.make_sections, of, launches)


def launch_twice(seen):
    return [launch(of, 0.01, number, observations=values) for number in (1, 2) for of, values in seen.items()]


LOOPS = {cell: {"loop": f"{cell.axes['mode']} loop", "parameters": 7} for cell in cells(calls=("fit", "predict"))}


def test_a_value_that_changes_stands_out_and_one_that_does_not_is_not_repeated():
    section = make_section(*example())
    assert reading.headings(section) == ["retracing", "assignment"]
    first, _ = reading.tables(section)
    assert reading.heads(first) == ["observation", *NAMES]
    assert reading.rows(first) == [["traces", "[1, 2]", SAME, "[1, 3]"], ["kind", "graph", SAME, SAME]]
    assert reading.bold(first) == [["[1, 3]"], []]
    # nothing is timed, so it is shown everywhere
    for where in EVERYWHERE:
        assert len(reading.tables(section, where)) == 2
        assert len(reading.told(section, where, notes=True)) == 1


def test_beside_a_scenario_that_is_timed_a_terminal_shows_it_and_what_is_pasted_does_not():
    of, launches = example()
    both = run([*of.plan.cells, *cells()], scenarios=[OBSERVER, scenario()])
    section = make_section(both, [*launches, *map(launch, cells())])
    assert [len(reading.tables(section, where)) for where in EVERYWHERE] == [0, 2, 2, 2]
    titles = [f"How functions behave: {experiment}" for experiment in ("retracing", "assignment")]
    assert reading.headings(section, Where.TERMINAL) == titles


def test_launches_that_disagree_stand_out():
    of, launches = example()
    for number, traces in enumerate(([1, 9], [1, 2]), 1):
        launches.append(launch(observer("tf1.14"), (), number, observations={"traces": traces, "kind": "graph"}))
    first, _ = reading.tables(make_section(of, launches))
    assert reading.rows(first)[0][1] == "varies: [1, 9]; [1, 2]"
    assert "varies: [1, 9]; [1, 2]" in reading.bold(first)[0]


def test_many_environments_are_lines_and_those_that_agree_share_one():
    section = make_section(*many(["a"] * 5 + ["b"] * 4))
    (table,) = reading.tables(section)
    assert reading.heads(table) == ["observation", "environment", "value"]
    assert reading.rows(table) == [["kind", "e0 to e4 (5)", "a"], ["", "e5 to e8 (4)", "b"]]
    assert reading.bold(table) == [[], ["b"]]
    (legend,) = reading.told(section, Where.DETAILS, notes=True)
    assert "share a line" in legend


def test_a_long_value_is_cut_in_its_table_and_whole_below():
    code = "def tf__f(x):\n" + "    return x\n" * 40
    section = make_section(*example((code, code, "short")))
    assert len(reading.rows(reading.tables(section)[0])[0][1]) == CHARACTERS
    assert reading.code(section) == [("traces, tf1.14, tf2.0:", code)]
    assert reading.code(section, Where.PASTE) == []
    assert "    return x\n    return x" in markdown.render_full([section])


def test_so_much_of_long_values_is_told_in_full():
    section = make_section(*many([f"{at}" * FULL_CHARACTERS * 2 for at in range(FULL + 5)]))
    assert [len(text) for _, text in reading.code(section)] == [FULL_CHARACTERS] * FULL
    assert "5 more are in launches.jsonl." in markdown.render_full([section])


def test_beside_times_each_number_has_its_line_in_the_details_alone():
    section = make_section(run(LOOPS), launch_twice(LOOPS))
    (table,) = reading.tables(section)
    assert reading.heads(table) == ["cell", "time, ms", "loop"]
    assert reading.rows(table)[:2] == [
        ["fit, tf1.14 graph", "10.0", "graph loop"],
        ["fit, tf1.14 eager", "10.0", "eager loop"],
    ]
    assert [line.cell for line in table.lines] == [line.entries[1].cells[0] for line in table.lines]
    assert {line.cell for line in table.lines} == set(LOOPS)
    assert reading.shown(section, Where.PASTE) == reading.shown(section, Where.TERMINAL) == []
    assert len(reading.told(section, Where.DETAILS, notes=True)) == 1


def test_scenarios_are_told_apart():
    other = scenario("other", title="Another")
    seen = LOOPS | {Cell("other", of.environment, of.device, of.axes): values for of, values in LOOPS.items()}
    section = make_section(run(seen, scenarios=[scenario(), other]), launch_twice(seen))
    assert reading.headings(section) == ["One training step", "Another"]
    assert [table.caption for table in reading.tables(section)] == ["Observed, One training step", "Observed, Another"]


def test_a_run_that_observes_nothing_has_no_such_section():
    assert list(observations.make_sections(Results(run(), [launch(of) for of in cells()]))) == []
