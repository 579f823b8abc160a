"""The script that proposes newer lock files: a bare git repository is the remote, and a fake `gh` records commands."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]

#: Lists the pull requests in the file `open`, and adds one.
GH = """#!/bin/sh
case "$2" in
  list) cat "{folder}/open" ;;
  create) echo 1 >"{folder}/open"; echo "$@" >>"{folder}/created" ;;
esac
"""


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=me", "-c", "user.email=me@localhost"]
    done = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder, remote = tmp_path / "clone", tmp_path / "me" / "harness.git"
    shutil.copytree(ROOT / ".github", folder / ".github")
    (folder / "images").mkdir()
    for name in ("requirements.txt", "images/uv.txt"):
        (folder / name).write_text("old\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
    git(tmp_path, "init", "-q", "--bare", str(remote))
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "gh"
    command.write_text(GH.format(folder=tmp_path))
    command.chmod(0o755)
    (tmp_path / "open").touch()
    return folder


def propose(clone: Path) -> str:
    parent = clone.parent
    places = {"GITHUB_SERVER_URL": parent.as_uri(), "GITHUB_REPOSITORY": "me/harness", "BASE": "main"}
    summary = parent / "summary.md"
    environ = {**os.environ, **places, "PATH": f"{parent / 'bin'}:{os.environ['PATH']}", "GITHUB_TOKEN": ""}
    subprocess.run([clone / ".github/locks/propose"], env={**environ, "GITHUB_STEP_SUMMARY": str(summary)}, check=True)
    return summary.read_text()


def test_without_newer_versions_nothing_is_proposed(clone: Path) -> None:
    assert "are the newest" in propose(clone)
    assert git(clone.parent / "me" / "harness.git", "branch", "--list") == ""


def test_newer_versions_are_one_pull_request_until_it_is_closed(clone: Path) -> None:
    remote = clone.parent / "me" / "harness.git"
    for text in ("new\n", "newer\n"):
        (clone / "requirements.txt").write_text(text)
        assert "requirements.txt" in propose(clone)
        assert git(remote, "show", "locks:requirements.txt") == text.strip()
    created = (clone.parent / "created").read_text().splitlines()
    assert len(created) == 1
    assert "--base main --head locks" in created[0]


def test_only_lock_files_are_in_the_commit(clone: Path) -> None:
    (clone / "images" / "uv.txt").write_text("new\n")
    (clone / "other").write_text("something\n")
    propose(clone)
    changed = git(clone.parent / "me" / "harness.git", "show", "--name-only", "--format=", "locks")
    assert changed == "images/uv.txt"


def test_a_vulnerability_without_a_fix_does_not_stop_the_updates() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "locks.yml").read_text())["jobs"].values()
    commands = [step["run"].split()[0] for step in job["steps"] if "run" in step]
    assert commands.index(".github/locks/propose") < commands.index(".venv/bin/pip-audit")
