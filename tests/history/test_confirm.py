"""What decides on a change, how both sides of it are made again, and what their run says."""

import math
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis.results import Results
from harness.catalog.project import Project
from harness.files import hash_files
from harness.history.confirm import (
    ConfirmationRun,
    _compute_changes,
    decide_all,
    decide_finding,
    group_findings,
    plan_confirmation,
)
from harness.history.request import ConfirmRequest
from harness.history.states import SeriesFinding, State
from harness.model.environment import Device, Environment
from harness.model.errors import UsageError
from harness.model.history import Key, MeasuredSeries, SeriesSoftware, Summary
from harness.model.launch import Clock, Interleave, Protocol
from harness.model.scenario import Cell
from harness.session.request import Request
from tests.factories import cells, rounds, run

KEY = Key("m-1", "keras_step", "cpu", (("call", "fit"),), "tf2.1", "tf1.14", way="1 CPU in turns")


def finding(ratio=1.08, key=KEY, cause="one"):
    return SeriesFinding(key, State.SUSPECTED, "run-040", "2026", ratio, 0.99 * ratio, 1.01 * ratio, ["a lock"], cause)


def summary(pins, *, commit="", name="keras_step", digest="h", image=""):
    software = {"tf2.1": SeriesSoftware("", image, pins), "tf1.14": SeriesSoftware("", "", {})}
    return Summary(
        "run-1",
        "2026",
        "1",
        commit,
        "",
        0.03,
        "1 CPU",
        "tf1.14",
        "kit",
        [],
        software,
        {name: MeasuredSeries(digest, "")},
    )


@pytest.mark.parametrize(
    ("percent", "half", "ratio", "said"),
    [
        (5.0, 1.5, 1.05, True),
        (2.5, 1.0, 1.05, None),
        (1.0, 1.0, 1.05, False),
        (0.0, 1.0, 1.05, False),
        (0.0, 9.0, 1.05, None),
        (5.0, 9.0, 1.05, None),
        (-5.0, 1.0, 1.05, False),
        (-5.0, 1.5, 0.95, True),
        (5.0, 1.0, 0.95, False),
    ],
)
def test_a_change_is_there_or_not_or_open(percent, half, ratio, said):
    log, wide = math.log1p(percent / 100.0), half / 100.0
    if said is None and percent == 2.5:
        wide = 0.03
    assert decide_finding(log, log - wide, log + wide, ratio, 0.03) is said


def test_one_run_decides_on_the_findings_of_one_cause_and_scenario():
    other = replace(KEY, axes=(("call", "train_on_batch"),))
    found = [finding(), finding(key=other), finding(key=replace(KEY, scenario="gather")), finding(cause="two")]
    assert [len(entry) for entry in group_findings(found)] == [2, 1, 1]


def pins(project: Project):
    from harness.catalog.environments import load_environments
    from harness.catalog.locks import load_lock
    from harness.model.environment import Device

    return dict(load_lock(project, load_environments(project)["tf2.1"], Device.CPU).lock.pins)


def test_another_lock_is_the_environment_with_the_packages_of_then(project):
    now = pins(project)
    before = {**now, "numpy": "1.17.5"}
    of = plan_confirmation([finding()], summary(before), summary(now), ConfirmRequest())
    assert of.sides == ("tf2.1+numpy==1.17.5", "tf2.1")
    assert of.request.environments == list(of.sides)
    assert (of.request.scenarios, of.request.axes) == (["keras_step"], {"call": ["fit"]})
    assert (of.request.rounds, of.request.cpus, of.request.gpu, of.is_file) == (10, "1", False, False)
    command = "harness matrix -s keras_step -a call=fit -e tf2.1+numpy==1.17.5 -e tf2.1 --cpus 1 --rounds 10"
    assert sorted(of.make_command()) == sorted(command.split())


def test_the_versions_of_keras_nightly_are_kept_if_they_differ(project):
    now = {**pins(project), "keras-nightly": "3.2"}
    found = [
        plan_confirmation([finding()], summary(before), summary(now), ConfirmRequest()).keras_nightlies
        for before in ({**now, "keras-nightly": "3.1"}, {**now, "numpy": "1.17.5"})
    ]
    assert list(map(list, found)) == [["3.1", "3.2"], []]


