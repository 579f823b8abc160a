"""A job in a bare container, as CI systems start it: no Docker Engine, no make, no git, no compiler, and the how-to."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stand_in.project import docker

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "measure-in-a-ci-container.md").read_text()
#: The commands of the section "Run it", in their order: install, the shortest first report, two releases.
INSTALL, FIRST, RELEASES = re.findall(r"^\$ (.*)$", PAGE.partition("## GPUs")[0], flags=re.MULTILINE)
SHORT = "--rounds 1 --warmup 50ms --measure 100ms"
BARE, SOCKET = "python:3.11-slim-bookworm", "/job/engine.sock"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def job(engine: object) -> Iterator[Run]:
    """Run a command in one container, after the page's first command. The engine's socket isn't at its usual place."""
    volumes = ["--volume", f"{ROOT}:/job/harness-checkout:ro", "--volume", f"/var/run/docker.sock:{SOCKET}"]
    # the host's network, for the package index
    (name,) = docker("run", "--detach", "--network", "host", "--workdir", "/job", *volumes, BARE, "sleep", "1h").split()

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", "exec", name, "sh", "-c", command], capture_output=True, text=True, check=False
        )

    try:
        done = run(INSTALL)
        assert done.returncode == 0, done.stderr
        yield run
    finally:
        docker("rm", "--force", name)


@pytest.mark.parametrize("tool", ["docker", "git", "make", "cc", "gcc"])
def test_the_container_is_bare(job: Run, tool: str) -> None:
    assert job(f"command -v {tool}").returncode


def test_the_shortest_command_gives_a_report_of_a_release_whose_python_is_there(job: Run) -> None:
    done = job(f"{FIRST} {SHORT} && cat results/*/launches.jsonl && cat results/*/report.md >&2")
    assert done.returncode == 0, done.stderr
    assert "Backend: local environments, because" in done.stderr
    environments = {
        json.loads(line)["cell"]["environment"] for line in done.stdout.splitlines() if line.startswith("{")
    }
    assert environments == {"tf2.13-py3.11"}
    sentence = "tf2.13-py3.11 replaces tf1.14 and tf2.0, which this machine cannot run (Python 3.7 is missing"
    progress, _, report = done.stderr.partition("Report: ")
    assert sentence in progress
    assert sentence in report
    assert "So this run does not compare tf1.14 and tf2.0." in report


def test_two_releases_are_compared(job: Run) -> None:
    done = job(f"{RELEASES} {SHORT} --results two && cat two/*/launches.jsonl")
    assert done.returncode == 0, done.stderr
    launches = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {launch["status"] for launch in launches} == {"ok"}
    environments = {launch["cell"]["environment"] for launch in launches}
    assert environments == set(re.findall(r"-e (\S+)", RELEASES)), done.stderr


def test_a_release_without_its_python_says_which_others_can_be_made(job: Run) -> None:
    done = job("harness matrix --suite quick -e tf1.14")
    assert done.returncode == 4, done.stderr
    assert "Python 3.7 isn't installed on this machine." in done.stderr
    assert f"Example: {RELEASES}" in done.stderr


def test_the_socket_of_an_engine_without_the_docker_command_is_not_enough(job: Run) -> None:
    """Jobs of GitHub have it."""
    done = job(f"DOCKER_HOST=unix://{SOCKET} {FIRST} --dry-run")
    assert done.returncode == 0, done.stderr
    assert "local environment" in done.stdout
