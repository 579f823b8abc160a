"""A table's times as text."""

from dataclasses import replace

from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.model.environment import Device
from harness.model.launch import Status
from harness.report.grid import Grid, fold, marked, times
from tests.factories import ENVIRONMENTS, broken, cell, cells, launch, rounds, run

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def table(run, launches):
    return tables(run, lookup(run, launches))[0]


def grid(run, launches):
    return times(table(run, launches))


def test_headings_name_environment_mode_and_unit():
    made = grid(run(), rounds(TIMES))
    assert list(made.labels) == ["call"]
    assert list(made.headings) == ["tf1.14 graph, ms", "tf1.14 eager, ms", "tf2.0 graph, ms", "tf2.0 eager, ms"]
    assert all(len(values) == 4 for _, values in made.rows)


def test_many_environments_have_a_line_each():
    names_ = [f"tf2.{minor}" for minor in range(5)]
    members = [cell("tf1.14"), *cells(names_)]
    known = [replace(ENVIRONMENTS[0], name=name) for name in ["tf1.14", *names_]]
    made = grid(run(members, environments=known), [launch(member) for member in members])
    assert (list(made.labels), list(made.headings)) == (["call", "environment"], ["graph, ms", "eager, ms"])
    assert [labels[-1] for labels, _ in made.rows] == ["tf1.14", *names_]
    first, second = (list(values) for _, values in made.rows[:2])
    assert first[0].startswith("10.0")
    assert first[1] == ""
    assert all(value.startswith("10.0") for value in second)


def test_a_number_tells_of_fewer_rounds_and_of_several_modes():
    launches = [launch(cell(), 0.01, number) for number in (1, 2, 3)]
    launches += [launch(cell(mode="eager"), [0.007] * 3 + [0.022] * 2, number) for number in (1, 2)]
    ((_, values),) = grid(run(cells(["tf1.14"])), launches).rows
    assert values[0] == "10.0 ± 0.1"
    assert values[1] == "13.0 ± 0.1 n=2 †"


def test_a_number_tells_of_launches_that_lie_apart_and_of_steps_that_were_not_counted():
    spread = [0.010, 0.0101, 0.0099, 0.010, 0.0102, 0.020]
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate(spread, 1)]
    launches += [
        launch(cell(mode="eager"), 0.01, number, fingerprint={"steps_called": 100, "steps_counted": 6})
        for number in range(1, 7)
    ]
    ((_, values),) = grid(run(cells(["tf1.14"])), launches).rows
    assert values[0].endswith(" ◊")
    assert values[1] == "10.0 ± 0.1 ‡"


def test_what_the_marks_tell_is_told_by_name():
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    launches += [launch(cell("tf2.0"), [0.007] * 3 + [0.022] * 2, fingerprint={"steps_called": 9, "steps_counted": 8})]
    found = marked(table(run(cells(modes=["graph"])), launches))
    assert list(found.modes) == ["tf2.0 graph: 1 of 1"]
    assert list(found.apart) == ["tf1.14 graph: 1 of 6"]
    assert list(found.undone) == ["tf2.0 graph: took 9 steps, and the framework counted 8"]


def test_without_a_number_the_status_stands_and_where_there_is_no_cell_nothing():
    members = [cell(), cell(mode="eager"), cell(call="train_on_batch", mode="eager")]
    launches = [launch(cell()), broken(cell(mode="eager"), Status.OOM), launch(members[2])]
    rows = [list(values) for _, values in grid(run(members), launches).rows]
    assert rows == [["10.0", "oom"], ["", "10.0"]]


def test_rows_name_their_device_where_there_are_several():
    members = [cell(), cell(device=Device.GPU)]
    made = grid(run(members), [launch(member) for member in members])
    assert list(made.labels) == ["device", "call"]
    assert [list(labels) for labels, _ in made.rows] == [["cpu", "fit"], ["gpu", "fit"]]


def test_labels_that_all_rows_share_are_told_once():
    grid = Grid(["model", "api"], ["a"], [(["small", "keras"], ["1"]), (["large", "keras"], ["2"])])
    folded, shared = fold(grid)
    assert (list(folded.labels), shared) == (["model"], "api keras")
    assert [list(labels) for labels, _ in folded.rows] == [["small"], ["large"]]
