import math
from dataclasses import replace
from functools import partial

import pytest

from harness.analysis.results import Results
from harness.fleet.merge import merge
from harness.history.folder import History
from harness.history.summary import load_summary, summarize
from harness.model.environment import Environment
from harness.model.launch import Clock, Interleave, Status
from harness.model.run import Machine, Run, Stop, StopReason, Unavailable
from harness.model.scenario import Cell
from tests.cli.conftest import stored
from tests.errors import read_refusal
from tests.factories import cells, rounds, run


def measure(of: Run, measured: list[Cell], count: int = 5, noise: float = 0.002) -> Results:
    return Results(of, rounds(dict.fromkeys(measured, 0.01), count, noise, 1))


def test_a_cell_is_set_against_its_groups_control(night):
    reference, *others = night.points
    assert (reference.environment, reference.reference, reference.ratio) == ("tf1.14", "", None)
    assert {other.reference for other in others} == {"tf1.14"}
    assert [dict(other.against)["mode"] for other in others] == ["graph"] * 3
    slower = others[-1]
    assert slower.ratio == pytest.approx(math.log(1.2), abs=0.01)
    assert slower.low < slower.ratio < slower.high  # type: ignore[operator]
    assert slower.rounds == 5
    assert slower.seconds == pytest.approx(0.012, rel=0.01)
    assert [machine.machine for machine in night.machines] == [Machine("m-00000001", "lab")]
    assert {point.machine for point in night.points} == {"m-00000001"}


def test_intervals_do_not_depend_on_how_many_cells_a_table_has():
    planned = cells()
    results = measure(run(planned, controlled=True), planned, noise=0.02)
    values = results.tables[0].rows[0].values
    comparison = next(value.compared for value in values if value.compared and value.compared.cell == planned[2])
    assert comparison
    assert comparison.other == planned[0]
    assert comparison.ratio.interval
    point = summarize(results).points[2]
    interval = comparison.ratio.interval
    assert point.high - point.low < math.log(interval.high / interval.low)  # type: ignore[operator]


def test_times_and_statuses_are_those_of_the_reports_and_what_was_not_measured_is_left_out():
    planned = cells()
    results = measure(run(planned, controlled=True), planned[:3], noise=0.02)
    points = summarize(results).points
    assert [point.status for point in points] == [cell.status for cell in results.cells]
    for point, cell in zip(points[:3], results.cells, strict=False):
        assert cell.estimate
        assert cell.estimate.interval
        assert point.seconds == pytest.approx(cell.estimate.value, rel=1e-5)
        assert point.seconds_high == pytest.approx(cell.estimate.interval.high, rel=1e-5)
    assert (points[3].status, points[3].seconds, points[3].ratio) == (Status.INTERRUPTED, None, None)
    without_control = summarize(measure(run(planned), planned)).points
    assert {(point.reference, point.ratio) for point in without_control} == {("", None)}
    assert all(point.seconds for point in without_control)
    of_one_round = summarize(measure(run(planned, controlled=True), planned, count=1)).points[1]
    assert of_one_round.ratio is not None
    assert of_one_round.low is None


def test_the_way_of_measuring_the_locks_and_the_machine_are_in_the_summary():
    # an older run gets an id of what is known of its machine
    olds = [run(host={"cpu": name, "cores": 2}) for name in ("one", "one", "other")]
    first, same, second = (summarize(Results(value, [])).machines[0].machine for value in olds)
    assert first == same != second
    assert first.id.startswith("h-")
    assert summarize(Results(run(), [])).way == "1 CPU, launch after launch"
    turns = run(asked={"interleave": Interleave.TURNS, "clock": Clock.CPU})
    assert summarize(Results(turns, [])).way == "1 CPU, in turns, CPU time"
    pins = {"numpy": "1.17.4", "six": "1.13.0"}
    runs = [run(pins={"tf1.14": value}) for value in (pins, dict(reversed(pins.items())))]
    one, other = (summarize(Results(value, [])).software["tf1.14"].lock for value in runs)
    assert one == other
    limits = type(run().plan.limits)(gpus=("0",))
    drivers = {
        "NVIDIA H200, driver 570.1": [{"name": "NVIDIA H200", "driver": "570.1"}] * 2,
        "": "not known: another machine",
    }
    for driver, gpus in drivers.items():
        of_run = run(host={"gpus": gpus}, asked={"limits": limits})
        assert summarize(Results(of_run, [])).machines[0].driver == driver


