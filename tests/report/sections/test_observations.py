"""What cells observed, as tables, and how what the sources state stands."""

from functools import partial

from harness.analysis.results import Results
from harness.model.scenario import Cell, Expectation
from harness.report import markdown
from harness.report.blocks import Where
from harness.report.sections import observations
from harness.report.sections.observations import CHARACTERS, FULL, FULL_CHARACTERS
from tests.factories import cells, launch, run, scenario
from tests.observing import OBSERVER, example, many, observer
from tests.report.sections import reading

LOOPS = {cell: {"loop": f"{cell.axes['mode']} loop", "parameters": 7} for cell in cells(calls=("fit", "predict"))}


make_section = partial(reading.make, observations.make_sections)


def launch_twice(values_by_cell):
    return [
        launch(member, 0.01, number, observations=values)
        for number in (1, 2)
        for member, values in values_by_cell.items()
    ]


def make_varying():
    planned, launches = example()
    for number, traces in enumerate(([1, 9], [1, 2]), 1):
        launches.append(launch(observer("tf1.14"), (), number, observations={"traces": traces, "kind": "graph"}))
    return planned, launches


def test_observations(snapshot):
    other = {Cell("other", member.environment, member.device, member.axes): values for member, values in LOOPS.items()}
    scenarios = [scenario(), scenario("other", title="Another")]
    planned, launches = example()
    both = run([*planned.plan.cells, *cells()], scenarios=[OBSERVER, scenario()])
    runs = {
        # nothing is timed, so it is shown everywhere
        "three environments": example(),
        "beside a scenario that is timed": (both, [*launches, *map(launch, cells())]),
        "launches that disagree": make_varying(),
        "many environments": many(["a"] * 5 + ["b"] * 4),
        "beside times": (run(LOOPS), launch_twice(LOOPS)),
        "two scenarios": (run(LOOPS | other, scenarios=scenarios), launch_twice(LOOPS | other)),
    }
    assert {name: reading.render(make_section(*stored)) for name, stored in runs.items()} == snapshot
    assert list(observations.make_sections(Results(run(), [launch(member) for member in cells()]))) == []


def test_a_long_value_is_cut_in_its_table_and_whole_below():
    code = "def tf__f(x):\n" + "    return x\n" * 40
    section = make_section(*example((code, code, "short")))
    assert len(reading.rows(reading.tables(section)[0])[0][1]) == CHARACTERS
    assert reading.code(section, Where.DETAILS) == [code]
    assert reading.code(section, Where.PASTE) == []
    assert "    return x\n    return x" in markdown.render_full([section])
    many_long = make_section(*many([f"{at}" * FULL_CHARACTERS * 2 for at in range(FULL + 5)]))
    assert [len(text) for text in reading.code(many_long, Where.DETAILS)] == [FULL_CHARACTERS] * FULL
    assert "5 more values are in launches.jsonl." in markdown.render_full([many_long])


def test_statements_of_the_sources(snapshot):
    unobserved, launches = example()
    del launches[1].observations["traces"]
    stated = scenario(expect=[Expectation("parameters", 7, {}, ())])
    runs = {
        "one differs": example(),
        "one varies": make_varying(),
        "not observed": (unobserved, launches),
        "all as stated": example(([1, 2],) * 3),
        "beside times": (
            run(scenarios=[stated]),
            [launch(member, observations={"parameters": 7}) for member in cells()],
        ),
        "many environments": many([[1, 2] if at != 4 else [9] for at in range(9)], "traces"),
    }
    assert {
        name: reading.render(reading.make(observations.make_statements, *stored)) for name, stored in runs.items()
    } == snapshot
    assert list(observations.make_statements(Results(run(), [launch(member) for member in cells()]))) == []
