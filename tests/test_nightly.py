"""The workflows, run here in their order: a bare git repository is the remote, a fake `gh` has the issues."""

import base64
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from harness.history.issues import LABEL
from harness.model.history import Decision, Key
from tests.cli.conftest import write_project
from tests.commands import git
from tests.conftest import ROOT
from tests.github import ENVIRON, REPOSITORY, Repository
from tests.shards import store_shards
from tests.test_nightly_guide import MINE
from tests.test_site import make_project
from tests.webserver import serving
from tests.workflow import Runner, install_harness, push_history, run_script, write_program

SHORT = "-s ways -a way=fine -e old,new --backend local --rounds 1 --warmup 1ms --measure 5ms"
NIGHTS = f"""
[[night]]
name = "cpu"
arguments = "{SHORT}"
machines = [{{ name = "hosted", runs-on = ["ubuntu-24.04"] }}]
"""
SUCCESS = {
    "plan": "success", "measure: cpu hosted": "success", "wait": "success", "merge": "success", "history": "success",
    "alarm": "success", "documentation": "success",
}  # fmt: skip
NIGHTLY, MEASURE = ROOT / ".github" / "nightly", ROOT / ".github" / "actions" / "measure"


@pytest.fixture
def github(tmp_path):
    (tmp_path / "bin").mkdir()
    github = Repository(tmp_path / "repository.json")
    github.install(tmp_path / "bin")
    github.states = [{"cpu on hosted": "completed", "gpu on rack": "completed"}]
    github.save()
    return github


@pytest.fixture
def project(tmp_path):
    """Return a repository with the real workflows, and scenarios that need no TensorFlow."""
    root = tmp_path / "fork"
    write_project(root)
    shutil.copytree(ROOT / ".github", root / ".github")
    shutil.copy(ROOT / "action.yml", root)
    (root / ".github" / "nightly.toml").write_text(NIGHTS)
    return root


@pytest.fixture
def remote(tmp_path):
    bare = tmp_path / "remote" / f"{REPOSITORY}.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare")
    return bare


@pytest.fixture(scope="module")
def lab_history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    bare = folder / "bare.git"
    git(folder, "init", "-q", "--bare", bare)
    push_history(folder, bare)
    return bare


