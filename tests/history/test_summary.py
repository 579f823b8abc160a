import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.fleet.merge import merge
from harness.history.index import History
from harness.history.summary import load_summary as of_folder
from harness.history.summary import read, summarize, write
from harness.model.environment import Environment
from harness.model.errors import DamagedError, UsageError
from harness.model.history import Summary
from harness.model.launch import Clock, Interleave, Status
from harness.model.run import Machine, Stop, StopReason, Unavailable
from tests.cli.conftest import stored
from tests.factories import cells, rounds, run


def test_a_cell_is_set_against_its_groups_control(night: Summary) -> None:
    reference, *others = night.points
    assert (reference.environment, reference.reference, reference.ratio) == ("tf1.14", "", None)
    assert {other.reference for other in others} == {"tf1.14"}
    assert [dict(other.against)["mode"] for other in others] == ["graph"] * 3
    slower = others[-1]
    assert slower.ratio == pytest.approx(math.log(1.2), abs=0.01)
    assert slower.low is not None
    assert slower.high is not None
    assert slower.low < slower.ratio < slower.high  # type: ignore[operator]
    assert slower.rounds == 5
    assert slower.seconds == pytest.approx(0.012, rel=0.01)


def test_intervals_do_not_depend_on_how_many_cells_a_table_has() -> None:
    planned = cells()
    seconds = dict.fromkeys(planned, 0.01)
    results = Results(run(planned, controlled=True), rounds(seconds, 5, 0.02, 1))
    table = results.tables[0].rows[0].values
    shown = next(value.compared for value in table if value.compared and value.compared.cell == planned[2])
    assert shown
    assert shown.other == planned[0]
    assert shown.ratio.interval
    point = summarize(results).points[2]
    assert point.low is not None
    assert point.high is not None
    assert point.high - point.low < math.log(shown.ratio.interval.high / shown.ratio.interval.low)


def test_without_a_control_there_are_times_alone() -> None:
    planned = cells()
    made = summarize(Results(run(planned), rounds(dict.fromkeys(planned, 0.01), 5, 0.002, 1)))
    assert {(point.reference, point.ratio) for point in made.points} == {("", None)}
    assert all(point.seconds for point in made.points)


def test_a_cell_without_a_number_has_its_status() -> None:
    planned = cells()
    made = summarize(Results(run(planned, controlled=True), rounds(dict.fromkeys(planned[:3], 0.01), 5, 0.002, 1)))
    assert made.points[3].status is Status.INTERRUPTED
    assert made.points[3].seconds is None
    assert made.points[3].ratio is None


def test_times_and_statuses_are_those_of_the_reports() -> None:
    planned = cells()
    results = Results(run(planned, controlled=True), rounds(dict.fromkeys(planned[:3], 0.01), 5, 0.02, 1))
    made = summarize(results).points
    assert [entry.status for entry in made] == [cell.status for cell in results.cells]
    for point, cell in zip(made, results.cells, strict=True):
        assert (point.seconds is None) == (cell.estimate is None)
        if cell.estimate and cell.estimate.interval:
            assert point.seconds == pytest.approx(cell.estimate.value, rel=1e-5)
            assert point.seconds_high == pytest.approx(cell.estimate.interval.high, rel=1e-5)


def test_where_a_round_is_the_only_one_there_is_no_interval() -> None:
    planned = cells()
    made = summarize(Results(run(planned, controlled=True), rounds(dict.fromkeys(planned, 0.01), 1, 0.002, 1)))
    assert made.points[1].ratio is not None
    assert made.points[1].low is None


def test_an_older_run_gets_an_id_of_what_is_known_of_its_machine() -> None:
    one, other = (run(host={"cpu": name, "cores": 2}) for name in ("one", "other"))
    first, again, second = (summarize(Results(value, [])).machines[0].machine for value in (one, one, other))
    assert first == again != second
    assert first.id.startswith("h-")


