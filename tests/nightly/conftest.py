"""A repository with the real workflows: a bare git repository is the remote, a fake `gh` has the issues."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import write_project
from tests.commands import git
from tests.conftest import ROOT, copy_part
from tests.github import REPOSITORY, Repository
from tests.workflow import Runner, install_harness, push_history

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
                copy_part(folder, project)
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
