"""Replays of nightly runs: `python -m bench.replay`. Nothing is measured here: the runs are made up."""

import json
import math
import random
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.replay import figures, nights
from bench.replay.rules import delay, distinct
from harness.history import summary
from harness.history.folder import History
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.history import CellPoint, MeasuredSeries, Measurer, SeriesSoftware, Summary
from harness.model.launch import Status
from harness.model.run import Machine

LINE, BASELINE = "tf2.21+keras-nightly", "tf2.21"
PLANTED = nights.PlantedStep("planted", 14, 10)


def make_summary(run: str, slower: float = 0.0, scenario: str = "step", seed: int = 0) -> Summary:
    """Return a run of one configuration, whose ratio varies by half a percent."""
    log = math.log1p(slower) + random.Random(f"{run} {seed}").gauss(0.0, 0.005)
    ends = (log, log - 0.01, log + 0.01, 3, 0.01 * math.exp(log))
    point = CellPoint("m-1", scenario, "cpu", {}, LINE, Status.OK, BASELINE, {}, "step", *ends)
    software = {
        LINE: SeriesSoftware("lock", "image", {}, f"{LINE}=={run}"),
        BASELINE: SeriesSoftware("lock", "image", {}, "tf2.21"),
    }
    scenarios = {scenario: MeasuredSeries("file", scenario)}
    measurers = [Measurer(Machine("m-1"))]
    started = f"{run[:10]}{nights.TIME}"
    return Summary(run, started, "1", "", "", 0.03, "1 CPU", BASELINE, "kit", measurers, software, scenarios, [point])


def store_replay(folder: Path, plan: nights.ReplayPlan, slower: Sequence[float | None]) -> figures.Replay:
    """Store a replay whose nightly runs are slower by these shares, and read it. None: the run measured nothing."""
    nights.store_plan(folder, plan)
    runs = ["" if share is None else f"{day}T04-10-00Z" for day, share in zip(plan.days, slower, strict=True)]
    name = plan.planted[0].name if plan.planted else "step"
    history = History(folder / nights.HISTORY)
    for run, share in zip(runs, slower, strict=True):
        if share is not None:
            history.add(make_summary(run, share, name))
    with (folder / nights.RECORDS).open("w") as records:
        for night, run in enumerate(runs):
            record = {"night": night, "day": plan.days[night], "environment": LINE, "run": run, "seconds": 60.0}
            records.write(json.dumps(record) + "\n")
    return figures.read(folder)


