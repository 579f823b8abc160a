"""A job in a bare container, as CI systems start it: no Docker Engine, no make, no git, no compiler, and the how-to."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import ROOT
from tests.stand_in.project import docker

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

PAGE = (ROOT / "docs" / "how-to" / "measure-in-ci.md").read_text()
#: The commands of the section "Run it", in their order: install, the shortest first report, two releases.
INSTALL, FIRST, RELEASES = re.findall(r"^\$ (.*)$", PAGE.partition("## GPUs")[0], flags=re.MULTILINE)
SHORT = "--rounds 1 --warmup 50ms --measure 100ms"
BARE, SOCKET = "python:3.11-slim-bookworm", "/job/engine.sock"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def job(need_bases: Callable[..., None]) -> Iterator[Run]:
    """Run a command in one container, after the page's first command. The engine's socket isn't at its usual place."""
    need_bases()
    volumes = ["--volume", f"{ROOT}:/job/harness-checkout:ro", "--volume", f"/var/run/docker.sock:{SOCKET}"]
    # the host's network, for the package index
    (name,) = docker("run", "--detach", "--network", "host", "--workdir", "/job", *volumes, BARE, "sleep", "1h").split()

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", "exec", name, "sh", "-c", command], capture_output=True, text=True, check=False
        )

    try:
        process = run(INSTALL)
        assert process.returncode == 0, process.stderr
        yield run
    finally:
        docker("rm", "--force", name)


def read_environments(output: str) -> set[str]:
    launches = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert {launch["status"] for launch in launches} == {"ok"}
    return {launch["cell"]["environment"] for launch in launches}


def test_a_bare_container_gives_a_report_of_a_release_whose_python_is_there(job):
    assert [tool for tool in ("docker", "git", "make", "cc", "gcc") if not job(f"command -v {tool}").returncode] == []
    process = job("harness matrix --suite quick -e tf1.14")
    assert process.returncode == 4, process.stderr
    assert f"Example: {RELEASES}" in process.stderr
    # jobs of GitHub have an engine's socket, and no docker command
    process = job(f"DOCKER_HOST=unix://{SOCKET} {FIRST} --dry-run")
    assert process.returncode == 0, process.stderr
    assert "local environment" in process.stdout

    process = job(f"{FIRST} {SHORT} && cat results/*/launches.jsonl && cat results/*/report.md >&2")
    assert process.returncode == 0, process.stderr
    assert "Backend: local environments, because" in process.stderr
    assert read_environments(process.stdout) == {"tf2.13-py3.11"}
    sentence = "tf2.13-py3.11 replaces tf1.14 and tf2.0, which this machine cannot run (Python 3.7 is missing"
    progress, _, report = process.stderr.partition("Report: ")
    assert sentence in progress
    assert sentence in report


@pytest.mark.campaign
def test_two_releases_are_compared(job):
    process = job(f"{RELEASES} {SHORT} --results two && cat two/*/launches.jsonl")
    assert process.returncode == 0, process.stderr
    assert read_environments(process.stdout) == set(re.findall(r"-e (\S+)", RELEASES)), process.stderr
