"""How what the sources state stands."""

from harness.analysis.results import Results
from harness.model.scenario import Expectation
from harness.report.blocks import Where
from harness.report.sections import expectations
from tests.factories import cells, launch, run, scenario
from tests.observing import NAMES, example, many, observer
from tests.report.sections import reading


def section(known, launches):
    return reading.made(expectations.make_sections, known, launches)


def test_what_was_seen_stands_where_it_differs_from_what_is_stated():
    (table,) = reading.tables(section(*example()))
    assert reading.heads(table) == ["observation", "where", "stated", *NAMES]
    assert reading.rows(table) == [
        ["traces", "retracing", "[1, 2]", "as stated", "as stated", "[1, 3]"],
        ["raises", "assignment", "TypeError", "", "as stated", "as stated"],
    ]
    assert reading.bold(table) == [["[1, 3]"], []]


def test_they_are_counted():
    assert expectations.count_results(Results(*example()).statements) == (
        "5 statements from the sources were compared with the observations: 4 as stated, 1 differs. Each cell counts "
        "separately."
    )


def test_launches_that_disagree_stand_out():
    known, launches = example()
    again = launch(observer("tf1.14"), (), 1, observations={"traces": [1, 9], "kind": "graph"})
    later = launch(observer("tf1.14"), (), 2, observations={"traces": [1, 2], "kind": "graph"})
    made = section(known, [*launches, again, later])
    assert reading.rows(reading.tables(made)[0])[0][3] == "varies: [1, 9]; [1, 2]"
    assert reading.told(made, Where.DETAILS)[0].endswith(
        ": 3 as stated, 1 differs, 1 varies. Each cell counts separately."
    )


def test_what_was_not_observed_stands_out():
    known, launches = example()
    del launches[1].observations["traces"]
    (table,) = reading.tables(section(known, launches))
    assert reading.bold(table)[0] == ["not observed", "[1, 3]"]


def test_a_terminal_shows_those_that_do_not_stand_as_stated_and_what_is_pasted_names_them():
    made = section(*example())
    (table,) = reading.tables(made, Where.TERMINAL)
    assert [row[0] for row in reading.rows(table)] == ["traces"]
    assert reading.told(made, Where.PASTE) == ["Not as stated: traces, retracing (tf2.1)."]
    assert reading.tables(made, Where.PASTE) == []


def test_where_all_stand_as_stated_a_terminal_shows_no_table():
    made = section(*example(([1, 2],) * 3))
    assert reading.tables(made, Where.TERMINAL) == []
    assert reading.told(made, Where.PASTE) == []


def test_beside_times_the_counts_are_told_everywhere():
    stated = scenario(expect=[Expectation("parameters", 7, {}, ())])
    launches = [launch(of, observations={"parameters": 7}) for of in cells()]
    made = section(run(scenarios=[stated]), launches)
    for where in (Where.PASTE, Where.TERMINAL, Where.DETAILS, Where.PAGE):
        assert reading.told(made, where) == [
            "4 statements from the sources were compared with the observations: 4 as stated. Each cell counts "
            "separately."
        ]


def test_many_environments_are_lines_and_those_where_it_stands_alike_share_one():
    made = section(*many([[1, 2] if n != 4 else [9] for n in range(9)], "traces"))
    (table,) = reading.tables(made)
    assert reading.heads(table) == ["observation", "where", "stated", "environment", "value"]
    assert reading.rows(table) == [
        ["traces", "retracing", "[1, 2]", "e0 to e3 (4)", "as stated"],
        ["", "", "", "e4", "[9]"],
        ["", "", "", "e5 to e8 (4)", "as stated"],
    ]
    assert reading.bold(table) == [[], ["[9]"], []]
    # in a terminal too it is said which statement that is
    assert reading.rows(reading.tables(made, Where.TERMINAL)[0])[0][0] == "traces"


def test_a_run_whose_sources_state_nothing_has_no_such_section():
    assert list(expectations.make_sections(Results(run(), [launch(of) for of in cells()]))) == []