def test_all_cells_of_a_cause_are_in_one_run(project):
    now = pins(project)
    found = [finding(), finding(key=replace(KEY, axes=(("call", "train_on_batch"),)))]
    of = plan_confirmation(found, summary({**now, "numpy": "1.17.5"}), summary(now), ConfirmRequest(rounds=4))
    assert of.request.axes == {"call": ["fit", "train_on_batch"]}
    assert of.request.rounds == 4


def test_sides_that_are_the_same_are_refused():
    with pytest.raises(UsageError, match="the measured software didn't change"):
        plan_confirmation([finding()], summary({"numpy": "1"}), summary({"numpy": "1"}), ConfirmRequest())


def test_an_image_that_was_made_again_of_the_same_packages_is_named():
    with pytest.raises(UsageError, match="the image was rebuilt with the same packages"):
        plan_confirmation([finding()], summary({}, image="sha256:1"), summary({}, image="sha256:2"), ConfirmRequest())


def test_both_sides_are_measured_as_the_nights_were(project):
    now = pins(project)

    def asked(way):
        of = finding(key=replace(KEY, way=way))
        request = plan_confirmation([of], summary({**now, "numpy": "1.17.5"}), summary(now), ConfirmRequest()).request
        return request.cpus, request.interleave, request.clock, request.sampling

    assert asked("1 CPU, in turns") == ("1", None, Clock.WALL, Protocol.TIME)
    of = finding(key=replace(KEY, way="all CPUs, launch after launch, CPU time"))
    options = ConfirmRequest(budget=1800.0, results=Path("/elsewhere"))
    made = plan_confirmation([of], summary({**now, "numpy": "1.17.5"}), summary(now), options)
    command = " ".join(made.make_command(["tf2.1", "tf2.2"]))
    assert all(words in command for words in ("--cpus all", "--interleave launches", "--clock cpu", "--budget 1800s"))
    assert "-e tf2.1 -e tf2.2" in command
    assert "elsewhere" not in command
    ours = asked("all CPUs, launch after launch, CPU time, the source's iterations")
    assert ours == ("all", Interleave.LAUNCHES, Clock.CPU, Protocol.DOCUMENT)


