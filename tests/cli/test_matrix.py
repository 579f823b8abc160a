"""`harness matrix`, used as a user uses it: real processes in real local environments."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.store.folder import RunFolder
from tests.cli.conftest import NOWHERE, SCENARIO, Harness


def test_one_command_measures_and_reports(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    assert "Backend: local environments, because of --backend local." in done.stderr
    assert f"Report: {harness.run.relative_to(harness.root)}/report.md" in done.stderr
    stored = harness.launches
    roles = Counter((launch["round"], launch["role"]) for launch in stored)
    rounds = {(number, role): count for number in (1, 2, 3) for role, count in (("measure", 2), ("control", 1))}
    assert roles == {(0, "pilot"): 2, **rounds}
    assert "new vs old" in (harness.run / "report.md").read_text()
    assert done.stdout.startswith("Ways to end: TensorFlow")
    run = json.loads((harness.run / "run.json").read_text())
    assert run["machine"] == json.loads((Path(os.environ["HARNESS_DATA_DIR"]) / "machine.json").read_text())
    assert run["own"].keys() == run["sources"].keys()
    assert run["kit"] not in ("", *run["own"].values(), *run["sources"].values())
    assert run["command"][:2] == ["harness", "matrix"]
    assert (run["plan"]["seed"], run["reference"], run["backend"]["name"]) == (1, "old", "local")
    assert len(run["plan"]["limits"]["cpus"]) == 1


@pytest.mark.parametrize(
    ("status", "errors", "timeout"),
    [
        ("failed", {"raises": "a | pipe and", "exits": "sys.exit", "killed": "SIGKILL", "garbage": "garbage"}, "60s"),
        # a busy machine takes seconds to start the others
        ("timeout", {"endless": ""}, "5s"),
    ],
)
def test_a_scenario_that_misbehaves_gets_its_status_and_the_others_run_on(
    harness: Harness, status: str, errors: Mapping[str, str], timeout: str
) -> None:
    ways = ",".join(["fine", *errors])
    done = harness.matrix("-s", "ways", "-a", f"way={ways}", "--rounds", "2", "--timeout", timeout)
    assert done.returncode == 1, done.stderr
    stored = harness.launches
    for way, error in errors.items():
        broken = [launch for launch in stored if launch["cell"]["axes"]["way"] == way]
        assert {launch["status"] for launch in broken} == {status}
        assert {launch["cell"]["environment"] for launch in broken} == {"old", "new"}
        assert {launch["round"] for launch in broken} <= {0, 1}, "not again after its first launch"
        assert all(error in str(launch["error"]) for launch in broken)
    assert len([launch for launch in stored if launch["status"] == "ok"]) == 2 + 2 * 3, (
        "a pilot, and rounds with their control"
    )
    report = (harness.run / "report.md").read_text()
    assert status in report
    assert "\033" not in report + done.stdout


def test_megabytes_of_output_change_nothing(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=prints", "-e", "old", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert (harness.run / "launches.jsonl").stat().st_size < 200_000


def test_what_no_environment_can_do_is_not_available_and_no_failure(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine,signals", "--rounds", "1")
    assert done.returncode == 0
    assert "no release does this" in (harness.run / "report.md").read_text()
    assert len(harness.launches) == 3, "a round with its control; a pilot would find out nothing"


def test_a_run_of_which_nothing_can_be_measured_is_refused_before_anything_is_made(harness: Harness) -> None:
    asked = ("-s", "ways", "-a", "way=signals", "--rounds", "1")
    done = harness.matrix(*asked, HARNESS_CACHE_DIR=str(harness.root / "c"))
    assert done.returncode == 4
    assert "Nothing can be measured: none of the 2 cells is available. ways old signals fast: no release" in done.stderr
    assert not list((harness.root / "results").glob("*"))
    assert not (harness.root / "c" / "environments").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-s", "ways", "-e", "odl"], 2, ["Unknown environment: 'odl'", "Did you mean old?", "old, new"]),
        (["-s", "way"], 2, ["Unknown scenario: 'way'", "Did you mean ways?"]),
        (["-s", "ways", "-a", "sped=fast"], 2, ["Unknown axis: 'sped'", "Did you mean speed?"]),
        (["-s", "ways", "-a", "way=fin"], 2, ["Unknown value of the axis way: 'fin'", "Did you mean fine?"]),
        (["-s", "ways", "-a", "way"], 2, ["AXIS=VALUE"]),
        (["--suite", "nightly"], 2, ["Unknown suite: 'nightly'"]),
        (["-s", "ways", "--cpus", "512"], 2, ["--cpus 512"]),
        (["-s", "ways", "--measure", "soon"], 2, ["Invalid --measure 'soon': expected a length of time"]),
        (["-s", "ways", "--rounds", "0"], 2, ["--rounds"]),
        (["-s", "ways", "--reference", "middle"], 2, ["the environments of the run are old, new"]),
        (["--resume", "results/none", "--margin", "9%"], 2, ["it doesn't accept --margin"]),
        (["--resume", "results/none", "-e", "old", "-s", "ways", "-a", "way=fine"], 2, ["doesn't accept -e, -s, -a."]),
        (["-s", "none.py"], 2, ["none.py cannot be read"]),
        (["--resume", "results/none"], 2, ["isn't the folder of a run"]),
    ],
)
def test_a_wrong_command_line_gets_a_sentence_and_its_exit_code(
    harness: Harness, arguments: list[str], code: int, words: list[str]
) -> None:
    done = harness("matrix", *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    assert not (harness.root / "results").exists()


def test_a_selection_that_leaves_no_cell_says_which_filter_emptied_it(harness: Harness) -> None:
    (harness.root / "scenarios" / "suites.toml").write_text(
        '[few]\n[[few.select]]\nscenario = "ways"\nway = ["fine"]\n'
    )
    done = harness("matrix", "--suite", "few", "-a", "way=raises")
    assert done.returncode == 3
    assert "--axis way=raises excludes all" in done.stderr


def test_no_engine_is_exit_4_with_what_was_tried_and_the_way_on(harness: Harness) -> None:
    done = harness("matrix", "-s", "ways", "--backend", "docker", **NOWHERE)
    assert done.returncode == 4
    assert "unix:///nowhere/docker.sock" in done.stderr
    assert "--backend local" in done.stderr
    assert not (harness.root / "results").exists()


def test_auto_takes_local_environments_where_no_engine_answers_and_says_why(harness: Harness) -> None:
    arguments = ("-s", "ways", "-a", "way=fine", "--rounds", "1", "--warmup", "1ms", "--measure", "5ms")
    done = harness("matrix", *arguments, **NOWHERE)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Backend: ")]
    assert "local environments, because Docker Engine does not answer at DOCKER_HOST" in line


def test_an_untrusted_file_needs_a_container_unless_it_is_trusted(harness: Harness, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(SCENARIO)
    refused = harness("matrix", "-s", str(outside), **NOWHERE)
    planned = harness("matrix", "-s", str(outside), "--dry-run", **NOWHERE)
    assert "cannot run this plan: Docker Engine does not answer" in planned.stdout
    assert "outside is from outside the project" in planned.stdout
    assert refused.returncode == 4
    assert "need a container" in refused.stderr
    trusted = ("-s", str(outside), "-a", "way=fine", "--rounds", "1", "--trust")
    assert harness.matrix(*trusted, **NOWHERE).returncode == 0


def test_a_results_folder_that_cannot_be_written_is_said_before_the_first_launch(harness: Harness) -> None:
    (harness.root / "results").write_text("a file is in the way")
    done = harness.matrix("-s", "ways", "-a", "way=fine")
    assert done.returncode == 4
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize(
    "how",
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT, signal.SIGINT]],
    ids=["INT", "TERM", "HUP", "twice"],
)
def test_an_interruption_ends_cleanly_and_the_run_goes_on_where_it_stopped(
    harness: Harness, how: list[signal.Signals]
) -> None:
    running = harness.start("matrix", "-s", "ways", "-a", "way=fine,endless", "-e", "old", "--backend", "local")
    _until(running, "[1/")
    for entry in how:
        running.send_signal(entry)
        time.sleep(0.05)  # what Ctrl-C reaches twice, through a wrapper, is one interruption
    _, stderr = running.communicate()
    assert running.returncode == 130, stderr
    assert "Stopping: ending the running launches and reporting the finished ones." in stderr
    assert "To continue: harness matrix --resume" in stderr
    assert (harness.run / "report.md").exists(), stderr
    assert harness.launches
    assert _scratch(harness) == []


def test_what_a_run_that_goes_on_has_is_not_cleaned_away(harness: Harness, tmp_path: Path) -> None:
    running = harness.start("matrix", "-s", "ways", "-a", "way=fine,endless", "-e", "old", "--backend", "local")
    try:
        _until(running, "[1/")
        elsewhere = {"HARNESS_MACHINE_LOCK": str(tmp_path / "other.lock"), **NOWHERE}
        refused = harness("clean", str(harness.run), **elsewhere)
        assert refused.returncode == 4
        assert (
            f"The run {harness.run.name} is still in progress. It is held by process {running.pid}, since "
            in refused.stderr
        )
        assert "and 0 scratch folders" in harness("clean", **elsewhere).stdout
        assert _scratch(harness) != []
    finally:
        running.kill()
        running.communicate()
    assert "and 1 scratch folders" in harness("clean", str(harness.run), **NOWHERE).stdout


def test_a_run_that_was_killed_before_it_launched_anything_is_told_and_removed(harness: Harness) -> None:
    folder = harness.root / "results" / "2026-11-21T00-00-00Z-dead"
    folder.mkdir(parents=True)
    (folder / "launches.jsonl").touch()
    resumed = harness("matrix", "--resume", str(folder))
    assert resumed.returncode == 2
    assert "was killed before the first launch" in resumed.stderr
    assert f"harness clean {folder}" in resumed.stderr
    assert f"Removed {folder}" in harness("clean", str(folder), **NOWHERE).stdout
    assert not folder.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_report_is_answered(
    how: signal.Signals, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["harness", "report", "results/run"])
    monkeypatch.setattr("harness.session.read_in_place", lambda *_: signal.raise_signal(how), raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capfd.readouterr().err == "\nharness: interrupted.\n"


@pytest.mark.parametrize(
    ("second", "how"),
    [
        ("harness.backends.local.backend.LocalBackend.clean", signal.SIGINT),
        ("harness.session.running.report", signal.SIGINT),
        ("harness.session.running.report", signal.SIGTERM),
    ],
    ids=["INT in removal", "INT in report", "TERM in report"],
)
def test_a_second_interruption_abandons_the_report_and_says_how_to_make_it(
    harness: Harness,
    second: str,
    how: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(how)

    arguments = ("matrix", "-s", "ways", "-a", "way=fine", "--rounds", "1", "--backend", "local")
    monkeypatch.setattr("sys.argv", ["harness", *arguments, "--warmup", "1ms", "--measure", "5ms"])
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    monkeypatch.setattr("harness.cli.messages.ECHO_SECONDS", 0.0)
    monkeypatch.setattr("harness.runner.launching.Launching.turn", interrupted)
    monkeypatch.setattr(second, interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    said = capfd.readouterr().err
    assert "To skip the report, press Ctrl-C again." in said
    assert f" The launches are saved. To write the report: harness report results/{harness.run.name}" in said
    assert f"To continue: harness matrix --resume results/{harness.run.name}" in said
    assert "Traceback" not in said
    assert not (harness.run / "report.md").exists()
    assert _scratch(harness) == []


def test_nothing_that_was_finished_is_lost_when_the_harness_is_killed(harness: Harness) -> None:
    arguments = ("-s", "ways", "-a", "way=fine", "--rounds", "3", "--warmup", "1ms", "--measure", "5ms", "--seed", "3")
    running = harness.start("matrix", *arguments, "--backend", "local")
    _until(running, "[4/")
    running.kill()
    running.communicate()
    with (harness.run / "launches.jsonl").open("ab") as file:
        file.write(b'{"group": "torn')
    whole = (harness.run / "launches.jsonl").read_text().splitlines()[:-1]
    assert len(whole) >= 4
    assert harness("report", str(harness.run)).returncode == 0
    resumed = harness("matrix", "--resume", str(harness.run))
    assert resumed.returncode == 0, resumed.stderr
    lines = (harness.run / "launches.jsonl").read_text().splitlines()
    assert lines[: len(whole)] == whole
    stored = [json.loads(line) for line in lines]
    rounds = {(launch["round"], launch["cell"]["environment"]) for launch in stored}
    assert rounds == {(number, name) for number in range(4) for name in ("old", "new")}


def test_a_finished_run_is_continued_and_says_how(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    folder = str(harness.run)
    done = harness("matrix", "--resume", folder)
    assert done.returncode == 0, done.stderr
    assert f"{folder} is complete: it has 1 round. To continue it: harness matrix --resume {folder} --rounds 3" in (
        done.stderr
    )
    assert done.stdout.startswith("Ways to end: TensorFlow")
    done = harness("matrix", "--resume", folder, "--rounds", "3")
    assert done.returncode == 0, done.stderr
    assert max(launch["round"] for launch in harness.launches) == 3
    done = harness("matrix", "--resume", folder, "--rounds", "2")
    assert done.returncode == 2
    assert "has 3 rounds, and --rounds 2 adds none" in done.stderr
    assert "For 3 more rounds, use --rounds 6." in done.stderr


def test_a_run_whose_scenario_changed_is_not_resumed(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    path = harness.root / "scenarios" / "ways.py"
    path.write_text(path.read_text().replace("1000", "2000"))
    done = harness("matrix", "--resume", str(harness.run))
    assert done.returncode == 2
    assert "the scenario ways has changed" in done.stderr


def test_a_run_whose_scenario_is_gone_is_not_resumed(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    (harness.root / "scenarios" / "ways.py").unlink()
    done = harness("matrix", "--resume", str(harness.run))
    assert done.returncode == 2
    assert "ways.py cannot be read" in done.stderr


def test_a_run_of_another_machine_is_not_resumed(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    folder = RunFolder.open(harness.run)
    run = folder.read_run()
    folder.write_run(replace(run, host={**run.host, "cores": 99}), signed=True)
    done = harness("matrix", "--resume", str(harness.run))
    assert done.returncode == 4
    assert "started on another machine: cores 99" in done.stderr


def test_several_environments_and_scenarios_stand_in_one_option(harness: Harness) -> None:
    done = harness("matrix", "-s", "ways,ways", "-e", "new,old", "-a", "way=fine", "--dry-run", "--json")
    plan = json.loads(done.stdout)
    assert plan["reference"] == "new"
    assert [entry["cell"] for entry in plan["cells"]] == ["ways new fine fast", "ways old fine fast"]


def test_the_plan_says_what_is_built_first_and_what_launches_took(harness: Harness) -> None:
    asked = ("matrix", "-s", "ways", "-a", "way=fine", "--rounds", "1", "--backend", "local", "--dry-run")
    cache = {"HARNESS_CACHE_DIR": str(harness.root / "cache")}
    assert (
        "Before the first launch, 2 local environments are prepared: old, new. Downloads of up to 0.6 GB take about "
        "50 s at 100 Mbit/s." in harness(*asked, **cache).stdout
    )
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    done = harness(*asked)
    assert f": estimated from {harness.run.name}." in done.stdout
    assert "All local environments are ready." in done.stdout
    assert "not available" not in done.stdout
    unasked = harness(*asked[:-2], "docker", "--dry-run", **NOWHERE)
    assert "This machine cannot run this plan: Docker Engine does not answer" in unasked.stdout
    assert "Or measure without containers: --backend local" in unasked.stdout
    assert unasked.returncode == 0


def test_the_plan_is_shown_and_nothing_is_done(harness: Harness) -> None:
    done = harness("matrix", "-s", "ways", "--dry-run")
    assert done.returncode == 0
    assert "14 cells in 7 groups" in done.stdout
    assert "1 control (" in done.stdout
    assert "The run has a pilot and 5 rounds: 89 launches. 2 cells are not available." in done.stdout
    assert "The run takes about 7 min: assuming 3 s for the start of each launch, because results" in done.stdout
    assert "not available: ways old signals fast: no release does this" in done.stdout
    assert not (harness.root / "results").exists()
    plan = json.loads(harness("matrix", "-s", "ways", "--dry-run", "--json", "--seed", "5").stdout)
    assert plan["seed"] == 5
    assert len(plan["cells"]) == 14


def test_launches_are_printed_as_json_where_that_is_asked(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines() if '"attempt":0' in line] == harness.launches


def test_an_environment_without_its_python_is_not_available_and_the_others_run(harness: Harness) -> None:
    bake = harness.root / "docker-bake.hcl"
    bake.write_text(bake.read_text().replace('"1.0.0", python = "3.11"', '"1.0.0", python = "3.5"'))
    scenario = harness.root / "scenarios" / "ways.py"
    scenario.write_text(scenario.read_text().replace('">=3.6"', '">=3.5"'))
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", UV_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    report = (harness.run / "report.md").read_text()
    assert "Python 3.5 isn't installed on this machine" in report
    assert "pyenv install 3.5" in report
    assert len(harness.launches) == 1


def _until(process: "subprocess.Popen[str]", start: str) -> None:  # type: ignore[name-defined]
    """Read the process's stderr up to a line that starts so."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith(start):
            return
    raise AssertionError("".join(seen))