@pytest.fixture
def lab(project, remote, lab_history):
    shutil.copytree(lab_history, remote, dirs_exist_ok=True)
    nights = NIGHTS.replace("hosted", "lab")
    (project / ".github" / "nightly.toml").write_text(nights)
    return nights


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def night(tmp_path, project, github, cache, monkeypatch):
    """Return a function that runs a workflow under a number, and returns its jobs by name."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(cache))
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)

    def run_workflow(number, workflow="nightly.yml", only="", caller=None, event=None, **inputs):
        environ = {
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_RUN_ID": str(number),
            "GITHUB_SERVER_URL": (tmp_path / "remote").as_uri(),
            "HARNESS_DATA_DIR": str(tmp_path / "data"), "HARNESS_MACHINE_LOCK": str(tmp_path / "lock"),
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            # no image of this machine is removed
            "DOCKER_HOST": f"unix://{tmp_path}/nowhere",
        }  # fmt: skip
        called = None
        if caller:
            # the action installs the harness of the called repository, with its catalog
            for folder in ("harness", "templates"):
                shutil.copytree(ROOT / folder, project / folder)
            environ["PYTHONPATH"] = str(project)
            called = project

        def install(temporary: Path) -> None:
            install_harness(temporary / "harness" / "bin")

        runner = Runner(caller or project, tmp_path / f"night-{number}", environ, install, called, event or {})
        return runner.run(workflow, inputs, only)

    return run_workflow


def list_files(remote):
    return git(remote, "ls-tree", "-r", "--name-only", "harness-history").splitlines()


def summaries(remote):
    return [name for name in list_files(remote) if name.endswith(".json") and name.startswith("20")]


def results(jobs):
    return {name: job.result for name, job in jobs.items()}


def logs(jobs):
    return "\n".join(job.log for job in jobs.values())


@pytest.mark.slow
def test_nights_are_measured_and_stored_without_an_alarm(night, remote, github, tmp_path):
    first = night(1)
    assert results(first) == SUCCESS, logs(first)
    assert "| cpu | hosted | `-s ways" in first["plan"].summary
    assert git(remote, "show", "harness-history:README.md").startswith("# History: all runs")
    assert "harness report" in first["measure: cpu hosted"].summary
    (name,) = summaries(remote)
    document = json.loads(git(remote, "show", f"harness-history:{name}"))
    assert [entry["machine"] for entry in document["machines"]] == [{"id": "hosted-hosted", "name": "hosted"}]

    night(2)
    assert len(summaries(remote)) == 2
    assert name in summaries(remote)
    assert git(remote, "rev-list", "--count", "harness-history") == "2"
    # an orphan: it shares nothing with the project
    assert {Path(file).parts[0] for file in list_files(remote)} == {name.split("/")[0], "README.md"}
    assert github.load().issues == []
    # the token is in no file, and in no folder's configuration
    encoded = base64.b64encode(b"x-access-token:a-token").decode()
    grep = ["grep", "-rl", "-e", encoded, "-e", "a-token", str(tmp_path)]
    assert subprocess.run(grep, capture_output=True, text=True, check=False).stdout == ""

    # the first night's job is behind now: what it writes again joins what the second has pushed
    work = tmp_path / "night-1" / "jobs" / "history" / "work"
    (folder,) = (work / "runs").iterdir()
    document = json.loads((folder / "run.json").read_text())
    document["id"] = f"{document['id'][:-4]}beef"
    (folder / "run.json").write_text(json.dumps(document))
    folder.rename(folder.with_name(document["id"]))
    process = repeat_history_job(work, tmp_path)
    assert process.returncode == 0, process.stderr
    assert len(summaries(remote)) == 3
    # no changes, no commit
    count = git(remote, "rev-list", "--count", "harness-history")
    assert repeat_history_job(work, tmp_path).returncode == 0
    assert git(remote, "rev-list", "--count", "harness-history") == count

    # decisions that cannot be read stay off the branch
    key = Key("m", "s", "cpu", (), "e", "r")
    decision = Decision(key, "2026", (), True, "run", "2026-11-25T04:10:00+00:00", 1.2, 1.1, 1.3)
    good = json.dumps(asdict(decision))
    for name, text in {"good": good, "other": '{"key": 1}', "x": "not JSON", "deep": "[" * 9999}.items():
        (work / "artifacts" / f"{name}--m" / "decisions").mkdir(parents=True)
        (work / "artifacts" / f"{name}--m" / "decisions" / f"{name}.json").write_text(text)
    process = repeat_history_job(work, tmp_path)
    assert process.returncode == 1
    for name, error in {
        "other": "::error::The decisions in artifacts/other--m are left out",
        "x": "::error::The results of x--m are refused",
        "deep": "::error::The results of deep--m are refused",
    }.items():
        assert error in process.stdout, name
    assert [name for name in list_files(remote) if "decisions" in name] == ["decisions/good.json"]
    assert git(remote, "show", "harness-history:decisions/good.json") == good
    # a decision on the branch stays, whatever a job hands over later
    (work / "artifacts" / "good--m" / "decisions" / "good.json").write_text(good.replace("1.2", "1.25"))
    repeat_history_job(work, tmp_path)
    assert git(remote, "show", "harness-history:decisions/good.json") == good


def repeat_history_job(work, tmp_path):
    return run_script(
        ".harness/.github/nightly/history", "history", cwd=work, programs=work.parent / "temp" / "harness" / "bin",
        HISTORY_BRANCH="harness-history", GITHUB_STEP_SUMMARY=tmp_path / "page",
        RUNNER_TEMP=work.parent / "temp", HARNESS_DATA_DIR=tmp_path / "data",
    )  # fmt: skip


@pytest.mark.slow
def test_a_repository_with_only_scenarios_and_nightly_toml_gets_its_nights(night, remote, tmp_path):
    caller = tmp_path / "caller"
    (caller / "scenarios").mkdir(parents=True)
    (caller / "scenarios" / "mine.py").write_text(MINE)
    (caller / ".github").mkdir()
    short = SHORT.replace("-s ways -a way=fine", "-s mine --trust")
    nights = NIGHTS.replace(SHORT, short).replace('"] }]', '"], id = "rack-7" }]')
    (caller / ".github" / "nightly.toml").write_text(nights)
    jobs = night(1, "night.yml", caller=caller)
    assert {*results(jobs).values()} == {"success"}, logs(jobs)
    (name,) = summaries(remote)
    document = json.loads(git(remote, "show", f"harness-history:{name}"))
    assert [*document["scenarios"]] == ["mine"]
    # the id of nightly.toml: the runner is a new machine each night
    assert [entry["machine"] for entry in document["machines"]] == [{"id": "rack-7", "name": "hosted"}]


def write_workflow(project, **inputs):
    """Write a workflow with one job, which only uses the action."""
    steps = [{"uses": "actions/checkout@v6"}, {"uses": "./", "with": inputs}]
    workflow = {True: {"schedule": []}, "jobs": {"measure": {"runs-on": "ubuntu-24.04", "steps": steps}}}
    (project / ".github" / "workflows" / "mine.yml").write_text(yaml.safe_dump(workflow))


@pytest.mark.slow
def test_one_job_with_the_action_does_a_night(night, lab, project, remote, github):
    (project / ".github" / "nightly.toml").unlink()
    write_workflow(project, nights="true", arguments=SHORT, machine="lab")
    before = len(summaries(remote))
    job = night(1, "mine.yml", event={"event_name": "schedule"})["measure"]
    assert job.result == "success", job.log
    assert len(summaries(remote)) == before + 1
    # the change that was confirmed before
    assert github.load().writes == ["issue create"]
    assert "### Alarm" in job.summary


@pytest.mark.slow
def test_the_action_writes_the_comment_in_its_own_job_or_in_one_after_it_and_none_for_a_fork(night, project, github):
    github.pulls = [{"number": 7, "headRefOid": "aaa"}]
    github.save()
    write_workflow(project, comment="true", arguments=SHORT)
    head = {"sha": "aaa", "repo": {"fork": "false"}}
    own = night(1, "mine.yml", event={"event": {"pull_request": {"head": head}}})["measure"]
    assert own.result == "success", own.log
    assert github.load().writes == ["POST 7/comments"]

    fork = {"sha": "aaa", "repo": {"fork": "true"}}
    stranger = night(2, "mine.yml", event={"event": {"pull_request": {"head": fork}}})["measure"]
    assert "::notice::The comment isn't written" in stranger.log
    assert github.load().writes == ["POST 7/comments"]

    shutil.copytree(project.parent / "night-2" / "artifacts", project.parent / "night-3" / "artifacts")
    event = {"event_name": "workflow_run", "event": {"workflow_run": {"head_sha": "aaa", "event": "pull_request"}}}
    later = night(3, "comment.yml", caller=project.parent / "nowhere", event=event)["comment"]
    assert later.result == "success", later.log
    assert github.load().writes == ["POST 7/comments", "PATCH comments/1"]


@pytest.mark.slow
def test_a_machine_that_fails_is_reported_and_the_numbers_of_the_others_are_stored(night, remote, project, github):
    (project / ".github" / "nightly.toml").write_text(
        NIGHTS + f'[[night]]\nname = "gpu"\narguments = "{SHORT} --gpu"\n'
        'machines = [{ name = "rack", runs-on = ["self-hosted", "gpu"] }]\n'
    )
    jobs = night(1)
    assert results(jobs) == SUCCESS | {"measure: gpu rack": "failure", "merge": "failure"}, logs(jobs)
    # the error, wherever somebody looks, and not its code alone
    summary = jobs["measure: gpu rack"].summary
    assert summary.startswith("### rack ")
    assert "- **rack " in jobs["merge"].summary
    error = next(line for line in summary.splitlines() if line.startswith("GPU"))
    assert error in jobs["merge"].summary
    assert github.load().issues == []
    assert len(summaries(remote)) == 1


@pytest.mark.slow
def test_a_failure_before_the_measurement_is_the_reason_on_the_summary_pages(night, project, tmp_path):
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("\n[[", '\nregistry = "ghcr.io/me/"\n[[', 1))
    write_program(tmp_path / "bin" / "docker", "echo 'Error: https://me:s3cret@ghcr.io/v2/: denied' >&2\nexit 1")
    jobs = night(1)
    assert jobs["measure: cpu hosted"].result == "failure", jobs["measure: cpu hosted"].log
    for name in ("measure: cpu hosted", "merge"):
        assert "Error: https://ghcr.io/v2/: denied" in jobs[name].summary


@pytest.mark.slow
def test_a_confirmed_change_is_one_issue(night, lab, project, github):
    def alarm(number, **inputs):
        job = night(number, "night.yml", only="alarm", **inputs)["alarm"]
        assert job.result == "success", job.log
        return job.summary, [(issue["title"], issue["state"]) for issue in github.load().issues]

    # a muted change is none
    file = project / ".github" / "nightly.toml"
    file.write_text(lab + '[[mute]]\nseries = "step tf2.0 *"\nreason = "bug 5"\nuntil = 2999-12-31\n')
    assert alarm(1)[1] == []
    file.write_text(lab)
    slower = "Slower since 2026-10-13: step in tf2.0, on lab"
    summary, issues = alarm(2, **{"dry-run": True})
    assert (slower in summary, issues) == (True, [])
    assert alarm(3)[1] == [(slower, "OPEN")]
    (issue,) = github.load().issues
    assert issue["labels"] == [LABEL]
    assert issue["body"].endswith(f"/{REPOSITORY}/actions/runs/3)")
    # later, the issue stays
    summary, issues = alarm(4)
    assert summary.startswith(f"### Alarm\n\n- keep #1: {slower}")
    assert (issues, github.load().writes) == ([(slower, "OPEN")], ["issue create"])


def test_a_webhook_gets_each_new_issue_and_none_that_is_kept(github, tmp_path, monkeypatch):
    texts = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            texts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200 if len(texts) == 1 else 500)
            self.end_headers()

    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    step = {"step": "open", "number": None, "title": "Slower", "body": "x", "labels": [], "why": "it is new"}
    (tmp_path / "issues.json").write_text("[]")
    with serving(Webhook) as address:
        monkeypatch.setenv("WEBHOOK", f"{address}/s3cret")
        process = subprocess.run(
            [NIGHTLY / "issues", tmp_path / "issues.json"],
            input=json.dumps([step, {**step, "title": "Slower too"}, {**step, "step": "keep", "number": 1}]),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert [text.splitlines()[0] for text in texts] == ["Slower", "Slower too"]
    assert texts[0].splitlines()[1].startswith("http")
    assert "::warning::The webhook didn't accept the issue (HTTPError): Slower too" in process.stdout
    assert "s3cret" not in process.stdout + process.stderr


@pytest.mark.slow
def test_a_file_that_is_wrong_stops_the_night(night, lab, project, github):
    (project / ".github" / "nightly.toml").write_text(lab.replace("machines", "machine"))
    jobs = night(1)
    assert results(jobs) == dict.fromkeys(results(jobs), "skipped") | {
        "plan": "failure", "alarm": "failure", "documentation": "success",
    }  # fmt: skip
    assert jobs["plan"].log.startswith("::error file=.github/nightly.toml::")
    # no slowdown: the file could mute it
    assert github.load().issues == []


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """Return a function that runs the plan of a file in this process, and returns its error or 0, text and outputs."""
    output = tmp_path / "output"
    monkeypatch.setenv("NIGHTLY_FILE", str(tmp_path / "nightly.toml"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", os.devnull)
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run_plan(text, night=""):
        (tmp_path / "nightly.toml").write_text(text)
        monkeypatch.setenv("NIGHT", night)
        output.write_text("")
        error = 0
        try:
            runpy.run_path(str(NIGHTLY / "plan"), run_name="__main__")
        except SystemExit as exit_:
            error = str(exit_.code).replace(str(tmp_path), "FOLDER")
        text = capsys.readouterr().out.replace(str(tmp_path), "FOLDER")
        return error, text, dict(line.split("=", 1) for line in output.read_text().splitlines())

    return run_plan


def nights_of(machines):
    return f"{NIGHTS[: NIGHTS.index('machines')]}machines = [{machines}]\n"


def test_machines_of_one_night_share_a_plan_and_have_labels_that_github_accepts(plan):
    labels = {
        '"ubuntu-24.04"': "ubuntu-24.04",
        '["self-hosted", "gpu"]': ["self-hosted", "gpu"],
        '"runs-on=${{ github.run_id }}/family=g6"': "runs-on=77/family=g6",
        '{ group = "g-${{github.run_id}}", labels = ["a"] }': {"group": "g-77", "labels": ["a"]},
    }
    machines = [f'{{ name = "m{number}", runs-on = {label} }}' for number, label in enumerate(labels, 1)]
    jobs = json.loads(plan(nights_of(", ".join(machines)))[2]["jobs"])
    assert [job["runs-on"] for job in jobs] == list(labels.values())
    assert [job["arguments"] for job in jobs] == [f"{SHORT} --seed 77 --shard {number}/4" for number in (1, 2, 3, 4)]
    (job,) = json.loads(plan(NIGHTS)[2]["jobs"])
    assert job["arguments"] == SHORT


def test_messages_of_the_plan(plan, snapshot):
    slow, quick = (f"{{ name = 'rack', runs-on = 'x', minutes = {minutes} }}" for minutes in (351, 350))
    other = "{ name = 'lab', runs-on = 'x' }"
    rule = "[[mute]]\nseries = 'step *'\nreason = 'bug 5'\nuntil = 2026-10-31\n"
    nights = {
        "expression": NIGHTS.replace('["ubuntu-24.04"]', '"${{ secrets.x }}"'),
        "unknown night": NIGHTS,
        "longer than the job that waits": nights_of(f"{slow}, {other}"),
        "not longer": nights_of(f"{quick}, {other}"),
        "nobody waits": nights_of(slow),
        "a rule that ended": NIGHTS + rule,
        "too many jobs": nights_of(", ".join(f"{{ name = 'm{number}', runs-on = 'x' }}" for number in range(257))),
    }
    messages = {case: plan(text, "gpu" if "unknown" in case else "")[:2] for case, text in nights.items()}
    assert messages == snapshot


@pytest.mark.slow
def test_a_machine_that_does_not_start_in_time_is_named_and_cancelled(tmp_path, github):
    names = ["gpu on rack", "cpu on hosted"]
    jobs = [{"night": "gpu", "machine": "rack"}, {"night": "cpu", "machine": "hosted"}]
    for looks, minutes, is_late in (
        # all started: the script doesn't wait for their end
        ([["in_progress", "in_progress"]], "60", False),
        ([["queued", "in_progress"], ["in_progress", "completed"]], "60", False),
        # a job that GitHub doesn't list yet is queued
        ([[None, "completed"], ["in_progress", "completed"]], "60", False),
        # too late, but the other machine still measures: cancelled when it has ended
        ([["queued", "in_progress"], ["queued", "in_progress"], ["queued", "completed"]], "0", True),
        ([["pending", "completed"]], "0", True),
    ):
        github.states = [{name: state for name, state in zip(names, look, strict=True) if state} for look in looks]
        github.writes = []
        github.save()
        (tmp_path / "page").write_text("")
        process = run_script(
            NIGHTLY / "wait", programs=tmp_path / "bin", JOBS=json.dumps(jobs), WAIT_MINUTES=minutes, POLL_SECONDS="0",
            GITHUB_RUN_ID="77", GITHUB_STEP_SUMMARY=tmp_path / "page", **ENVIRON,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        after = github.load()
        assert after.writes == (["run cancel 77"] if is_late else [])
        assert after.states == github.states[-1:]
        assert (tmp_path / "page").read_text().startswith("- **rack ") is is_late


#: A uv that writes down its arguments.
UV = """\
echo "$@" >>"{log}"
for last; do :; done
case "$1" in venv) mkdir -p "$last/bin"; ln -s /bin/true "$last/bin/harness" ;; esac
"""


@pytest.fixture
def runner(tmp_path):
    """Return a function that runs `install` on a runner without pip and without a Python from 3.11 on.

    The package index has uv's wheel.
    """
    clone, programs, log = tmp_path / "clone", tmp_path / "bin", tmp_path / "log"
    script = clone / ".github" / "actions" / "measure" / "install"
    script.parent.mkdir(parents=True)
    shutil.copy(MEASURE / "install", script)
    machine = os.uname().machine
    name = f"uv-1.2.3-py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    uv = UV.format(log=log).replace('case "$1" in', 'if [ "$1 $2" = "python find" ]; then exit 1; fi\ncase "$1" in')
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        wheel.writestr("uv-1.2.3.data/scripts/uv", f"#!/bin/sh\n{uv}")
    (clone / "images").mkdir()
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    (clone / "images" / "uv.txt").write_text(f"uv==1.2.3 \\\n    --hash=sha256:{digest}\n")
    (tmp_path / "page").write_text(f'<a href="https://files/{name}#sha256={digest}">{name}</a>')
    curl = f"""\