def test_an_environment_that_was_typed_moves_as_it_was_typed(project, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.catalog.adhoc.load_saved", lambda name: replace(kept, name=name))
    kept = Environment("", "2.1.0", "3.7", "2020-01-01T00:00:00Z", asked="tf2.1+six==1.14.0", base="tf2.1")
    has = SimpleNamespace(lock=SimpleNamespace(pins={"six": "1.14.0", "numpy": "1.18.0"}))
    monkeypatch.setattr("harness.history.confirm.load_lock", lambda *_: has)
    name = "tf2.1-six-1.14.0"
    sides = (
        replace(summary({}), software={name: SeriesSoftware("", "", {"six": "1.14.0", "numpy": entry})})
        for entry in ("1.17.5", "1.18.0")
    )
    of = plan_confirmation([finding(key=replace(KEY, environment=name))], *sides, ConfirmRequest())
    assert of.sides == ("tf2.1+six==1.14.0+numpy==1.17.5", name)


def test_an_environment_that_is_not_in_the_catalogue_is_refused():
    of = finding(key=replace(KEY, environment="tf-of-mine"))
    one, other = (
        replace(summary({}), software={"tf-of-mine": SeriesSoftware("", "", {"numpy": entry})}) for entry in "12"
    )
    with pytest.raises(UsageError, match="isn't in the catalog"):
        plan_confirmation([of], one, other, ConfirmRequest())


HEADER = """# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title = "mine"
#
# [tool.harness.axes]
# size = ["small", "large"]
# ///
EXTRA = {extra}


def scenario(bench, size):
    bench.measure(lambda: None)
"""


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """A scenario in a repository, with the summaries of a run before and after its last commit."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "mine.py"

    def git(*words):
        user = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(["git", "-C", str(tmp_path), *user, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    made = []
    git("init", "-q")
    for extra in (0, 1):
        text = HEADER.format(extra=extra)
        path.write_text(text)
        git("add", "mine.py")
        git("commit", "-qm", "one")
        digest = hash_files({"mine.py": text.encode()})[:16]
        made.append(summary({}, commit=git("rev-parse", "HEAD"), name="mine", digest=digest))
    return path, *made


MINE = replace(KEY, scenario="mine", axes=(("size", "small"),))


def test_another_file_is_measured_beside_that_of_now_in_both_environments(versions):
    path, before, after = versions
    of = plan_confirmation([finding(key=MINE)], before, after, ConfirmRequest(), [path])
    (made,) = map(Path, of.request.scenarios)
    assert made.name == "mine_side_by_side.py"
    assert "EXTRA = 0" in (made.parent / "base" / "mine.py").read_text()
    assert "EXTRA = 1" in (made.parent / "head" / "mine.py").read_text()
    assert (of.request.environments, of.is_file) == (["tf2.1", "tf1.14"], True)
    command = " ".join(of.make_command())
    assert "-s mine " in command
    assert command.endswith(f"--base {before.commit} --head {after.commit}")
    # a changed file is in no commit
    of = plan_confirmation(
        [finding(key=MINE)], before, replace(after, commit=f"{after.commit}+"), ConfirmRequest(), [path]
    )
    assert of.make_command() == []


def test_another_file_with_another_lock_is_set_against_the_old_with_the_old(versions, project):
    path, before, after = versions
    now = pins(project)
    software = [{"tf2.1": SeriesSoftware("", "", value)} for value in ({**now, "numpy": "1.17.5"}, now)]
    sides = (replace(each, software=of) for each, of in zip((before, after), software, strict=True))
    of = plan_confirmation([finding(key=MINE)], *sides, ConfirmRequest(), [path])
    assert (of.sides, of.is_file) == (("tf2.1+numpy==1.17.5", "tf2.1"), True)
    assert of.request.environments == ["tf2.1+numpy==1.17.5", "tf2.1", "tf1.14"]
    assert of.request.scenarios[0].endswith("mine_side_by_side.py")


def test_what_decides_of_file_and_lock_is_new_with_new_against_old_with_old():
    times = {("old", "base"): 1.0, ("old", "head"): 5.0, ("new", "base"): 7.0, ("new", "head"): 3.0}
    times |= {("ref", "base"): 1.0, ("ref", "head"): 1.5}
    made = {Cell("mine", name, Device.CPU, {"side": side}): {1: time} for (name, side), time in times.items()}
    found = SimpleNamespace(cells=list(made), series=made)
    key = Key("m-1", "mine", "cpu", (), "new", "ref")
    of = ConfirmationRun([finding(key=key)], Request(), ("old", "new"), is_file=True)
    assert _compute_changes(of, of.findings[0], SimpleNamespace(found=found)) == pytest.approx([math.log(3.0 / 1.5)])


def test_a_file_that_is_nowhere_is_refused(versions):
    path, before, after = versions
    gone = replace(before, scenarios={"mine": MeasuredSeries("0" * 16, "")})
    with pytest.raises(
        UsageError,
        match=r"The file of the scenario mine, as it was in run-1, was not found",
    ):
        plan_confirmation([finding(key=MINE)], gone, after, ConfirmRequest(), [path])


def results(slower, count=6, noise=0.002):
    """A run of cells in tf1.14 and tf2.0, in which one of tf2.0 takes so much longer."""
    planned = cells()
    seconds = {entry: 0.01 * (slower if entry.environment == "tf2.0" else 1.0) for entry in planned}
    return Results(run(planned, controlled=True), rounds(seconds, count, noise, 1)), planned


def decide(slower, ratio, count=6):
    of_run, planned = results(slower, count)
    cell = next(entry for entry in planned if entry.environment == "tf2.0")
    key = Key("m-1", cell.scenario, "cpu", tuple(sorted(cell.axes.items())), "tf2.0", "tf1.14")
    asked = ConfirmationRun([finding(ratio, key)], Request(), ("tf1.14", "tf2.0"), is_file=False)
    ((of, decision),) = decide_all(asked, of_run, 0.03)
    assert of.key == key
    return decision


def test_a_run_confirms_refutes_or_leaves_open():
    confirmed, refuted = decide(1.08, 1.08), decide(1.0, 1.08)
    assert confirmed is not None
    assert confirmed.confirmed
    assert confirmed.low < 1.08 < confirmed.high
    assert (confirmed.since, confirmed.suspects, confirmed.run) == ("run-040", ["a lock"], results(1.0)[0].run.id)
    assert refuted is not None
    assert not refuted.confirmed
    assert decide(1.08, 1.08, count=1) is None
