"""Confirmation of a change: both sides are measured again, and their run decides."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis.results import Results
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.history.confirm import ConfirmationRun, decide_all, decide_finding, group_findings, plan_confirmation
from harness.history.request import ConfirmRequest
from harness.history.states import SeriesFinding, State
from harness.model.environment import Device, Environment
from harness.model.history import Key, MeasuredSeries, SeriesSoftware, Summary
from harness.model.launch import Clock, Interleave, Protocol
from harness.project import Project
from harness.session.request import Request
from tests.conftest import ROOT
from tests.errors import read_refusal
from tests.factories import cells, rounds, run

KEY = Key("m-1", "keras_step", "cpu", (("call", "fit"),), "tf2.1", "tf1.14", way="1 CPU in turns")


def finding(ratio=1.08, key=KEY, cause="one"):
    return SeriesFinding(key, State.SUSPECTED, "run-040", "2026", ratio, 0.99 * ratio, 1.01 * ratio, ["a lock"], cause)


def summary(pins, *, commit="", name="keras_step", digest="h", image="", environment="tf2.1"):
    software = {environment: SeriesSoftware("", image, pins), "tf1.14": SeriesSoftware("", "", {})}
    scenarios = {name: MeasuredSeries(digest, "")}
    return Summary("run-1", "2026", "1", commit, "", 0.03, "1 CPU", "tf1.14", "kit", [], software, scenarios)


def plan(findings, before, after, options=None, paths=()):
    return plan_confirmation(findings, before, after, options or ConfirmRequest(), paths)


@pytest.fixture(scope="module")
def sides():
    """Return the summaries of runs before and after numpy was replaced."""
    project = Project(ROOT)
    now = dict(load_lock(project, load_environments(project)["tf2.1"], Device.CPU).lock.pins)
    return summary({**now, "numpy": "1.17.5"}), summary(now)


def test_a_change_is_there_or_not_or_open():
    cases = {
        (5.0, 1.5, 1.05): True,
        (2.5, 3.0, 1.05): None,
        (1.0, 1.0, 1.05): False,
        (0.0, 1.0, 1.05): False,
        (0.0, 9.0, 1.05): None,
        (5.0, 9.0, 1.05): None,
        (-5.0, 1.0, 1.05): False,
        (-5.0, 1.5, 0.95): True,
        (5.0, 1.0, 0.95): False,
    }
    decisions = {}
    for percent, half, ratio in cases:
        log, wide = math.log1p(percent / 100.0), half / 100.0
        decisions[percent, half, ratio] = decide_finding(log, log - wide, log + wide, ratio, 0.03)
    assert decisions == cases


def test_one_run_decides_on_the_findings_of_one_cause_and_scenario(sides):
    other = finding(key=replace(KEY, axes=(("call", "train_on_batch"),)))
    findings = [finding(), other, finding(key=replace(KEY, scenario="gather")), finding(cause="two")]
    groups = group_findings(findings)
    assert list(map(len, groups)) == [2, 1, 1]
    request = plan(groups[0], *sides, ConfirmRequest(rounds=4)).request
    assert (request.axes, request.rounds) == ({"call": ["fit", "train_on_batch"]}, 4)


def test_another_lock_is_the_environment_with_the_packages_of_then(sides):
    confirmation = plan([finding()], *sides)
    request = confirmation.request
    assert request.environments == ["tf2.1+numpy==1.17.5", "tf2.1"]
    assert (request.scenarios, request.axes) == (["keras_step"], {"call": ["fit"]})
    assert (request.rounds, request.cpus, request.gpu) == (10, "1", False)
    command = "harness matrix -s keras_step -a call=fit -e tf2.1+numpy==1.17.5 -e tf2.1 --cpus 1 --rounds 10"
    assert sorted(confirmation.make_command()) == sorted(command.split())
    # both sides run the current version of the file
    edited = replace(sides[0], scenarios={"keras_step": MeasuredSeries("another", "")})
    assert plan([finding()], edited, sides[1]) == confirmation
    # the versions of keras-nightly are kept if they differ
    pins = sides[1].software["tf2.1"].pins
    nightlies = [summary({**pins, "keras-nightly": version}) for version in ("3.1", "3.2")]
    assert [list(plan([finding()], *both).keras_nightlies) for both in (sides, nightlies)] == [[], ["3.1", "3.2"]]


def test_both_sides_are_measured_as_the_nights_were(sides):
    ways = {
        "1 CPU, in turns": ("1", None, Clock.WALL, Protocol.TIME),
        "all CPUs, launch after launch, CPU time, the source's iterations": (
            "all",
            Interleave.LAUNCHES,
            Clock.CPU,
            Protocol.DOCUMENT,
        ),
    }
    for way, fields in ways.items():
        request = plan([finding(key=replace(KEY, way=way))], *sides).request
        assert (request.cpus, request.interleave, request.clock, request.sampling) == fields
    another = finding(key=replace(KEY, way="all CPUs, launch after launch, CPU time"))
    confirmation = plan([another], *sides, ConfirmRequest(budget=1800.0, results=Path("/elsewhere")))
    command = " ".join(confirmation.make_command(["tf2.1", "tf2.2"]))
    for words in ("--cpus all", "--interleave launches", "--clock cpu", "--budget 1800s", "-e tf2.1 -e tf2.2"):
        assert words in command
    assert "elsewhere" not in command


def test_an_environment_that_was_typed_moves_as_it_was_typed(monkeypatch):
    saved = Environment("", "2.1.0", "3.7", "2020-01-01T00:00:00Z", asked="tf2.1+six==1.14.0", base="tf2.1")
    lock = SimpleNamespace(lock=SimpleNamespace(pins={"six": "1.14.0", "numpy": "1.18.0"}))
    monkeypatch.setattr("harness.environments.adhoc.load_saved", lambda name: replace(saved, name=name))
    monkeypatch.setattr("harness.history.confirm.load_lock", lambda *_: lock)
    name = "tf2.1-six-1.14.0"
    both = [summary({"six": "1.14.0", "numpy": numpy}, environment=name) for numpy in ("1.17.5", "1.18.0")]
    confirmation = plan([finding(key=replace(KEY, environment=name))], *both)
    assert confirmation.request.environments == ["tf2.1+six==1.14.0+numpy==1.17.5", name]


def test_what_cannot_be_made_again_is_refused(snapshot):
    unknown = finding(key=replace(KEY, environment="tf-of-mine"))
    both = [summary({"numpy": numpy}, environment="tf-of-mine") for numpy in "12"]
    files = [summary({}, commit=commit, digest=digest) for commit, digest in (("0123", "1"), ("4567+", "2"))]
    cases = {
        "the same sides": ([finding()], summary({"numpy": "1"}), summary({"numpy": "1"})),
        "only a rebuilt image": ([finding()], summary({}, image="sha256:1"), summary({}, image="sha256:2")),
        "an unknown environment": ([unknown], *both),
        "another file": ([finding()], *files),
    }
    refusals = {name: read_refusal(lambda values=values: plan(*values)) for name, values in cases.items()}
    assert refusals == snapshot


def decide(slower, ratio, count=6, earlier=()):
    """Decide on a finding with a run of cells in tf1.14 and tf2.0, in which those of tf2.0 take so much longer.

    The run was judged before after the numbers `earlier` of its rounds.
    """
    planned = cells()
    seconds = {cell: 0.01 * (slower if cell.environment == "tf2.0" else 1.0) for cell in planned}
    looks = [{group.name: count for group in run(planned).plan.groups} for count in earlier]
    results = Results(run(planned, controlled=True, looks=looks), rounds(seconds, count, 0.002, 1))
    cell = next(cell for cell in planned if cell.environment == "tf2.0")
    key = Key("m-1", cell.scenario, "cpu", tuple(sorted(cell.axes.items())), "tf2.0", "tf1.14")
    confirmation = ConfirmationRun([finding(ratio, key)], Request(environments=["tf1.14", "tf2.0"]))
    ((changed, decision),) = decide_all(confirmation, results, 0.03)
    assert changed.key == key
    return decision


def test_a_run_confirms_refutes_or_leaves_open():
    confirmed, refuted = decide(1.08, 1.08), decide(1.0, 1.08)
    assert confirmed.confirmed
    assert confirmed.low < 1.08 < confirmed.high
    assert (confirmed.since, confirmed.suspects, confirmed.run) == ("run-040", ["a lock"], run().id)
    assert not refuted.confirmed
    assert decide(1.08, 1.08, count=1) is None
    # each look gets a part of the level
    again = decide(1.08, 1.08, earlier=[3])
    assert again.high / again.low > confirmed.high / confirmed.low