while [ $# -gt 1 ]; do if [ "$1" = --output ]; then out=$2; fi; shift; done
case "$1" in
  */simple/uv/) cat "{tmp_path}/page" ;;
  https://files/*) cp "{tmp_path}/${{1##*/}}" "$out" ;;
  *) exit 22 ;;
esac"""
    write_program(programs / "curl", curl)
    write_program(programs / "unzip", f'exec "{sys.executable}" -m zipfile -e "$3" "$5"')
    tools = "bash cat chmod cp cut dirname env grep head ln mkdir sed sh sha256sum true uname"
    for tool in tools.split(" "):
        (programs / tool).symlink_to(shutil.which(tool))

    def install(index):
        (tmp_path / "temp").mkdir(exist_ok=True)
        environ = {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_PATH": str(tmp_path / "path"), "PATH": str(programs)}
        process = subprocess.run(
            [script], env={**environ, "PACKAGE_INDEX": index}, capture_output=True, text=True, check=False
        )
        return process, log.read_text().splitlines() if log.exists() else []

    return install


INDEX = "https://me:s3cret@index.example.org/simple/"


def test_a_runner_without_python_gets_uv_from_the_index_python_from_uv_and_locked_versions_only(runner, tmp_path):
    process, commands = runner(INDEX)
    assert process.returncode == 0, process.stderr
    assert "python install 3.11" in commands
    assert any(command.startswith("venv --quiet --no-project --python 3.11 ") for command in commands)
    (command,) = [command for command in commands if command.startswith("pip install ")]
    for option in ("--constraint", "--build-constraint"):
        assert f" {option} {tmp_path / 'clone' / 'requirements.txt'} " in command


def test_a_runner_that_cannot_get_uv_reports_what_is_missing_and_no_password(runner, tmp_path, snapshot):
    locked, page = tmp_path / "clone" / "images" / "uv.txt", tmp_path / "page"
    wheel = page.read_text()
    errors = {}
    for case, index, text in (("no index", "", wheel), ("no file", INDEX, "nothing"), ("another file", INDEX, wheel)):
        locked.write_text("uv==1.2.3 --hash=sha256:0\n")
        page.write_text(text)
        process, commands = runner(index)
        assert (process.returncode, commands) == (4, [])
        output = process.stdout + process.stderr
        errors[case] = [
            line.replace(os.uname().machine, "MACHINE") for line in output.splitlines() if line.startswith("::error::")
        ]
    assert "s3cret" not in str(errors)
    assert errors == snapshot


#: A Docker Engine with the images of two releases and of release lines.
DOCKER = """\
echo "$@" >>"{log}"
case "$1 $2" in
  "image ls") printf 'harness/%s\\n' tf2.15:cpu tf2.21:cpu tf2.21-keras-nightly:cpu tf-nightly:cpu '<none>' ;;
  "image inspect") printf '%s\\n' 2000000000 "${{SIZE:-1000}}" ;;
  save*) echo images ;;
