"""The comment of a pull request: rendered from results that are only data, and posted once."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.run import Stop, StopReason
from tests.cli.conftest import stored
from tests.factories import cells, rounds, run, scenario
from tests.github import ENVIRON, Repository

SCRIPTS = Path(__file__).parents[1] / ".github" / "pull-request"
MARK = "<!-- harness-comment -->\n"


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Render an artifact; returns the process, and the text or None."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    (tmp_path / "bin" / "harness").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS.parents[1]))

    def rendered(results):
        file = tmp_path / "comment.md"
        done = subprocess.run([SCRIPTS / "render", results, file], capture_output=True, text=True, check=False)
        return done, file.read_text() if file.exists() else None

    return rendered


@pytest.fixture
def results(tmp_path):
    """Return an artifact with a run whose command somebody has made up."""
    planned = cells()
    seconds = {entry: 0.02 if entry == planned[-1] else 0.01 for entry in planned}
    title = scenario(title="@all https://evil.example _www.evil.example GH-5 fixes #5")
    made = run(planned, controlled=True, id="2026-11-01T04-10-00Z-aaaa", scenarios=[title])
    made = replace(
        made, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in made.plan.groups},
        command=("harness", "matrix", "-e", "tf2.21+keras@pr/1", "--repository", "https://host.example", "```\n@a"),
    )  # fmt: skip
    return stored(tmp_path / "artifact", made, rounds(seconds, 5, 0.002, 1)).parent


def test_the_comment_has_the_table_the_verdict_the_control_and_the_command(render, results):
    done, text = render(results)
    assert done.returncode == 0, done.stderr
    assert text.startswith(MARK)
    assert "| slower" in text
    assert "A/A control: " in text
    assert "harness matrix " in text


def test_no_text_of_the_artifact_mentions_anybody_links_or_closes_an_issue(render, results):
    _, text = render(results)
    # GitHub acts on nothing in a block of code
    outside, command, rest = text.removeprefix(MARK).split("```")
    assert "evil" in outside
    for word in ("@all", "://", "www.", "GH-5", "#5", "<!--"):
        assert word not in outside
    assert "@a" in command
    assert rest.strip() == ""


def test_the_command_can_be_copied(render, results):
    _, text = render(results)
    assert "\nharness matrix -e tf2.21+keras@pr/1 --repository https://host.example " in text


def test_a_job_that_measured_nothing_says_why(render, tmp_path):
    (tmp_path / "failure").write_text("harness: Docker isn't running.\n``` @all\n")
    _, text = render(tmp_path)
    expected = f"{MARK}### Nothing was measured\n\n```text\nharness: Docker isn't running.\n''' @all\n```\n"
    assert text.rstrip() == expected.rstrip()


def test_without_results_there_is_no_comment(render, tmp_path):
    done, text = render(tmp_path / "nowhere")
    assert (done.returncode, text) == (0, None)


def test_an_artifact_with_links_is_refused(render, results):
    (results / "failure").symlink_to("/etc/passwd")
    done, text = render(results)
    assert (done.returncode, text) == (1, None)
    assert "::error::The artifact has links" in done.stderr


def test_one_comment_is_posted_and_updated(tmp_path):
    github = Repository(tmp_path / "repository.json")
    github.pulls = [{"number": 7, "headRefOid": "aaa"}, {"number": 8, "headRefOid": "bbb"}]
    # somebody else's comment with the mark isn't the one to edit
    github.talk = [[1, "somebody", MARK]]
    github.save()
    github.install(tmp_path)
    text = tmp_path / "comment.md"
    for number, head in (("1", "aaa"), ("2", "aaa"), ("3", "closed")):
        text.write_text(f"{MARK}{number}\n")
        environ = {**os.environ, **ENVIRON, "HEAD_SHA": head, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run([SCRIPTS / "post", text], env=environ, check=True)
    github = github.load()
    assert github.writes == ["POST 7/comments", "PATCH comments/2"]
    assert github.talk[1:] == [[2, "github-actions[bot]", f"{MARK}2\n"]]


def test_no_text_is_no_comment(tmp_path):
    subprocess.run([SCRIPTS / "post", tmp_path / "none.md"], check=True)
