"""`harness matrix`, from the command line to the report."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.cli import main
from tests.cli.conftest import NOWHERE, Harness
from tests.commands import read_until
from tests.lacking import for_a_campaign

FINE = ("-s", "ways", "-a", "way=fine")


@pytest.mark.slow
def test_one_command_measures_and_reports(harness):
    process = harness.matrix(*FINE, "--rounds", "3", "--json")
    assert process.returncode == 0, process.stderr
    assert f"Report: {harness.run.relative_to(harness.root)}/report.md" in process.stderr
    stored = harness.launches
    assert [json.loads(line) for line in process.stdout.splitlines() if '"attempt":0' in line] == stored
    roles = Counter((launch["round"], launch["role"]) for launch in stored)
    rounds = {(number, role): count for number in (1, 2, 3) for role, count in (("measure", 2), ("control", 1))}
    assert roles == {(0, "pilot"): 2, **rounds}
    assert "new vs old" in (harness.run / "report.md").read_text()
    run = json.loads((harness.run / "run.json").read_text())
    assert run["machine"] == json.loads((Path(os.environ["HARNESS_DATA_DIR"]) / "machine.json").read_text())
    assert run["own"].keys() == run["sources"].keys()
    assert run["kit"] not in ("", *run["own"].values(), *run["sources"].values())
    assert run["command"][:2] == ["harness", "matrix"]
    assert (run["plan"]["seed"], run["reference"], run["backend"]["name"]) == (1, "old", "local")
    assert len(run["plan"]["limits"]["cpus"]) == 1
    plan = harness.call("matrix", *FINE, "--rounds", "1", "--backend", "local", "--dry-run").stdout
    assert f": estimated from {harness.run.name}." in plan


@pytest.mark.slow
def test_a_scenario_that_misbehaves_gets_its_status_and_the_others_run_on(harness):
    errors = {"raises": "a | pipe and", "exits": "sys.exit", "killed": "SIGKILL", "garbage": "garbage"}
    ways = ",".join(["fine", "prints", *errors])
    process = harness.matrix("-s", "ways", "-a", f"way={ways}", "--rounds", "2", "--fail-on", "slower")
    assert process.returncode == 1, process.stderr
    statuses = {way: {launch["status"] for launch in harness.launches if _way(launch) == way} for way in errors}
    assert statuses == {way: {"failed"} for way in errors}
    for way, error in errors.items():
        failures = [launch for launch in harness.launches if _way(launch) == way]
        assert {launch["cell"]["environment"] for launch in failures} == {"old", "new"}
        assert {launch["round"] for launch in failures} <= {0, 1}, "not again after its first launch"
        assert all(error in str(launch["error"]) for launch in failures)
    others = [launch for launch in harness.launches if launch["round"] and _way(launch) not in errors]
    assert {launch["status"] for launch in others} == {"ok"}
    rounds = {(_way(launch), launch["cell"]["environment"], launch["round"]) for launch in others}
    assert rounds == set(itertools.product(("fine", "prints"), ("old", "new"), (1, 2)))
    # megabytes of output aren't kept
    assert (harness.run / "launches.jsonl").stat().st_size < 400_000
    report = (harness.run / "report.md").read_text()
    assert "failed" in report
    assert "\033" not in report + process.stdout


def _way(launch: dict[str, dict[str, dict[str, str]]]) -> str:
    return launch["cell"]["axes"]["way"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals", [[signal.SIGINT] * 2, *for_a_campaign([signal.SIGTERM], [signal.SIGHUP])], ids=["INT", "TERM", "HUP"]
)
def test_an_interruption_ends_cleanly(harness, signals):
    process = harness.start("matrix", "-s", "ways", "-a", "way=fine,endless", "-e", "old", "--backend", "local")
    read_until(process.stderr, "[1/")
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)  # what Ctrl-C reaches twice, through a wrapper, is one interruption
    _, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert "To continue: harness matrix --resume" in stderr
    assert (harness.run / "report.md").exists(), stderr
    assert harness.launches
    assert _list_scratch(harness) == []


@pytest.mark.slow
def test_what_a_run_that_goes_on_has_is_not_cleaned_away(harness, tmp_path):
    process = harness.start("matrix", "-s", "ways", "-a", "way=fine,endless", "-e", "old", "--backend", "local")
    try:
        read_until(process.stderr, "[1/")
        elsewhere = {"HARNESS_MACHINE_LOCK": str(tmp_path / "other.lock"), **NOWHERE}
        refused = harness.call("clean", str(harness.run), **elsewhere)
        assert (refused.returncode, f" process {process.pid}, " in refused.stderr) == (4, True)
        assert "and 0 scratch folders" in harness.call("clean", **elsewhere).stdout
        assert _list_scratch(harness) != []
    finally:
        process.kill()
        process.communicate()
    assert "and 1 scratch folders" in harness.call("clean", str(harness.run), **NOWHERE).stdout


def _list_scratch(harness: Harness) -> list[str]:
    """What launches of the run left: their folders, and processes that still work in one."""
    folder = Path(os.environ["HARNESS_CACHE_DIR"]) / "scratch" / harness.run.name
    working = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            working.append(str(process.readlink()))
    return [*(str(path) for path in folder.glob("*")), *(path for path in working if path.startswith(str(folder)))]


def test_a_signal_during_a_report_is_answered(monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["harness", "report", "results/run"])
    for number in (signal.SIGTERM, signal.SIGHUP):
        monkeypatch.setattr(
            "harness.session.read_in_place", lambda *_, number=number: signal.raise_signal(number), raising=False
        )
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == 130
        assert capfd.readouterr().err == "\nharness: interrupted.\n"


@pytest.mark.usefixtures("instant")
@pytest.mark.parametrize(
    "second",
    [
        ("harness.backends.local.backend.LocalBackend.clean", signal.SIGINT),
        ("harness.session.running.report", signal.SIGTERM),
    ],
    ids=["INT in removal", "TERM in report"],
)
def test_a_second_interruption_abandons_the_report_and_says_how_to_make_it(
    harness, second, monkeypatch, capfd, snapshot
):
    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(second[1])

    monkeypatch.setattr("sys.argv", ["harness", "matrix", *FINE, "--rounds", "1", "--backend", "local"])
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    monkeypatch.setattr("harness.cli.messages.ECHO_SECONDS", 0.0)
    monkeypatch.setattr("harness.runner.launching.Launching.turn", interrupt)
    monkeypatch.setattr(second[0], interrupt)
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 130
    lines = capfd.readouterr().err.replace(harness.run.name, "RUN").splitlines()
    assert [line for line in lines if "the report" in line or "To continue" in line] == snapshot
    assert not (harness.run / "report.md").exists()
    assert _list_scratch(harness) == []


def test_a_plan_tells_what_is_measured_and_built_and_how_long_it_takes(harness, snapshot):
    cache = {"HARNESS_CACHE_DIR": str(harness.root / "cache")}
    precise = [*FINE, "--precision", "2%", "--budget", "10m", "--margin", "5%", "--reference", "new"]
    plans = {}
    for case, options in (
        ("all", ["-s", "ways", "--backend", "local"]),
        ("until it is precise", [*precise, "--backend", "local"]),
        ("without an engine", [*FINE, "--rounds", "1", "--backend", "docker"]),
    ):
        process = harness.call("matrix", *options, "--dry-run", **cache, **NOWHERE)
        assert process.returncode == 0, process.stderr
        plans[case] = process.stdout.splitlines()
    assert plans == snapshot
    assert not (harness.root / "results").exists()


def test_a_plan_has_as_few_rounds_as_the_history_needs(harness, monkeypatch):
    monkeypatch.setattr("harness.history.rounds.plan_rounds", lambda plan, *_: {plan.groups[0].name: 1})
    options = (*FINE, "--rounds", "3", "--backend", "local", "--dry-run")
    whole, short = (harness.call("matrix", *options, *more).stdout for more in ((), ("--history-rounds",)))
    assert (": 11 launches." in whole, ": 5 launches." in short) == (True, True)
    seconds = [
        json.loads(harness.call("matrix", *options, "--json", *more).stdout)["outlook"]["seconds"]
        for more in (("--rounds", "1"), ("--history-rounds",))
    ]
    assert seconds[0] == seconds[1]
