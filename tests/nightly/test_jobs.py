"""The jobs of a nightly run, and their artifacts."""

import json
import os
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.nightly.conftest import MEASURE
from tests.shards import store_shards
from tests.workflow import install_harness, run_script, write_program

WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}

NIGHT_JOBS = WORKFLOWS["night.yml"]["jobs"]


def test_every_job_has_the_scripts_of_the_called_workflow_itself():
    """The repository that calls it has none, and its code isn't what writes to its history and issues."""
    for job in NIGHT_JOBS.values():
        checkouts = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert checkouts[-1]["repository"] == "${{ job.workflow_repository }}"
        assert (checkouts[-1]["ref"], checkouts[-1]["path"]) == ("${{ job.workflow_sha }}", ".harness")
        for step in job["steps"]:
            assert step.get("run", ".harness/").startswith(".harness/")
            assert step.get("uses", "actions/").startswith(("actions/", "./.harness/"))
    # also after a cancellation
    for name in ("merge", "history", "alarm"):
        assert "always()" in NIGHT_JOBS[name]["if"], name


def test_workflows_for_pull_requests_run_on_githubs_machines_without_write_access():
    for workflow in WORKFLOWS.values():
        events = workflow[True]  # `on`, as YAML 1.1 reads it
        assert "pull_request_target" not in events
        if "pull_request" in events:
            for job in workflow["jobs"].values():
                assert job["runs-on"] == "ubuntu-24.04"
                assert "write" not in json.dumps(job.get("permissions", {}))


@pytest.mark.slow
def test_shares_of_a_night_are_merged_and_a_machine_that_sent_none_is_named(tmp_path, project):
    artifacts = project / "artifacts"
    (artifacts / "shared--d").mkdir(parents=True)
    (artifacts / "shared--d" / "idle").touch()
    folders, groups = store_shards(tmp_path / "results", "ab")
    for machine, folder in zip("ab", folders, strict=True):
        shutil.copytree(folder, artifacts / f"shared--{machine}" / folder.name)
        (artifacts / f"shared--{machine}" / "night").write_text(f"{folder.name}\n")
    # a machine can't hand in the results of another one, by a name or by a link
    name = folders[0].name
    for machine, text in (("e", f"../shared--a/{name}"), ("f", name)):
        (artifacts / f"shared--{machine}").mkdir()
        (artifacts / f"shared--{machine}" / "night").write_text(f"{text}\n")
    (artifacts / "shared--f" / name).symlink_to(artifacts / "shared--a" / name)
    install_harness(tmp_path / "bin")
    jobs = json.dumps([{"night": "shared", "machine": name} for name in "abcdef"])
    process = run_script(
        ".github/nightly/merge", cwd=project, programs=tmp_path / "bin", GITHUB_STEP_SUMMARY=tmp_path / "page",
        JOBS=jobs, HARNESS_DATA_DIR=tmp_path / "data",
    )  # fmt: skip
    assert process.returncode == 1, process.stderr
    errors = [line for line in process.stdout.splitlines() if "::error::" in line]
    refused = {re.search("shared--(.) are refused", line)[1] for line in errors if "refused" in line}
    assert (refused, len(errors)) == ({"e", "f"}, 5), errors
    (folder,) = (project / "runs").iterdir()
    launches = map(json.loads, (folder / "launches.jsonl").read_text().splitlines())
    assert {launch["group"] for launch in launches} == set(groups)
    page = (tmp_path / "page").read_text()
    assert page.startswith("- **c sent no run of the night shared.**\n")
    assert "\n- d " in page
    assert "harness report" in page


