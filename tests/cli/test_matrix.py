"""`harness matrix`, from the command line to the report."""

import contextlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.cli import main
from harness.model.launch import Job, Outcome, Sample, Status
from tests.cli.conftest import NOWHERE, SCENARIO, Harness

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
def test_an_endless_launch_is_ended_after_its_timeout(harness):
    # a busy machine takes seconds to start the others
    options = ("--rounds", "1", "--timeout", "5s")
    process = harness.matrix("-s", "ways", "-a", "way=fine,endless", "-e", "old", *options)
    assert process.returncode == 1, process.stderr
    assert {(_way(launch), launch["status"]) for launch in harness.launches} == {("fine", "ok"), ("endless", "timeout")}


@pytest.mark.slow
def test_a_gate_that_judged_nothing_fails_and_cells_that_are_not_available_do_not(harness, instant):
    selection = ("-s", "ways", "-a", "way=fine,signals", "--rounds", "1", "--warmup", "1ms", "--measure", "5ms")
    process = harness.call("matrix", *selection, "--fail-on", "slower", **NOWHERE)
    assert (process.returncode, "--fail-on" in process.stderr) == (3, True)
    (line,) = [line for line in process.stderr.splitlines() if line.startswith("Backend: ")]
    assert "local environments, because Docker Engine does not answer at DOCKER_HOST" in line
    assert "no release does this" in (harness.run / "report.md").read_text()
    assert len(instant.jobs) == 3, "a round with its control; a pilot would find out nothing"


@pytest.mark.slow
def test_a_budget_ends_the_run_and_a_slower_cell_fails_the_gate(harness, instant):
    def answer(job: Job) -> Outcome:
        step = 0.02 if job.cell.environment == "old" else 0.01
        noise = 1.0 + 0.001 * (len(instant.jobs) % 3)
        return Outcome(Status.OK, samples=[Sample(100 * step * noise, 100)], calls_per_sample=100)

    instant.answer = answer
    options = ("--backend", "local", "--reference", "new", "--warmup", "1ms", "--measure", "5ms")
    process = harness.call("matrix", *FINE, *options, "--budget", "1ms")
    assert process.returncode == 0, process.stderr
    assert {launch["round"] for launch in harness.launches} == {0, 1}
    run = json.loads((harness.run / "run.json").read_text())
    assert run["reference"] == "new"
    assert run["stops"] == {"ways cpu way=fine speed=fast": {"reason": "budget", "rounds": 1}}
    assert "budget" in (harness.run / "report.md").read_text()
    assert harness.call("matrix", *FINE, *options, "--rounds", "4", "--fail-on", "slower").returncode == 5


def test_a_results_folder_that_cannot_be_written_is_said_before_the_first_launch(harness):
    (harness.root / "results").write_text("a file is in the way")
    process = harness.call("matrix", *FINE, "--backend", "local")
    assert (process.returncode, "results" in process.stderr) == (4, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGINT, signal.SIGINT],
        *(pytest.param([number], marks=pytest.mark.campaign) for number in (signal.SIGTERM, signal.SIGHUP)),
    ],
    ids=["INT", "TERM", "HUP"],
)
def test_an_interruption_ends_cleanly(harness, signals):
    process = harness.start("matrix", "-s", "ways", "-a", "way=fine,endless", "-e", "old", "--backend", "local")
    _wait_for(process, "[1/")
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
        _wait_for(process, "[1/")
        elsewhere = {"HARNESS_MACHINE_LOCK": str(tmp_path / "other.lock"), **NOWHERE}
        refused = harness.call("clean", str(harness.run), **elsewhere)
        assert (refused.returncode, f" process {process.pid}, " in refused.stderr) == (4, True)
        assert "and 0 scratch folders" in harness.call("clean", **elsewhere).stdout
        assert _list_scratch(harness) != []
    finally:
        process.kill()
        process.communicate()
    assert "and 1 scratch folders" in harness.call("clean", str(harness.run), **NOWHERE).stdout


def _wait_for(process: "subprocess.Popen[str]", start: str) -> None:  # type: ignore[name-defined]
    """Read the process's stderr up to a line that starts so."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(start):
            return
    raise AssertionError("".join(lines))


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


def test_several_environments_and_scenarios_stand_in_one_option(harness):
    process = harness.call(
        "matrix", "-s", "ways,ways", "-e", "new,old", *FINE[2:], "--dry-run", "--json", "--seed", "5"
    )
    plan = json.loads(process.stdout)
    assert (plan["reference"], plan["seed"]) == ("new", 5)
    assert [entry["cell"] for entry in plan["cells"]] == ["ways new fine fast", "ways old fine fast"]


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


@pytest.mark.slow
def test_what_a_scenario_raised_is_shown_with_its_place_and_a_command_that_shows_it_again(harness):
    by_hand = 'if __name__ == "__main__":\n    from kit import main\n\n    main(scenario)\n'
    (harness.root / "scenarios" / "ways.py").write_text(f"{SCENARIO}\n\n{by_hand}")
    process = harness.matrix("-s", "ways", "-a", "way=raises", "-a", "malloc=keep", "-e", "old", "--rounds", "1")
    assert process.returncode == 1
    number = SCENARIO.split("\n").index('        raise ValueError("a | pipe and \\033[31mcolour")') + 1
    lines = process.stderr.splitlines()
    at = lines.index(rf"scenarios/ways.py:{number}: in scenario: ValueError: a | pipe and \x1b[31mcolour")
    # the scenario's cells differ in a setting only, which the script doesn't have
    bundle = harness.call(*shlex.split(lines[at + 2])[1:])
    assert bundle.returncode == 0, bundle.stderr
    script = harness.root / bundle.stdout.strip()
    assert script.name == "repro.py"
    repetition = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert "ValueError: a | pipe and" in repetition.stderr


def test_a_module_that_is_missing_is_to_be_added_to_its_environment(harness):
    (harness.root / "scenarios" / "ways.py").write_text(f"{SCENARIO}\nimport no_such_module\n")
    lengths = ("--warmup", "1ms", "--measure", "5ms", "--rounds", "1", "--backend", "local")
    assert harness.call("matrix", *FINE, "-e", "old", *lengths).returncode == 1
    (launch,) = harness.launches
    assert "no_such_module" in launch["advice"]
    assert "-e old+PACKAGE==VERSION" in launch["advice"]


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cores_are_an_axis_of_which_the_report_shows_the_speed_up(harness):
    process = harness.matrix(*FINE, "-e", "old", "-a", "cpus=1,2", "--rounds", "3")
    assert process.returncode == 0, process.stderr
    measured = [launch for launch in harness.launches if launch["round"]]
    cpus = {(launch["cell"]["axes"]["cpus"], launch["resources"]["steady_own_cpus"]) for launch in measured}
    assert cpus == {("1", 1), ("2", 2)}
    report = (harness.run / "report.md").read_text()
    assert "## Scaling over cores" in report
    assert "pinned to 1 or 2 of 2 cores" in report
