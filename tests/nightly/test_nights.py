"""The workflows, run here in their order."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from harness.history.issues import LABEL
from harness.model.history import Decision, Key
from tests.commands import git
from tests.conftest import ROOT
from tests.github import ENVIRON, REPOSITORY
from tests.nightly.conftest import NIGHTLY, NIGHTS, SHORT, SUCCESS, list_files, logs, results, summaries
from tests.test_nightly_guide import MINE
from tests.test_site import make_project
from tests.webserver import serving
from tests.workflow import run_script, write_program


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