class Workflow:
    """The commands that a replay calls: the runs of some days fail, and one may be interrupted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.measured: list[str] = []
        self.missing: set[str] = set()
        self.alarms: list[list[dict[str, object]]] = []
        monkeypatch.setattr(nights, "run_harness", self.call)
        monkeypatch.setattr(summary, "load_summary", lambda path: make_summary(path.name))

    def call(
        self, folder: Path, command: str, *words: str, before: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        code, out, error = 0, "", ""
        if command == "matrix":
            environment = words[words.index("-e", words.index("-e") + 1) + 1]
            self.measured.append(environment)
            if environment in self.missing:
                code, error = 2, "harness: There is no wheel of that day."
            else:
                number = len(list((folder / nights.RESULTS).glob("*")))
                (folder / nights.RESULTS / f"run-{number}").mkdir(parents=True)
        elif words[0] == "alarm":
            out = json.dumps(self.alarms.pop(0) if self.alarms else [])
        return subprocess.CompletedProcess(words, code, out, error)


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    nights.store_plan(
        tmp_path, nights.ReplayPlan(LINE, BASELINE, nights.days_between("2026-08-01", "2026-08-07", 3), is_line=True)
    )
    return Workflow(tmp_path, monkeypatch)


def test_nightly_runs_take_the_line_as_of_their_day_and_an_interrupted_one_is_measured_again(workflow):
    nights.replay(workflow.folder)
    assert workflow.measured == [f"{LINE}@2026-08-0{day}" for day in (1, 4, 7)]
    (series,) = figures.read(workflow.folder).series
    assert [point.started[:10] for point in series.points] == ["2026-08-01", "2026-08-04", "2026-08-07"]
    path = workflow.folder / nights.RECORDS
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    workflow.measured.clear()
    nights.replay(workflow.folder)
    assert workflow.measured == [f"{LINE}@2026-08-07"]
    nights.replay(workflow.folder)
    assert len(workflow.measured) == 1
    (series,) = figures.read(workflow.folder).series
    assert len(series.points) == 3


def test_a_day_without_a_wheel_is_one_missing_point_with_its_reason(workflow):
    workflow.missing.add(f"{LINE}@2026-08-04")
    nights.replay(workflow.folder)
    replay = figures.read(workflow.folder)
    assert [bool(record.run) for record in replay.records] == [True, False, True]
    assert "2 of 3" in figures.page([replay])
    assert "2026-08-04: harness: There is no wheel of that day." in figures.page([replay])


@pytest.mark.slow
def test_a_replay_stops_if_nothing_is_measured_and_measures_these_days_again(workflow):
    plan = replace(nights.read_plan(workflow.folder), days=nights.days_between("2026-08-01", "2026-08-20", 1))
    nights.store_plan(workflow.folder, plan)
    workflow.missing = {plan.environment_of(night) for night in range(2, 20)}
    with pytest.raises(SystemExit, match="measured nothing"):
        nights.replay(workflow.folder)
    assert len(workflow.measured) == 2 + nights.MOST_MISSING
    workflow.missing = set()
    nights.replay(workflow.folder)
    assert [record.run != "" for record in nights.read_records(workflow.folder)] == [True] * 20


def test_a_run_that_cannot_be_read_or_added_to_the_history_is_a_missing_point_too(workflow, monkeypatch):
    def load(path: Path) -> Summary:
        if path.name == "run-0":
            raise UsageError("It never ended.")
        return make_summary(path.name)

    def refuse(history: History, run: Summary) -> bool:
        raise CannotRunHereError("The disk is full.")

    monkeypatch.setattr(summary, "load_summary", load)
    monkeypatch.setattr(History, "add", refuse)
    nights.replay(workflow.folder)
    records = nights.read_records(workflow.folder)
    assert [(record.run, record.reason) for record in records] == [
        ("", "It never ended."),
        *[("", "The disk is full.")] * 2,
    ]


def test_issues_are_opened_once_and_edited(workflow):
    first: dict[str, object] = {"step": "open", "number": None, "title": "Slower", "body": "in one series"}
    workflow.alarms = [[first], [{**first, "step": "edit", "number": 1, "body": "in two series"}], []]
    nights.replay(workflow.folder)
    assert [record.opened for record in nights.read_records(workflow.folder)] == [["Slower"], [], []]
    (issue,) = json.loads((workflow.folder / nights.ISSUES).read_text())
    assert issue["body"] == "in two series"


def test_planted_steps_need_some_nightly_runs_before_and_after_them():
    steps = nights.plant({5: 4, 10: 2}, 24)
    assert [step.percent for step in steps] == [5, 5, 5, 5, 10, 10]
    assert all(10 <= step.night <= 24 - figures.SOON for step in steps)
    with pytest.raises(UsageError):
        nights.plant({5: 1}, 13)
    assert [step.night for step in nights.plant({5: 1}, 14)] == [10]
    assert nights.plant({}, 1) == []


def rows(page: str) -> dict[str, list[str]]:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    return {" ".join(cells[:2]): cells[2:] for cells in lines if cells[1] in (figures.TIMES, figures.RATIOS)}


def test_a_planted_step_is_found_within_three_nightly_runs(tmp_path):
    plan = nights.ReplayPlan(LINE, BASELINE, nights.days_between("2026-08-01", "2026-08-24", 1), planted=[PLANTED])
    replay = store_replay(tmp_path, plan, [0.1 if night >= PLANTED.night else 0.0 for night in range(24)])
    cells = rows(figures.page([replay]))
    assert cells["harness, the screen ratios"] == ["1 of 1 (2 % to 100 %)", "0", "0", "0"]
    assert cells["10 % over the last value times"][2] in ("0", "1")
    assert cells["harness, confirmed side by side ratios"][2] == "1", "nothing was confirmed"


def planted_days(nights_in_all: int) -> nights.ReplayPlan:
    days = nights.days_between("2026-08-01", f"2026-08-{nights_in_all}", 1)
    return nights.ReplayPlan(LINE, BASELINE, days, planted=[PLANTED])


def test_false_alerts_and_missing_nightly_runs_do_not_move_a_step(tmp_path):
    reports = [(13, 12), (14, 12), (15, 14), (16, 14)]
    assert distinct(reports) == [(13, 12)]
    assert delay(reports, 14) == 1
    # the value before the step is higher too, and is an alert of its own
    slower = [0.2 if night == 13 else 0.4 if night >= PLANTED.night else 0.0 for night in range(24)]
    cells = rows(figures.page([store_replay(tmp_path / "alert", planted_days(24), slower)]))[
        "10 % over the last value times"
    ]
    assert cells == ["1 of 1 (2 % to 100 %)", "0", "0", "1"]
    slower = [None if 2 <= night < 6 else 0.3 if night >= PLANTED.night else 0.0 for night in range(24)]
    replay = store_replay(tmp_path / "missing", planted_days(24), slower)
    assert replay.steps == [(PLANTED, PLANTED.night - 4)]
    cells = rows(figures.page([replay]))["10 % over the last value times"]
    assert cells == ["1 of 1 (2 % to 100 %)", "0", "0", "0"]


def test_the_same_wheel_gives_harness_no_alert_where_one_slow_night_is_one_for_a_simple_rule(tmp_path):
    plan = nights.ReplayPlan(LINE, BASELINE, nights.days_between("2026-08-01", "2026-08-30", 1))
    replay = store_replay(tmp_path, plan, [0.3 if night == 20 else 0.0 for night in range(30)])
    reports = figures.judge(replay.series, 1)
    assert reports["harness, without the screen", figures.RATIOS] == [[]]
    assert reports["10 % over the last value", figures.TIMES] == [[(21, 20)]]