esac
"""


@pytest.fixture
def images(tmp_path):
    """Return a function that runs the script that keeps images in GitHub's cache.

    It returns the outputs, the commands of docker, and what the script prints.
    """
    log, output = tmp_path / "log", tmp_path / "output"
    write_program(tmp_path / "docker", DOCKER.format(log=log))

    def run_images(command, **environ):
        log.write_text("")
        output.write_text("")
        defaults = {"RUNNER_ENVIRONMENT": "github-hosted", "ARGUMENTS": "-s step", "RUNNER_TEMP": str(tmp_path)}
        process = run_script(
            MEASURE / "images", command, programs=tmp_path, cwd=tmp_path, GITHUB_OUTPUT=output, **defaults | environ
        )
        process.check_returncode()
        return dict(line.split("=", 1) for line in output.read_text().splitlines()), log.read_text(), process.stdout

    return run_images


def test_images_of_releases_are_kept_in_the_cache_of_runners_that_are_new_each_night(images, tmp_path):
    outputs, commands, _ = images("save")
    assert outputs == {"saved": "true"}
    assert "save harness/tf2.15:cpu harness/tf2.21:cpu\n" in commands
    file = tmp_path / "harness-images.tar.gz"
    _, commands, _ = images("load")
    assert f"load --quiet --input {file}" in commands
    assert not file.exists()
    # too large for GitHub
    outputs, _, output = images("save", SIZE="7000000000")
    assert (outputs, file.exists()) == ({}, False)
    assert " 9 GB" in output
    ((_, key),) = images("key")[0].items()
    assert images("key", ARGUMENTS="-s step --seed 7 --shard 1/2")[0] == {"key": key}
    assert images("key", ARGUMENTS="-s step -e tf2.15")[0]["key"] != key
    assert images("key", RUNNER_ENVIRONMENT="self-hosted", MACHINE_ID="aws")[0] == {"key": key}
    assert images("key", RUNNER_ENVIRONMENT="self-hosted")[0] == {}
    assert images("key", REGISTRY="ghcr.io/me/")[0] == {}


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
def test_the_site_is_built_with_the_history_of_the_nights(night, project, remote, tmp_path):
    branch = tmp_path / "branch"
    shutil.copytree(ROOT / "docs" / "examples" / "week" / "nights", branch)
    git(branch, "init", "-q", "-b", "harness-history")
    git(branch, "add", ".")
    git(branch, "commit", "-q", "-m", "A week")
    git(branch, "push", "-q", str(remote), "harness-history")
    make_project(project)
    shutil.copy(ROOT / "Makefile", project)
    for name in ("requirements.txt", "pyproject.toml", "images/uv.txt"):
        (project / name).touch()
    write_program(project / ".venv" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    (project / ".venv" / ".ready").touch()
    jobs = night(1, "documentation.yml")
    assert results(jobs) == {"build": "success", "publish": "success"}, jobs["build"].log
    site = tmp_path / "night-1" / "artifacts" / "github-pages"
    assert "<title>History of 7 runs" in (site / "history.html").read_text()
    assert re.search(r'href="(\.\./)*history.html"', (site / "index.html").read_text())
    assert 'href="../../history.html"' in (site / "docs" / "reference" / "page.html").read_text()


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


def commit(project, *options):
    git(project, "add", ".")
    git(project, "commit", "-qm", "x", *options)


@pytest.mark.slow
def test_a_pull_request_that_makes_a_scenario_slower_fails_and_writes_nothing(night, project, github, remote, tmp_path):
    # as the project's own, but for what it measures with: no TensorFlow, and as short as can be
    workflow = project / "action.yml"
    options = "-e tf2.15 --budget 20m"
    assert options in workflow.read_text()
    short = "-e new --backend local --trust --rounds 4 --warmup 1ms --measure 10ms"
    workflow.write_text(workflow.read_text().replace(options, short))
    # GitHub checks out a merge, two commits deep
    git(project, "init", "-q", "-b", "main")
    waiting = MINE.replace("sum(range(1000))", "__import__('time').sleep(0.01)")
    (project / "scenarios" / "waits.py").write_text(waiting)
    commit(project)
    git(project, "push", "-q", remote, "main")
    git(project, "switch", "-qc", "mine")
    (project / "scenarios" / "waits.py").write_text(waiting.replace("0.01", "0.04"))
    commit(project)
    git(project, "switch", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "-m", "merge", "mine")
    git(project, "push", "-q", remote, "main:refs/pull/1/merge")
    shutil.rmtree(project)
    git(tmp_path, "init", "-q", project)
    git(project, "fetch", "-q", "--depth=2", remote.as_uri(), "refs/pull/1/merge")
    git(project, "checkout", "-q", "FETCH_HEAD")

    before = git(remote, "for-each-ref")
    job = night(1, "pull-request.yml")["compare"]
    assert job.result == "failure", job.log
    # the base against the head, without the other scenario, which is the same
    assert "scenarios/ways.py is the same in HEAD^1 and HEAD" in job.log
    assert re.search(r"head takes [345]\.\d+× .* as long as base", job.summary), job.summary
    # it has the token of a stranger: no comment, no issue, nothing pushed
    assert github.load().writes == []
    assert git(remote, "for-each-ref") == before