def _scratch(harness: Harness) -> list[str]:
    """What launches of the run left: their folders, and processes that still work in one."""
    folder = Path(os.environ["HARNESS_CACHE_DIR"]) / "scratch" / harness.run.name
    working = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            working.append(str(process.readlink()))
    return [*(str(path) for path in folder.glob("*")), *(path for path in working if path.startswith(str(folder)))]


def test_the_plan_of_a_run_until_it_is_precise(harness: Harness) -> None:
    asked = ("--precision", "2%", "--budget", "10m", "--margin", "5%", "--reference", "new")
    done = harness("matrix", "-s", "ways", "-a", "way=fine", "--dry-run", *asked)
    assert done.returncode == 0, done.stderr
    assert "a pilot and at most 100 rounds: at most 302 launches" in done.stdout


def test_a_budget_ends_the_run_and_the_report_says_so(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--budget", "1ms", "--reference", "new")
    assert done.returncode == 0, done.stderr
    assert {launch["round"] for launch in harness.launches} == {0, 1}
    run = json.loads((harness.run / "run.json").read_text())
    assert run["reference"] == "new"
    assert run["stops"] == {"ways cpu way=fine speed=fast": {"reason": "budget", "rounds": 1}}
    assert "budget" in (harness.run / "report.md").read_text()


def test_the_pilot_sets_the_lengths_that_are_not_given(harness: Harness) -> None:
    done = harness("matrix", "-s", "ways", "-a", "way=fine", "--rounds", "1", "--backend", "local")
    assert done.returncode == 0, done.stderr
    plan = json.loads((harness.run / "run.json").read_text())["plan"]
    assert plan["sampling"]["warmup_seconds"] is plan["sampling"]["measure_seconds"] is None
    pilot, *_, last = harness.launches
    assert pilot["phases"]["steady state"] > 1.4
    assert last["phases"]["steady state"] >= 0.25


def test_a_gate_gives_way_to_a_failed_cell(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine,raises", "--rounds", "1", "--fail-on", "slower")
    assert done.returncode == 1, done.stderr


def test_a_gate_that_judged_nothing_says_so(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", "--fail-on", "slower")
    assert done.returncode == 3
    assert "--fail-on had nothing to check" in done.stderr


def test_what_a_scenario_raised_is_shown_with_its_place_and_a_command_that_shows_it_again(harness: Harness) -> None:
    by_hand = 'if __name__ == "__main__":\n    from kit import main\n\n    main(scenario)\n'
    (harness.root / "scenarios" / "ways.py").write_text(f"{SCENARIO}\n\n{by_hand}")
    done = harness.matrix("-s", "ways", "-a", "way=raises", "-a", "malloc=keep", "-e", "old", "--rounds", "1")
    assert done.returncode == 1
    line = SCENARIO.split("\n").index('        raise ValueError("a | pipe and \\033[31mcolour")') + 1
    told = rf"scenarios/ways.py:{line}: in scenario: ValueError: a | pipe and \x1b[31mcolour"
    lines = done.stderr.splitlines()
    at = lines.index(told)
    assert lines[at + 1] == "To write a script that runs the cell without harness:"
    # the scenario's cells differ in a setting only, which the script doesn't have
    written = harness(*shlex.split(lines[at + 2])[1:])
    assert written.returncode == 0, written.stderr
    script = harness.root / written.stdout.strip()
    assert script.name == "repro.py"
    again = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert "ValueError: a | pipe and" in again.stderr


def test_a_module_that_is_missing_is_to_be_added_to_its_environment(harness: Harness) -> None:
    (harness.root / "scenarios" / "ways.py").write_text(f"{SCENARIO}\nimport no_such_module\n")
    done = harness.matrix("-s", "ways", "-a", "way=fine", "-e", "old", "--rounds", "1")
    assert done.returncode == 1
    (launch,) = harness.launches
    assert launch["advice"].startswith("The module no_such_module isn't in old.")
    assert "-e old+PACKAGE==VERSION" in launch["advice"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cores_are_an_axis_of_which_the_report_shows_the_speed_up(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-e", "old", "-a", "way=fine", "-a", "cpus=1,2", "--rounds", "3")
    assert done.returncode == 0, done.stderr
    measured = [launch for launch in harness.launches if launch["round"]]
    pinned = {(launch["cell"]["axes"]["cpus"], launch["resources"]["steady_own_cpus"]) for launch in measured}
    assert pinned == {("1", 1), ("2", 2)}
    report = (harness.run / "report.md").read_text()
    assert "## Scaling over cores" in report
    assert "pinned to 1 or 2 of 2 cores" in report


def test_more_cores_than_there_are_is_a_sentence(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "-a", "cpus=1,999999", "--rounds", "1")
    assert (done.returncode, "-a cpus=999999: launches may use" in done.stderr) == (2, True), done.stderr
