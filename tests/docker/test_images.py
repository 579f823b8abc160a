"""Real builds."""

import contextlib
import dataclasses
import re
import secrets
import signal
import subprocess
import sys
import time

import psutil
import pytest
from docker.errors import ImageNotFound

from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.recipe import make_tag
from harness.environments.locks import load_lock, lock_file
from harness.model.backend import ImageState, Stage
from harness.model.environment import Device, Environment, Lock
from harness.project import Project
from tests.docker.registry import serving
from tests.lacking import lacking

pytestmark = pytest.mark.docker

#: A Python that never had such an image: no registry and no machine has it.
NO_BASE = "3.0"


def make_name():
    return f"test-{secrets.token_hex(4)}"


def prepare(project):
    steps = []
    return DockerBackend(project.root, "test").prepare(project.requirements, steps.append), steps


def test_an_image_is_what_its_lock_says_and_is_not_built_again(built, docker, requirement):
    image = docker.images.find(requirement)
    wanted = docker.images.labels(requirement)
    labels = ("harness.lock", "harness.recipe", "harness.python", "harness.from", "harness.base")
    assert {label: image.labels[label] for label in labels}.items() <= wanted.items()
    assert image.labels["harness.environment"] == requirement.environment.name
    assert image.size_bytes > 10_000_000
    changed = dataclasses.replace(requirement, lock=dataclasses.replace(requirement.lock, sha256="0" * 64))
    states = docker.images.states([requirement, changed])
    assert [(state.state, state.id) for state in states] == [
        (ImageState.BUILT, image.id),
        (ImageState.OUTDATED, image.id),
    ]
    prepared, steps = prepare(built[0])
    assert ([*prepared.images.values()], steps) == ([image.id], [])


def test_an_image_is_verified(docker, requirement):
    verification = docker.verify(requirement)
    assert verification.is_right
    lock = Lock(requirement.lock.path, requirement.lock.sha256, {"numpy": "1.16.4"})
    assert docker.verify(dataclasses.replace(requirement, lock=lock)).missing == {"numpy": "1.16.4"}


def test_of_several_the_broken_ones_are_unavailable_with_the_step_and_its_words(project):
    good = project.add(make_name(), "3.11", lock="# nothing: one of several\n")
    base = project.add(make_name(), NO_BASE)
    broken = project.add(make_name(), "3.11", lock="no such requirement line\n")
    prepared, steps = prepare(project)
    assert prepared.images[good.environment.name].startswith("sha256:")
    without_base, failed = (prepared.unavailable[entry.environment.name] for entry in (base, broken))
    assert f"docker pull python:{NO_BASE}-slim-bookworm" in without_base.advice
    assert f"python:{NO_BASE}-slim-bookworm" in without_base.message
    assert "docker pull" not in failed.advice
    assert "environment 4/4: sh /tmp/install.sh" in failed.message
    assert "no such requirement line" in failed.message
    ends = {step.environment: step.stage for step in steps}
    assert [ends[entry.environment.name] for entry in (good, base, broken)] == [Stage.READY, Stage.FAILED, Stage.FAILED]


def list_files(engine, image):
    """Every path in an image but those of the environment and of the kernel's own file systems."""
    command = ["find", "/", "-xdev", "-path", "/opt/environment", "-prune", "-o", "-print"]
    container = engine.api.create_container(image, command=command, user="root")
    try:
        engine.api.start(container)
        engine.api.wait(container)
        return set(engine.api.logs(container, stderr=False).decode().splitlines())
    finally:
        engine.api.remove_container(container, force=True)


def test_an_image_holds_nothing_beside_its_base_and_its_lock(docker, requirement, engine):
    added = list_files(engine, docker.images.find(requirement).id) - list_files(engine, "python:3.11-slim-bookworm")
    # a user's home, and what useradd keeps of the accounts before it
    account = {path for path in added if path.startswith("/home/harness") or re.fullmatch(r"/etc/\w+-", path)}
    assert added - account == {"/harness"}


