"""The script that proposes newer lock files: a bare git repository is the remote, and a fake `gh` records commands."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.commands import git
from tests.conftest import ROOT
from tests.workflow import run_script, write_program

#: Lists the pull requests in the file `open`, and adds one.
GH = """\
case "$2" in
  list) cat "{folder}/open" ;;
  create) echo 1 >"{folder}/open"; echo "$@" >>"{folder}/created" ;;
esac
"""


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
    git(tmp_path, "init", "-q", "--bare", remote)
    write_program(tmp_path / "bin" / "gh", GH.format(folder=tmp_path))
    (tmp_path / "open").touch()
    return folder


def propose(clone: Path) -> str:
    parent = clone.parent
    summary = parent / "summary.md"
    run_script(
        clone / ".github/locks/propose", cwd=clone, programs=parent / "bin", GITHUB_SERVER_URL=parent.as_uri(),
        GITHUB_REPOSITORY="me/harness", BASE="main", GITHUB_TOKEN="", GITHUB_STEP_SUMMARY=summary,
    ).check_returncode()  # fmt: skip
    return summary.read_text()


def test_newer_versions_are_one_pull_request_of_lock_files(clone):
    remote = clone.parent / "me" / "harness.git"
    assert "are the newest" in propose(clone)
    assert git(remote, "branch", "--list") == ""
    for text in ("new\n", "newer\n"):
        (clone / "requirements.txt").write_text(text)
        assert "requirements.txt" in propose(clone)
        assert git(remote, "show", "locks:requirements.txt") == text.strip()
    created = (clone.parent / "created").read_text().splitlines()
    assert len(created) == 1
    assert "--base main --head locks" in created[0]
    (clone / "images" / "uv.txt").write_text("new\n")
    (clone / "other").write_text("something\n")
    propose(clone)
    changed = git(remote, "show", "--name-only", "--format=", "locks")
    assert changed == "images/uv.txt"


def test_a_vulnerability_without_a_fix_does_not_stop_the_updates():
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "locks.yml").read_text())["jobs"].values()
    commands = [step["run"].split()[0] for step in job["steps"] if "run" in step]
    assert commands.index(".github/locks/propose") < commands.index(".venv/bin/pip-audit")
