"""How what the sources state stands."""

from syrupy.assertion import SnapshotAssertion

from harness.analysis.results import Results
from harness.model.scenario import Expectation
from harness.report.blocks import Where
from harness.report.sections import expectations
from tests.factories import cells, launch, run, scenario
from tests.observing import NAMES, example, many, observer
from tests.report.sections import reading


def make_section(of, launches):
    return reading.made(expectations.make_sections, of, launches)


def add_launches(*traces):
    """The example, with launches of a cell that observed these traces."""
    of, launches = example()
    for number, value in enumerate(traces, 1):
        launches.append(launch(observer("tf1.14"), (), number, observations={"traces": value, "kind": "graph"}))
    return of, launches


def test_what_was_seen_stands_where_it_differs_from_what_is_stated():
    (table,) = reading.tables(make_section(*example()))
    assert reading.heads(table) == ["observation", "where", "stated", *NAMES]
    assert reading.rows(table) == [
        ["traces", "retracing", "[1, 2]", "as stated", "as stated", "[1, 3]"],
        ["raises", "assignment", "TypeError", "", "as stated", "as stated"],
    ]
    assert reading.bold(table) == [["[1, 3]"], []]


def test_they_are_counted_everywhere(snapshot: SnapshotAssertion):
    stated = scenario(expect=[Expectation("parameters", 7, {}, ())])
    alike = run(scenarios=[stated]), [launch(of, observations={"parameters": 7}) for of in cells()]
    runs = {"one differs": example(), "one varies": add_launches([1, 9], [1, 2]), "all as stated": alike}
    assert {name: expectations.count_results(Results(*stored).statements) for name, stored in runs.items()} == snapshot
    section = make_section(*alike)
    for where in (Where.PASTE, Where.TERMINAL, Where.DETAILS, Where.PAGE):
        assert reading.told(section, where) == [expectations.count_results(Results(*alike).statements)]


def test_launches_that_disagree_and_what_was_not_observed_stand_out():
    (table,) = reading.tables(make_section(*add_launches([1, 9], [1, 2])))
    assert reading.rows(table)[0][3] == "varies: [1, 9]; [1, 2]"
    of, launches = example()
    del launches[1].observations["traces"]
    (table,) = reading.tables(make_section(of, launches))
    assert reading.bold(table)[0] == ["not observed", "[1, 3]"]


def test_a_terminal_shows_those_that_do_not_stand_as_stated_and_what_is_pasted_names_them():
    section = make_section(*example())
    (table,) = reading.tables(section, Where.TERMINAL)
    assert [row[0] for row in reading.rows(table)] == ["traces"]
    (text,) = reading.told(section, Where.PASTE)
    assert text.endswith(": traces, retracing (tf2.1).")
    assert reading.tables(section, Where.PASTE) == []
    alike = make_section(*example(([1, 2],) * 3))
    assert reading.tables(alike, Where.TERMINAL) == []
    assert reading.told(alike, Where.PASTE) == []


def test_many_environments_are_lines_and_those_where_it_stands_alike_share_one():
    section = make_section(*many([[1, 2] if at != 4 else [9] for at in range(9)], "traces"))
    (table,) = reading.tables(section)
    assert reading.heads(table) == ["observation", "where", "stated", "environment", "value"]
    assert reading.rows(table) == [
        ["traces", "retracing", "[1, 2]", "e0 to e3 (4)", "as stated"],
        ["", "", "", "e4", "[9]"],
        ["", "", "", "e5 to e8 (4)", "as stated"],
    ]
    assert reading.bold(table) == [[], ["[9]"], []]
    # in a terminal too it is said which statement that is
    assert reading.rows(reading.tables(section, Where.TERMINAL)[0])[0][0] == "traces"


def test_a_run_whose_sources_state_nothing_has_no_such_section():
    assert list(expectations.make_sections(Results(run(), [launch(of) for of in cells()]))) == []
