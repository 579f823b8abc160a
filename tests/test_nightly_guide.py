"""The guides to nightly runs: every command runs, every file is valid, and each workflow fits what it uses."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.test_nightly import seed

ROOT = Path(__file__).parents[1]
PAGES = ("run-nightly-in-ci.md", "nightly-runners.md")
GUIDE = "".join((ROOT / "docs" / "how-to" / name).read_text() for name in PAGES)

MINE = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "Mine"
# ///


def scenario(bench):
    bench.measure(lambda: sum(range(1000)))
"""


def blocks(language):
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    return [re.sub(r"(?m)^   ", "", block) if block.startswith("   ") else block for block in found]


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture
def environ(tmp_path, monkeypatch):
    """A shell with `harness`, in which nothing of this user's is touched."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    (tmp_path / "bin" / "harness").chmod(0o755)
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)
    return {
        **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "HARNESS_DATA_DIR": str(tmp_path / "data"), "HARNESS_MACHINE_LOCK": str(tmp_path / "lock"),
    }  # fmt: skip


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone of the fork with a scenario of one's own, whose remote has a history."""
    remote, folder = tmp_path / "remote.git", tmp_path / "clone"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    seed(tmp_path / "seed", remote, monkeypatch)

    def git(*arguments):
        who = ("-c", "user.name=N", "-c", "user.email=n@example.org")
        subprocess.run(["git", "-C", folder, *who, *arguments], check=True)

    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    for name in (".github", "docker-bake.hcl", "images", "scenarios"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "scenarios").unlink()
    (folder / "scenarios").mkdir()
    for path in (ROOT / "scenarios").iterdir():
        (folder / "scenarios" / path.name).symlink_to(path)
    (folder / "scenarios" / "mine.py").write_text(MINE)
    git("add", "scenarios/mine.py")
    git("commit", "-qm", "mine")
    git("remote", "add", "origin", str(remote))
    (folder / "scenarios" / "mine.py").write_text(MINE.replace("1000", "1001"))
    return folder


def test_every_command_runs_in_the_order_of_the_guide(clone, environ, tmp_path):
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        # keep the containers of other tests, which hold no lock that this user's `harness clean` knows
        engine = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"} if command == "harness clean" else {}
        done = subprocess.run(
            ["bash", "-c", command], cwd=clone, env={**environ, **engine}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("block", blocks("toml"))
def test_every_file_of_machines_is_one(block, tmp_path):
    (tmp_path / "nightly.toml").write_text(block)
    environ = {
        **os.environ, "NIGHTLY_FILE": str(tmp_path / "nightly.toml"), "GITHUB_RUN_ID": "1",
        "GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": os.devnull,
    }  # fmt: skip
    subprocess.run([ROOT / ".github" / "nightly" / "plan"], env=environ, check=True)
    assert (tmp_path / "output").read_text().startswith('jobs=[{"night": ')


@pytest.mark.parametrize("block", blocks("yaml"))
def test_every_workflow_gives_what_it_uses_the_inputs_and_permissions_that_it_needs(block):
    workflow = yaml.safe_load(block)
    (job,) = workflow["jobs"].values()
    uses = [value for value in [job, *job.get("steps", [])] if value.get("uses", "").startswith("OWNER/harness/")]
    (used,) = uses
    path, commit = used["uses"].removeprefix("OWNER/harness/").split("@")
    assert commit == "COMMIT"
    if "steps" in job:
        inputs = yaml.safe_load((ROOT / path / "action.yml").read_text())["inputs"]
        assert {name for name, each in inputs.items() if each.get("required")} <= used["with"].keys() <= inputs.keys()
        return
    called = yaml.safe_load((ROOT / path).read_text())
    inputs = (called[True]["workflow_call"] or {}).get("inputs", {})
    required = {name for name, each in inputs.items() if each.get("required")}
    assert required <= job.get("with", {}).keys() <= inputs.keys()
    # GitHub refuses to start a workflow whose jobs need more than the caller grants
    needed = [permission for value in called["jobs"].values() for permission in value["permissions"].items()]
    assert dict(sorted(needed)) == job["permissions"]


def test_the_workflow_for_pull_requests_is_our_own():
    block = next(block for block in blocks("yaml") if "name: Scenarios" in block)
    (job,) = yaml.safe_load(block)["jobs"].values()
    ours = yaml.safe_load((ROOT / ".github" / "workflows" / "pull-request.yml").read_text())["jobs"]["compare"]
    assert job["if"] == ours["if"]
    assert job["steps"][0] == ours["steps"][0] | {"with": job["steps"][0]["with"]}
    assert job["steps"][1]["with"] == ours["steps"][1]["with"]


def test_adopting_takes_twelve_lines():
    (block,) = (block for block in blocks("yaml") if "night.yml@COMMIT" in block)
    assert len(block.splitlines()) <= 12


def test_what_the_guide_names_is_there():
    for name in re.findall(r"`(\.(?:github|ci)/[^`]+)`", GUIDE):
        assert (ROOT / shlex.split(name)[0]).exists(), name
