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


def section(known, launches):
    return reading.made(observations.make_sections, known, launches)


def timed(seen):
    return [launch(of, 0.01, number, observations=values) for number in (1, 2) for of, values in seen.items()]


LOOPS = {cell: {"loop": f"{cell.axes['mode']} loop", "parameters": 7} for cell in cells(calls=("fit", "predict"))}


def test_a_value_that_changes_stands_out_and_one_that_does_not_is_not_repeated():
    made = section(*example())
    assert reading.headings(made) == ["retracing", "assignment"]
    first, _ = reading.tables(made)
    assert reading.heads(first) == ["observation", *NAMES]
    assert reading.rows(first) == [["traces", "[1, 2]", SAME, "[1, 3]"], ["kind", "graph", SAME, SAME]]
    assert reading.bold(first) == [["[1, 3]"], []]


def test_a_run_that_times_nothing_tells_all_of_it_everywhere():
    made = section(*example())
    for where in EVERYWHERE:
        assert len(reading.tables(made, where)) == 2
        (legend,) = reading.told(made, where, notes=True)
        assert legend.startswith("= means the same as in the environment to its left. Bold: different from")


def test_beside_a_scenario_that_is_timed_a_terminal_shows_it_and_what_is_pasted_does_not():
    known, launches = example()
    times = cells()
    asked = run([*known.plan.cells, *times], scenarios=[OBSERVER, scenario()])
    made = section(asked, [*launches, *(launch(of) for of in times)])
    assert [len(reading.tables(made, where)) for where in EVERYWHERE] == [0, 2, 2, 2]
    assert reading.headings(made, Where.TERMINAL) == [
        "How functions behave: retracing",
        "How functions behave: assignment",
    ]


def test_launches_that_disagree_stand_out():
    known, launches = example()
    again = launch(observer("tf1.14"), (), 1, observations={"traces": [1, 9], "kind": "graph"})
    later = launch(observer("tf1.14"), (), 2, observations={"traces": [1, 2], "kind": "graph"})
    first, _ = reading.tables(section(known, [*launches, again, later]))
    assert reading.rows(first)[0][1] == "varies: [1, 9]; [1, 2]"
    assert "varies: [1, 9]; [1, 2]" in reading.bold(first)[0]


def test_many_environments_are_lines_and_those_that_agree_share_one():
    made = section(*many(["a"] * 5 + ["b"] * 4))
    (table,) = reading.tables(made)
    assert reading.heads(table) == ["observation", "environment", "value"]
    assert reading.rows(table) == [["kind", "e0 to e4 (5)", "a"], ["", "e5 to e8 (4)", "b"]]
    assert reading.bold(table) == [[], ["b"]]
    (legend,) = reading.told(made, Where.DETAILS, notes=True)
    assert legend.startswith("Adjacent environments with the same observation share a line. Bold: ")


def test_a_long_value_is_cut_in_its_table_and_whole_below():
    code = "def tf__f(x):\n" + "    return x\n" * 40
    made = section(*example((code, code, "short")))
    assert len(reading.rows(reading.tables(made)[0])[0][1]) == CHARACTERS
    assert reading.code(made) == [("traces, tf1.14, tf2.0:", code)]
    assert reading.code(made, Where.PASTE) == []
    assert "    return x\n    return x" in markdown.render_full([made])


def test_so_much_of_long_values_is_told_in_full():
    made = section(*many([f"{n}" * FULL_CHARACTERS * 2 for n in range(FULL + 5)]))
    assert [len(text) for _, text in reading.code(made)] == [FULL_CHARACTERS] * FULL
    assert "5 more are in launches.jsonl." in markdown.render_full([made])


def test_beside_times_each_number_has_its_line():
    made = section(run(LOOPS), timed(LOOPS))
    (table,) = reading.tables(made)
    assert reading.heads(table) == ["cell", "time, ms", "loop"]
    assert reading.rows(table)[:2] == [
        ["fit, tf1.14 graph", "10.0", "graph loop"],
        ["fit, tf1.14 eager", "10.0", "eager loop"],
    ]
    assert [line.cell for line in table.lines] == [line.entries[1].cells[0] for line in table.lines]
    assert {line.cell for line in table.lines} == set(LOOPS)


def test_beside_times_it_is_in_the_details_alone():
    made = section(run(LOOPS), timed(LOOPS))
    assert reading.shown(made, Where.PASTE) == reading.shown(made, Where.TERMINAL) == []
    (legend,) = reading.told(made, Where.DETAILS, notes=True)
    assert legend == (
        "Next to the times: the observations that differ between compared cells, or that the header expects."
    )


def test_scenarios_are_told_apart():
    other = scenario("other", title="Another")
    seen = LOOPS | {Cell("other", of.environment, of.device, of.axes): values for of, values in LOOPS.items()}
    made = section(run(seen, scenarios=[scenario(), other]), timed(seen))
    assert reading.headings(made) == ["One training step", "Another"]
    assert [table.caption for table in reading.tables(made)] == ["Observed, One training step", "Observed, Another"]


def test_a_run_that_observes_nothing_has_no_such_section():
    assert list(observations.make_sections(Results(run(), [launch(of) for of in cells()]))) == []