def test_an_artifact_with_anything_that_no_job_writes_is_refused_with_a_sentence(
    tmp_path, monkeypatch, capsys, snapshot
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    main = runpy.run_path(str(ROOT / ".github" / "artifacts"))["main"]
    run = {"id": "2026-11-01T04-10-00Z-aaaa", "machine": {"name": "lab", "id": "m-1"}}
    good = {f"{run['id']}/run.json": json.dumps(run), f"{run['id']}/artifacts/any name!": "x", "night": run["id"]}
    cases = {
        "right": good | {"decisions/x.json": '{"run": "x"}\n', f"bisect-{run['id']}/steps.jsonl": "", "failure": "x"},
        "idle": {"idle": "x"},
        "another file": good | {"\n::error::x": "x"},
        "a file in place of a run": {run["id"]: "x"},
        "a folder in place of a file": {"failure/x": "x"},
        "a link": good | {"failure": Path("/etc/passwd")},
        "a linked file of a run": good | {f"{run['id']}/launches.jsonl": Path("/etc/passwd")},
        "a pipe": good | {"failure": None},
        "a path as the night": good | {"night": f"../x/{run['id']}"},
        "two lines as the night": good | {"night": f"{run['id']}\n{run['id']}"},
        "no text": {"night": b"\xff"},
        "another id": good | {f"{run['id']}/run.json": json.dumps(run | {"id": "x"})},
        "another machine": good | {f"{run['id']}/run.json": json.dumps(run | {"machine": {"name": "rack"}})},
        "no machine": good | {f"{run['id']}/run.json": json.dumps(run | {"machine": "lab"})},
        "no JSON": good | {f"{run['id']}/run.json": "[" * 9999},
        "a decision with another key": {"decisions/x.json": '{"run": "x", "evil": 1}'},
        "a decision that is a list": {"decisions/x.json": "[]"},
        "a decision with another name": {"decisions/..json": "{}"},
        "large": {"night": "x" * 101},
    }  # fmt: skip
    refusals = {}
    for number, (case, files) in enumerate(cases.items()):
        artifact = tmp_path / str(number) / "cpu--lab"
        for name, content in files.items():
            path = artifact / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                os.mkfifo(path)
            elif isinstance(content, Path):
                path.symlink_to(content)
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr(sys, "argv", ["artifacts", str(artifact)])
        code = main()
        refusals[case] = capsys.readouterr().out
        assert code == bool(refusals[case])
        # the reason goes to the summary and to the issue in place of the artifact
        if code:
            assert {path.name: f"::error::{path.read_text()}" for path in artifact.iterdir()} == {
                "failure": refusals[case]
            }
    assert refusals == snapshot


#: A harness whose `matrix` ends with CODE, with a run if RUN is set. Its `history confirm` stores a decision, and is
#: killed with its job if KILLED is set.
HARNESS = """\
echo "$@" >>"$RUNNER_TEMP/commands"
case "$1 $2" in
  matrix*) if [ -n "$RUN" ]; then mkdir -p "results/$RUN"; echo "{}" >"results/$RUN/run.json"; fi; exit "$CODE" ;;
  report*) echo "the table of $2" ;;
  "history confirm")
    echo decision >>"$HARNESS_HISTORY/decisions/x.json"
    if [ -n "$KILLED" ]; then kill -9 "$PPID"; fi ;;
esac
"""


@pytest.fixture
def measure(tmp_path):
    """Return a function that runs the script that measures, with a fake harness.

    It returns the exit code, the page, the names of the results, and the commands of harness.
    """
    write_program(tmp_path / "bin" / "harness", HARNESS)
    write_program(tmp_path / "bin" / "docker", "exit 1")
    work, page, commands = tmp_path / "work", tmp_path / "page", tmp_path / "commands"

    def run_measure(arguments, **environ):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        page.write_text("")
        commands.write_text("")
        defaults = {"HISTORY": "", "RUN": "", "CODE": "0", "KILLED": ""}
        process = run_script(
            MEASURE / "measure", cwd=work, programs=tmp_path / "bin", RUNNER_TEMP=tmp_path, GITHUB_STEP_SUMMARY=page,
            MACHINE="rack", CONFIRM_BUDGET="1m", CONFIRMATIONS="4", ARGUMENTS=arguments, **defaults | environ,
        )  # fmt: skip
        names = [path.name for path in (work / "results").iterdir()]
        return process.returncode, page.read_text(), names, commands.read_text().splitlines()

    return run_measure


def test_leftovers_are_removed_and_the_machine_is_checked_before_it_measures(measure):
    for arguments, option in {
        "-s step": "", "--gpus 0,1": " --gpu", "--device cpu,gpu": " --gpu", "--device=gpu": " --gpu",
    }.items():  # fmt: skip
        *_, (first, second, third, *_) = measure(arguments, RUN="run-1")
        assert (first, second) == ("clean", f"doctor --no-listen{option}")
        assert third.startswith(f"matrix {arguments} ")


def test_a_run_without_a_result_succeeds_only_for_a_reason(measure, snapshot):
    pull_request, shard = "--base HEAD^1 --head HEAD -s * -e tf2.15 --fail-on slower", "-s step --seed 7 --shard 2/2"
    cases = {
        "versions with different work": (pull_request, {"RUN": "run-1", "CODE": "3"}),
        "no changed scenario": (pull_request, {"CODE": "3"}),
        "an empty share of the plan": (shard, {}),
        "no reason": ("-s step", {}),
    }
    measured = {case: measure(arguments, **environ)[:3] for case, (arguments, environ) in cases.items()}
    assert [code for code, *_ in measured.values()] == [3, 0, 0, 1]
    assert measured["an empty share of the plan"][2] == ["idle"]
    assert {case: page for case, (_, page, _) in measured.items()} == snapshot


def test_a_decision_is_among_the_results_though_the_job_is_killed_at_its_time_limit(measure, tmp_path):
    code, *_ = measure("-s step", RUN="run-1", HISTORY=str(tmp_path / "branch"), KILLED="yes")
    assert code == -9
    assert (tmp_path / "work" / "results" / "decisions" / "x.json").read_text() == "decision\n"