def test_a_machines_own_id_is_kept(night: Summary) -> None:
    assert [machine.machine for machine in night.machines] == [Machine("m-00000001", "lab")]
    assert {point.machine for point in night.points} == {"m-00000001"}


def test_what_makes_times_incomparable_is_told() -> None:
    plain = summarize(Results(run(), [])).way
    assert plain == "1 CPU, launch after launch"
    other = run(asked={"interleave": Interleave.TURNS, "clock": Clock.CPU})
    assert summarize(Results(other, [])).way == "1 CPU, in turns, CPU time"


def test_a_lock_is_the_same_however_its_pins_are_ordered() -> None:
    pins = {"tf1.14": {"numpy": "1.17.4", "six": "1.13.0"}}
    turned = {"tf1.14": {"six": "1.13.0", "numpy": "1.17.4"}}
    one, other = (summarize(Results(run(pins=value), [])).software["tf1.14"].lock for value in (pins, turned))
    assert one == other


def test_the_driver_is_told_of_a_run_on_gpus() -> None:
    limits = run().plan.limits
    limits = type(limits)(gpus=("0",))
    host = {"gpus": [{"name": "NVIDIA H200", "driver": "570.1"}, {"name": "NVIDIA H200", "driver": "570.1"}]}
    made = summarize(Results(run(host=host, asked={"limits": limits}), []))
    assert made.machines[0].driver == "NVIDIA H200, driver 570.1"
    unknown = run(host={"gpus": "not known: another machine"}, asked={"limits": limits})
    assert summarize(Results(unknown, [])).machines[0].driver == ""


def test_profiles_have_no_summary() -> None:
    with pytest.raises(UsageError, match="profiles"):
        summarize(Results(run(asked={"profile_calls": 5}), []))


def test_a_summary_is_written_once_and_read_again(night: Summary, tmp_path: Path) -> None:
    assert write(night, tmp_path)
    path = tmp_path / "2026-11" / f"{night.run}.json"
    before = path.read_bytes()
    assert not write(night, tmp_path)
    assert path.read_bytes() == before
    assert read(path) == night


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 99}'])
def test_a_file_that_is_no_summary_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.json"):
        read(path)
    with pytest.raises(UsageError, match=r"y\.json cannot be read"):
        read(tmp_path / "y.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"run": "../x"},
        {"run": ""},
        {"started": "yesterday"},
        {"machines": []},
        {"machines": [{"machine": {"id": "m-1\x1b[31m", "name": ""}}]},
        {"points": [{"machine": "m-00000001", "scenario": "s", "device": "cpu", "axes": {}, "environment": "e"}]},
    ],
)
def test_a_summary_that_cannot_be_is_named(changes: dict[str, object], night: Summary, tmp_path: Path) -> None:
    write(night, tmp_path)
    path = tmp_path / "2026-11" / f"{night.run}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(DamagedError, match="is damaged"):
        read(path)


@pytest.mark.parametrize(
    "changes", [{"ratio": 1000.0}, {"low": -1000.0}, {"high": 1e300}, {"seconds": 1e300}, {"seconds_low": -1.0}]
)
def test_a_number_out_of_its_range_is_named(changes: dict[str, float], night: Summary, tmp_path: Path) -> None:
    write(night, tmp_path)
    path = tmp_path / "2026-11" / f"{night.run}.json"
    document = json.loads(path.read_text())
    document["points"][-1] |= changes
    path.write_text(json.dumps(document))
    with pytest.raises(DamagedError, match="a point has an invalid number"):
        read(path)


@pytest.mark.parametrize("text", ["# A read-me", "", '{"id": "a run.json"}', "[]"])
def test_what_is_neither_a_run_nor_its_summary_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"README\.md is neither a run's folder nor the summary of a run"):
        of_folder(path)


