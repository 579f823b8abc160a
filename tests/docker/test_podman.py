"""Podman, with Docker's interface: it builds images, launches, and leaves nothing behind."""

import json
import os
import secrets
import shutil
import subprocess
import time

import pytest

from tests.cli.conftest import SCENARIO
from tests.commands import run_harness
from tests.conftest import copy_part
from tests.docker.conftest import BASE
from tests.lacking import ALL, lacking


@pytest.fixture
def podman(tmp_path):
    """Podman's socket. Its base image is the one of Docker Engine, because a registry isn't always there."""
    if not shutil.which("podman"):
        lacking("needs Podman: .ci/podman installs it", ALL)
    # Podman raises these limits as far as root may, but in a container, root may not
    (tmp_path / "containers.conf").write_text(
        '[containers]\ndefault_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]\n'
    )
    environ = {**os.environ, "CONTAINERS_CONF": str(tmp_path / "containers.conf")}
    image = BASE.format("3.11")
    if subprocess.run(["podman", "image", "exists", image], check=False).returncode:
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(["podman", "load", "--quiet"], stdin=saved.stdout, check=True)
    path = tmp_path / "podman.sock"
    with subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{path}"], env=environ) as service:
        while not path.exists() and service.poll() is None:
            time.sleep(0.05)
        yield f"unix://{path}"
        service.terminate()


@pytest.mark.docker
def test_podman_builds_images_and_measures(podman, project, tmp_path):
    names = [project.add(f"test-{secrets.token_hex(4)}", "3.11").environment.name for _ in range(2)]
    copy_part("scenarios/kit", project.root)
    (project.root / "scenarios" / "ways.py").write_text(SCENARIO)
    environ = {"DOCKER_HOST": podman, "HARNESS_PROJECT": str(project.root)}
    environments = [word for name in names for word in ("-e", name)]
    short = ["--rounds", "2", "--warmup", "0ms", "--measure", "10ms", "--results", str(tmp_path / "results")]
    try:
        process = run_harness("matrix", "-s", "ways", "-a", "way=fine", *environments, *short, **environ)
        assert process.returncode == 0, process.stderr
        assert "Backend: Podman" in process.stderr
        assert "useradd" in process.stderr  # a step of the build
        (folder,) = (tmp_path / "results").iterdir()
        launches = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
        assert {launch["cell"]["environment"] for launch in launches} == set(names)
        assert {launch["status"] for launch in launches} == {"ok"}
        again = run_harness("images", "build", *names, **environ)
        assert "building" not in again.stderr, again.stderr
        label = f"label=harness.run={folder.name}"
        assert not subprocess.check_output(["podman", "ps", "--all", "--quiet", "--filter", label])
    finally:
        images = [f"harness/{name}:cpu" for name in names]
        subprocess.run(["podman", "rmi", "--force", *images], capture_output=True, check=False)