def test_what_is_no_run_is_refused(tmp_path, snapshot):
    path = tmp_path / "x.json"
    path.write_text('{"id": "a run.json"}')
    paths = {"file": path, "folder": tmp_path}
    refusals = {name: read_refusal(partial(load_summary, place), tmp_path) for name, place in paths.items()}
    refusals["profiles"] = read_refusal(lambda: summarize(Results(run(asked={"profile_calls": 5}), [])))
    assert refusals == snapshot


def test_a_run_merged_from_two_machines_counts_for_each_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.fleet.merge.report", lambda *_: None)  # it takes seconds, and is tested elsewhere
    planned = cells()
    paths = []
    for number, seconds in ((1, 0.01), (2, 0.02)):
        of_run = run(planned, controlled=True, id=f"run-{number}", machine=Machine(f"m-{number}"))
        of_run = replace(of_run, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in of_run.plan.groups})
        paths.append(stored(tmp_path / "runs", of_run, rounds(dict.fromkeys(planned, seconds), 5, 0.002, number)))
    merged = load_summary(merge(paths, tmp_path / "merged").ended.folder)
    assert [machine.machine.id for machine in merged.machines] == ["m-1", "m-2"]
    assert merged.merged == ["run-1", "run-2"]
    parts = [load_summary(path) for path in paths]
    for part in parts:
        machine = part.machines[0].machine.id
        assert [point for point in merged.points if point.machine == machine] == list(part.points)
    history = History(tmp_path / "history")
    assert [history.add(summary) for summary in (merged, *parts)] == [True, False, False]


def line(version: str, as_of: str = "2026-10-27T00:00:00Z") -> Environment:
    name = f"tf-nightly-{version}"
    return Environment(name, version, "3.11", as_of, asked=f"tf-nightly=={version}", line="tf-nightly")


PINNED = Environment("tf2.21", "2.21.0", "3.11", "2026-04-15T00:00:00Z")
WHEEL = line("2.23.0.dev20261026")


def test_a_release_line_is_one_series_with_the_version_of_each_run():
    planned = cells(("tf2.21", WHEEL.name), modes=["graph"])
    of_run = run(planned, controlled=True, environments=[PINNED, WHEEL], reference="tf2.21")
    summary = summarize(measure(of_run, planned))
    points = [(point.environment, point.reference) for point in summary.points]
    assert points == [("tf2.21", ""), ("tf-nightly", "tf2.21")]
    assert summary.software["tf-nightly"].version == "tf-nightly==2.23.0.dev20261026"
    assert summary.software["tf2.21"].version == "tf2.21"
    # of several wheels, the newest is the line's point
    old = line("2.23.0.dev20261025", "2026-10-26T00:00:00Z")
    planned = cells((WHEEL.name, old.name), modes=["graph"])
    of_run = run(planned, controlled=True, environments=[WHEEL, old], reference=old.name)
    summary = summarize(measure(of_run, planned))
    assert [point.environment for point in summary.points] == ["tf-nightly", old.name]
    assert summary.reference == old.name


def test_a_wheel_that_cannot_be_installed_is_a_missing_point_of_its_series(tmp_path):
    planned, lost = cells(("tf2.21",), modes=["graph"]), cells((WHEEL.name,), modes=["graph"])
    of_run = run(
        planned,
        controlled=True,
        environments=[PINNED, WHEEL],
        reference="tf2.21",
        unavailable=[Unavailable(lost[0], "its wheel\n  was yanked")],
    )
    summary = summarize(measure(of_run, planned))
    point = summary.points[-1]
    assert (point.environment, point.reference, point.ratio) == ("tf-nightly", "tf2.21", None)
    assert point.reason == "its wheel was yanked"
    assert summary.software["tf-nightly"].version == WHEEL.exact
    history = History(tmp_path)
    history.add(summary)
    (series,) = history.series(environment=["tf-nightly"])
    assert series.points[-1].reason == "its wheel was yanked"
    assert series.points[-1].origin[-2:] == (WHEEL.exact, "tf2.21")
    assert History(tmp_path).summaries() == [summary]