@pytest.mark.parametrize("device", list(Device))
def test_an_environment_that_is_not_in_the_bake_file_is_built_from_its_lock_in_the_cache(project, engine, device):
    project.add(make_name(), "3.11")  # the bake file is of another
    version = f"2.{secrets.randbelow(10**6)}"
    environment = Environment(make_name(), version, "3.11", "2021-11-02T00:00:00Z", asked=f"tensorflow=={version}")
    lock = lock_file(Project(project.root), environment, device)
    lock.parent.mkdir(parents=True)
    lock.write_text("# nothing: asked for\n")
    requirement = load_lock(Project(project.root), environment, device)
    project.requirements[:] = [requirement]
    backend = DockerBackend(project.root, "test")
    try:
        prepared, _ = prepare(project)
        labels = backend.images.find(requirement).labels
        assert device is Device.GPU or backend.verify(requirement).is_right
    finally:
        with contextlib.suppress(ImageNotFound):
            engine.api.remove_image(make_tag(requirement), force=True)
    assert prepared.images[environment.name].startswith("sha256:")
    assert (labels["harness.tensorflow"], labels["harness.environment"]) == (version, environment.name)
    assert labels["harness.device"] == device.value


def test_images_are_pushed_and_a_runner_that_starts_empty_pulls_them(project, engine, monkeypatch):
    if not engine.is_here:
        lacking("a remote engine does not reach this machine's registry")
    with serving() as registry:
        monkeypatch.setenv("REGISTRY", f"{registry.address}/team/")
        # an image of a few bytes travels as one with a base does
        (project.root / "images" / "cpu.Dockerfile").write_text("FROM scratch\nCOPY uv.txt /uv.txt\n")
        requirement = project.add(make_name(), "3.11", lock="# nothing: pushed\n")
        images = DockerBackend(project.root, "test").images
        try:
            built, _ = prepare(project)
            images.push(project.requirements, lambda step: None)
            engine.api.remove_image(make_tag(requirement), force=True)
            assert images.find(requirement) is None
            pulled, steps = prepare(project)
        finally:
            with contextlib.suppress(ImageNotFound):
                engine.api.remove_image(make_tag(requirement), force=True)
    assert pulled == built
    assert "pulled in" in steps[-1].words


#: Builds the images of a project, and gets a signal while a step runs that would not end by itself.
SIGNALLED = """
import os, signal, sys
from pathlib import Path
from harness.backends.docker.backend import DockerBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.project import Project
from harness.model.environment import Device

def send(step):
    if "install.sh" in step.words:
        os.kill(os.getpid(), int(sys.argv[2]))

project = Project(Path(sys.argv[1]))
requirements = [load_lock(project, entry, Device.CPU) for entry in load_environments(project).values()]
try:
    DockerBackend(project.root, "test").prepare(requirements, send)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_build_ends_with_the_harness_that_is_interrupted_or_killed(project, number):
    """Its builder is another process, which nobody asks to end after a kill."""
    project.add(make_name(), "3.11", lock=f"# nothing: {number}\n")
    (project.root / "images" / "install.sh").write_text("echo begun; sleep infinity\n")
    command = [sys.executable, "-c", SIGNALLED, str(project.root), str(int(number))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        # its builders write to the same pipe, which ends with the last of them
        output, _ = process.communicate(timeout=60)
    assert process.returncode == (0 if number is signal.SIGINT else -number)
    assert output == "interrupted\n" or number is signal.SIGKILL
    until = time.monotonic() + 30
    while builders := [entry for entry in psutil.process_iter(["cwd"]) if entry.info["cwd"] == str(project.root)]:
        if time.monotonic() > until:
            for builder in builders:
                builder.kill()
            pytest.fail(f"left: {builders}")
        time.sleep(0.05)
