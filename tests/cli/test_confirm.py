"""`harness history confirm`: nights in which one package of a lock moved, and both locks measured side by side."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from harness.bisect.request import BisectRequest
from harness.bisect.search import EqualEndpointsError
from harness.cli import app
from harness.cli import confirm as confirming
from harness.history import summary
from harness.history.confirm import ConfirmationRun
from harness.history.folder import History
from harness.history.request import ConfirmRequest
from harness.history.states import SeriesFinding, State
from harness.model.history import Decision, Key, SeriesSoftware
from harness.session import read
from harness.session.request import Request
from tests.cli.conftest import Harness
from tests.packageindex import PackageIndex, make_lock, serving

SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "What takes as long as a package says"
# ///
import time

import speed


def scenario(bench):
    bench.measure(lambda: time.sleep(speed.SECONDS))
"""

SHORT = ("--backend", "local", "--warmup", "1ms", "--measure", "10ms", "--rounds", "2")

RELEASES = {"old": "1.0.0", "new": "2.0.0"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """An index with releases that need the package speed: 2.0 takes longer than 1.0, and 3.0 as long as 2.0."""
    with serving(tmp_path / "index") as index:
        for name in ("setuptools-60.0", "wheel-0.37"):
            index.add(f"{name}-py3-none-any")
        for version in RELEASES.values():
            index.add(f"tensorflow-{version}-py3-none-any", requires=["speed"])
        for version, seconds in (("1.0", 0.01), ("2.0", 0.04), ("3.0", 0.04)):
            index.add(f"speed-{version}-py3-none-any", text=f"SECONDS = {seconds}\n")
        for name, value in index.environ.items():
            monkeypatch.setenv(name, value)
        yield index


@pytest.fixture
def command(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command, in a project whose releases have locks."""
    (harness.root / "scenarios" / "waits.py").write_text(SCENARIO)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.setenv("HARNESS_MACHINE_ID", "one")
    monkeypatch.chdir(harness.root)

    def call(*words: str) -> Result:
        result = CliRunner().invoke(app, [*words])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


def lock(index: PackageIndex, name: str, speed: str) -> None:
    """Write the lock of a release with a version of the package speed."""
    pins = ("setuptools-60.0", f"speed-{speed}", f"tensorflow-{RELEASES[name]}", "wheel-0.37")
    files = [index.folder / f"{pin}-py3-none-any.whl" for pin in pins]
    Path("images", "locks", f"{name}-cpu.txt").write_text(make_lock(*files))


def add_nights(environments: dict[str, dict[int, SeriesSoftware]]) -> None:
    """Add eight nights like the one that is measured, with this software; from the fifth on, one is slower."""
    (folder,) = Path("results").iterdir()
    measured = summary.load_summary(folder)
    for night in range(1, 9):
        day = f"2022-03-{night:02}"
        middle = (math.log(4.0) if night > 4 else 0.0) + 0.001 * (night % 3)
        ratio = {"ratio": middle, "low": middle - 0.01, "high": middle + 0.01, "rounds": 5}
        points = [point._replace(**ratio) if point.reference else point for point in measured.points]
        software = {**measured.software, **{name: versions[night] for name, versions in environments.items()}}
        started = {"run": f"{day}T04-10-00Z-aaaa", "started": f"{day}T04:10:00+00:00"}
        assert History.open().add(replace(measured, **started, software=software, points=points))


@pytest.mark.slow
def test_the_old_lock_is_measured_against_the_new_and_the_change_confirmed(command, index):
    """Up to the fourth night, `new` had another version of speed."""
    lock(index, "old", "1.0")
    lock(index, "new", "2.0")
    result = command("matrix", "-e", "old,new", "-s", "waits", *SHORT)
    assert result.exit_code == 0, result.stderr
    (measured,) = Path("results").iterdir()
    new = summary.load_summary(measured).software["new"]
    nights = {night: "1.0" if night < 5 else "2.0" for night in range(1, 9)}
    software = {night: replace(new, lock=speed, pins={**new.pins, "speed": speed}) for night, speed in nights.items()}
    add_nights({"new": software})
    result = command("history", "confirm", "--all-suspected", *SHORT)
    assert result.exit_code == 5, result.stderr
    assert re.search(r"^Confirmed: waits new cpu takes [345]\.\d+×", result.stdout), result.stdout
    (folder,) = (path for path in Path("results").iterdir() if path.name in result.stdout)
    run = read(folder).run
    assert [environment.name for environment in run.environments] == ["new-speed-1.0", "new"]
    assert [run.pins[name]["speed"] for name in ("new-speed-1.0", "new")] == ["1.0", "2.0"]
    assert "waits new cpu, since 2022-03-05T04-10-00Z-aaaa: confirmed" in command("history", "list").stdout
    # what is confirmed is not asked again
    assert command("history", "confirm", "--all-suspected").stderr == "No change is suspected.\n"


@pytest.mark.slow
def test_an_unclear_result_gets_more_rounds_in_the_same_run_up_to_a_limit(command, index, monkeypatch):
    monkeypatch.setattr("harness.cli.confirm.MOST_CONFIRM_ROUNDS", 4)
    lock(index, "old", "1.0")
    lock(index, "new", "3.0")
    assert command("matrix", "-e", "old,new", "-s", "waits", *SHORT).exit_code == 0
    (measured,) = Path("results").iterdir()
    new = summary.load_summary(measured).software["new"]
    nights = {night: "2.0" if night < 5 else "3.0" for night in range(1, 9)}
    add_nights({"new": {night: replace(new, pins={**new.pins, "speed": speed}) for night, speed in nights.items()}})
    # both take as long, but a few rounds can show a difference by chance
    monkeypatch.setattr("harness.history.confirm.decide_finding", lambda *_: None)
    result = command("history", "confirm", "--all-suspected", *SHORT, "--budget", "5m")
    assert result.exit_code == 1, result.stderr
    (folder,) = set(Path("results").iterdir()) - {measured}
    run = read(folder).run
    assert (run.plan.rounds, [stop.rounds for stop in run.stops.values()]) == (4, [4])
    assert 0.0 < run.plan.budget_seconds <= 300.0
    assert not History.open().decisions()


@pytest.mark.slow
def test_the_wheels_of_a_line_are_measured_side_by_side_and_searched_for_the_first_slower_one(
    command, index, monkeypatch
):
    monkeypatch.setattr("harness.bisect.probe.SEARCH_WARMUP", 0.001)
    monkeypatch.setattr("harness.bisect.probe.SEARCH_MEASURE", 0.02)
    scenario = Path("scenarios", "waits.py")
    scenario.write_text(scenario.read_text().replace("import speed", "import tf_nightly_cpu as speed"))
    wheels = {day: f"tf-nightly-cpu==2.9.0.dev202203{day:02}" for day in range(1, 9)}
    for day in wheels:
        name = f"tf_nightly_cpu-2.9.0.dev202203{day:02}-py3-none-any"
        index.add(name, f"2022-03-{day:02}T20:00:00Z", text=f"SECONDS = {0.01 if day < 4 else 0.04}\n")
    result = command("matrix", "-e", wheels[1], "-e", "tf-nightly-cpu", "-s", "waits", *SHORT)
    assert result.exit_code == 0, result.stderr
    (run,) = Path("results").iterdir()
    software = summary.load_summary(run).software["tf-nightly-cpu"]
    assert software.version == wheels[8]
    # the wheel is slower from the fourth day on
    lines = {
        day: replace(
            software, lock=wheel, version=wheel, pins={**software.pins, "tf-nightly-cpu": wheel.partition("==")[2]}
        )
        for day, wheel in wheels.items()
    }
    add_nights({"tf-nightly-cpu": lines})
    result = command("history", "confirm", "--all-suspected", *SHORT[:-1], "3")
    assert result.exit_code == 5, result.stderr
    assert f"The change is between {wheels[3]} and {wheels[4]}" in result.stdout, result.stderr
    issue = command("history", "alarm").stdout
    (repetition,) = (line for line in issue.splitlines() if line.startswith("harness matrix"))
    assert f"-e {wheels[3]} -e {wheels[4]}" in repetition
    # as the confirmation was measured, without options of its machine
    assert all(words in repetition for words in ("-s waits", "--rounds 3"))
    assert "--backend" not in repetition
    # the function that takes longer comes first
    assert re.search(r"after, ms per step.*\n.*\n\|[^\n]*sleep[^\n]*\|", issue), issue
    # the points of the line show their versions
    assert wheels[5] in command("history", "show", "--points", "-e", "tf-nightly-cpu").stdout


@pytest.fixture
def confirm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Confirm changes of a release line. Nothing is measured: each change on this machine is slower."""
    monkeypatch.setenv("HARNESS_MACHINE_ID", "one")

    def decide(question: ConfirmationRun, *_: object) -> list[tuple[SeriesFinding, Decision]]:
        when = "2026-10-09T04:10:00+00:00"
        return [
            (
                finding,
                Decision(finding.key, finding.since, [], True, "run-9", when, 4.0, 3.9, 4.1, versions=["x==1", "x==8"]),
            )
            for finding in question.findings
        ]

    def plan(members: list[SeriesFinding], *_: object) -> ConfirmationRun:
        return ConfirmationRun(members, Request(environments=["x==1", "x==8"]))

    results = SimpleNamespace(launches=[], run=SimpleNamespace(stops={}))
    completed = SimpleNamespace(interrupted=False, results=results, folder=Path("results/run-9"))
    monkeypatch.setattr("harness.history.confirm.find_sides", lambda *_: (None, None))
    monkeypatch.setattr("harness.history.confirm.plan_confirmation", plan)
    monkeypatch.setattr("harness.history.confirm.decide_all", decide)
    monkeypatch.setattr("harness.session.plan", lambda _: None)
    monkeypatch.setattr("harness.session.run", lambda *_, **__: completed)
    monkeypatch.setattr("harness.cli.confirm._locate_change", lambda *_, **__: {})
    monkeypatch.setattr("harness.cli.confirm._profile_change", lambda *_, **__: {})

    def call(*machines: str, state: State = State.SUSPECTED) -> int:
        keys = [Key(machine, "waits", "cpu", (), "tf-nightly", "old") for machine in machines]
        run, day = "2026-10-05T04-10-00Z-aaaa", "2026-10-05"
        findings = [SeriesFinding(key, state, run, day, 4.0, 3.9, 4.1, [], key.machine) for key in keys]
        return confirming.confirm(History.open(), findings, ConfirmRequest(), [], wait=False)

    return call


def test_a_confirmed_slowdown_determines_the_exit_code_though_another_change_is_undecided(confirm):
    codes = {machines: confirm(*machines) for machines in (("another", "one"), ("one", "another"), ("another",))}
    assert codes == {("another", "one"): 5, ("one", "another"): 5, ("another",): 1}


def test_what_only_the_screen_found_is_likely_and_its_wheel_is_not_searched_yet(confirm, monkeypatch, capsys):
    monkeypatch.setattr("harness.cli.confirm._locate_change", lambda *_, **__: pytest.fail("searched"))
    assert confirm("one", state=State.WATCH) == 5
    assert capsys.readouterr().out.startswith("Likely, until a second run confirms it: ")


def test_a_decision_stays_though_the_command_is_killed_during_the_search(confirm, monkeypatch):
    def kill(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr("harness.cli.confirm._locate_change", kill)
    with pytest.raises(SystemExit):
        confirm("one")
    assert [decision.confirmed for decision in History.open().decisions()] == [True]


def test_a_decision_with_the_result_of_its_search_replaces_the_one_without_it(confirm, monkeypatch):
    monkeypatch.setattr("harness.cli.confirm._locate_change", lambda *_, **__: {"pair": ["x==3", "x==4"]})
    assert confirm("one") == 5
    listed = CliRunner().invoke(app, ["history", "list"]).stdout
    assert re.findall(r"confirmed, .*", listed) == [
        "confirmed, 4.000× (3.900 to 4.100) side by side, between x==3 and x==4 (run-9)"
    ]


def test_a_nightly_that_its_keras_made_slower_is_searched_among_the_versions_of_keras(monkeypatch, tmp_path):
    wheels = ["tf-nightly==2.23.0.dev1", "tf-nightly==2.23.0.dev6"]
    searches: list[tuple[str, str, str]] = []

    def bisect(request: BisectRequest, *_: object, **__: object) -> object:
        assert request.gpu
        searches.append((request.good, request.bad, request.package))
        if len(searches) == 1:
            raise EqualEndpointsError("They take equally long.", "")
        search = SimpleNamespace(
            posterior=SimpleNamespace(likeliest=(0, 1), share=0.97), ends=True, text=lambda number: searches[-1][number]
        )
        return SimpleNamespace(search=search, commits=["link"])

    monkeypatch.setattr(confirming, "bisect", bisect)
    monkeypatch.setattr(confirming, "create_folder", lambda _: tmp_path)
    key = Key("one", "waits", "cpu", (), "tf-nightly", "old")
    finding = SeriesFinding(key, State.SUSPECTED, "run", "2026", 4.0, 3.9, 4.1, [], "")
    request = Request(scenarios=["waits"], environments=wheels, gpu=True)
    decision = Decision(key, "run", [], True, "run-9", "2026", 4.0, 3.9, 4.1, versions=wheels)
    for keras in (("3.1.dev1", "3.2.dev2"), ()):
        searches.clear()
        question = ConfirmationRun([finding], request, versions=wheels, keras_nightlies=keras)
        location = confirming._locate_change(decision, question, ConfirmRequest(), wait=False)
        # the slower wheel was installed with the newer version, so it is an end itself
        ends = [f"{wheels[1]}+keras-nightly=={keras[0]}", wheels[1]] if keras else []
        assert searches == [(*wheels, ""), *([(*ends, "keras-nightly")] if ends else [])]
        assert location.get("pair", []) == ends
        assert location.get("commits", []) == (["link"] if ends else [])