def test_what_was_merged_from_two_machines_is_of_each(tmp_path: Path) -> None:
    planned = cells()
    paths = []
    for number, seconds in ((1, 0.01), (2, 0.02)):
        of = run(planned, controlled=True, id=f"run-{number}", machine=Machine(f"m-{number}"))
        of = replace(of, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in of.plan.groups})
        paths.append(stored(tmp_path / "runs", of, rounds(dict.fromkeys(planned, seconds), 5, 0.002, number)))
    merged = merge(paths, tmp_path / "merged")
    made = of_folder(merged.ended.folder)
    assert [machine.machine.id for machine in made.machines] == ["m-1", "m-2"]
    assert made.merged == ["run-1", "run-2"]
    alone = [of_folder(path) for path in paths]
    for entry in alone:
        mine = [point for point in made.points if point.machine == entry.machines[0].machine.id]
        assert mine == list(entry.points)
    with History.open(str(tmp_path / "x.duckdb"), writing=True) as history:
        assert history.add_all([*alone, made]) == [made.run]
        assert not history.add(alone[0])
    with History.open(str(tmp_path / "y.duckdb"), writing=True) as history:
        assert history.add(alone[0])
        assert not history.add(made)


def line(version: str, as_of: str = "2026-10-27T00:00:00Z") -> Environment:
    name = f"tf-nightly-{version}"
    return Environment(name, version, "3.11", as_of, asked=f"tf-nightly=={version}", line="tf-nightly")


PINNED = Environment("tf2.21", "2.21.0", "3.11", "2026-04-15T00:00:00Z")


def test_a_release_line_is_one_series_with_the_version_of_each_run() -> None:
    planned = cells(("tf2.21", "tf-nightly-2.23.0.dev20261026"), modes=["graph"])
    made = run(planned, controlled=True, environments=[PINNED, line("2.23.0.dev20261026")], reference="tf2.21")
    of = summarize(Results(made, rounds(dict.fromkeys(planned, 0.01), 5, 0.002, 1)))
    assert [(point.environment, point.reference) for point in of.points] == [("tf2.21", ""), ("tf-nightly", "tf2.21")]
    assert of.software["tf-nightly"].version == "tf-nightly==2.23.0.dev20261026"
    assert of.software["tf2.21"].version == "tf2.21"


def test_of_several_wheels_of_a_line_the_newest_is_the_lines_point() -> None:
    old, new = line("2.23.0.dev20261025", "2026-10-26T00:00:00Z"), line("2.23.0.dev20261026")
    planned = cells((new.name, old.name), modes=["graph"])
    made = run(planned, controlled=True, environments=[new, old], reference=old.name)
    of = summarize(Results(made, rounds(dict.fromkeys(planned, 0.01), 5, 0.002, 1)))
    assert [point.environment for point in of.points] == ["tf-nightly", old.name]
    assert of.reference == old.name


def test_a_wheel_that_cannot_be_installed_is_a_missing_point_of_its_series(tmp_path: Path) -> None:
    new = line("2.23.0.dev20261026")
    planned, lost = cells(("tf2.21",), modes=["graph"]), cells((new.name,), modes=["graph"])
    made = run(
        planned,
        controlled=True,
        environments=[PINNED, new],
        reference="tf2.21",
        unavailable=[Unavailable(lost[0], "its wheel\n  was yanked")],
    )
    of = summarize(Results(made, rounds(dict.fromkeys(planned, 0.01), 5, 0.002, 1)))
    point = of.points[-1]
    assert (point.environment, point.reference, point.ratio) == ("tf-nightly", "tf2.21", None)
    assert point.reason == "its wheel was yanked"
    assert of.software["tf-nightly"].version == new.exact
    where = str(tmp_path / "history.duckdb")
    with History.open(where, writing=True) as history:
        history.add(of)
        (series,) = history.series(environment=["tf-nightly"])
        assert series.points[-1].reason == "its wheel was yanked"
        assert series.points[-1].origin[-2:] == (new.exact, "tf2.21")
        assert list(history.summaries()) == [of]
