"""Real builds."""

import contextlib
import dataclasses
import json
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
from harness.backends.docker.recipe import BASE, FROM, LOCK, PYTHON, RECIPE, make_tag
from harness.model.backend import ImageState, Stage
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError
from tests.docker.registry import serving
from tests.lacking import lacking

pytestmark = pytest.mark.docker

#: A Python that never had such an image: no registry and no machine has it.
NO_BASE = "3.0"


def name():
    return f"test-{secrets.token_hex(4)}"


def prepare(project):
    steps = []
    backend = DockerBackend(project.root, "test")
    return backend.prepare(project.requirements, steps.append), steps


def test_an_image_says_what_it_was_made_from(made, docker, requirement):
    image = docker.images.find(requirement)
    wanted = docker.images.labels(requirement)
    assert {label: image.labels[label] for label in (LOCK, RECIPE, PYTHON, FROM, BASE)}.items() <= wanted.items()
    assert image.labels["harness.environment"] == requirement.environment.name
    assert image.size_bytes > 10_000_000


def test_what_the_engine_has_is_told_by_one_question(docker, requirement):
    (image,) = docker.images.states([requirement])
    assert image.state is ImageState.BUILT
    assert image.id == docker.images.find(requirement).id
    changed = dataclasses.replace(requirement, lock=dataclasses.replace(requirement.lock, sha256="0" * 64))
    assert [image.state for image in docker.images.states([changed])] == [ImageState.OUTDATED]


def test_what_is_right_is_not_built_again(made):
    prepared, steps = prepare(made[0])
    assert steps == []
    assert next(iter(prepared.images.values())).startswith("sha256:")


def test_of_several_the_broken_ones_are_unavailable_with_the_step_and_its_words(project):
    good = project.add(name(), "3.11", lock="# nothing: one of several\n")
    base = project.add(name(), NO_BASE)
    broken = project.add(name(), "3.11", lock="no such requirement line\n")
    prepared, steps = prepare(project)
    assert prepared.images[good.environment.name].startswith("sha256:")
    lacking, failed = (prepared.unavailable[value.environment.name] for value in (base, broken))
    assert f"docker pull python:{NO_BASE}-slim-bookworm" in lacking.advice
    assert f"python:{NO_BASE}-slim-bookworm" in lacking.message
    assert "docker pull" not in failed.advice
    assert "environment 4/4: sh /tmp/install.sh" in failed.message
    assert "no such requirement line" in failed.message
    ends = {step.environment: step.stage for step in steps}
    assert [ends[value.environment.name] for value in (good, base, broken)] == [Stage.READY, Stage.FAILED, Stage.FAILED]


def test_where_no_base_can_be_had_nothing_runs(project):
    project.add(name(), NO_BASE)
    with pytest.raises(CannotRunHereError) as error:
        prepare(project)
    assert f"python:{NO_BASE}-slim-bookworm" in error.value.message
    assert "--backend local" in error.value.advice


def files(engine, image):
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
    added = files(engine, docker.images.find(requirement).id) - files(engine, "python:3.11-slim-bookworm")
    # a user's home, and what useradd keeps of the accounts before it
    account = {path for path in added if path.startswith("/home/harness") or re.fullmatch(r"/etc/\w+-", path)}
    assert added - account == {"/harness"}


@pytest.mark.parametrize("device", list(Device))
def test_an_environment_that_is_not_in_the_bake_file_is_built_from_its_own_lock(
    project, engine, device, tmp_path_factory
):
    lock = tmp_path_factory.mktemp("cache") / f"asked-{device.value}.txt"
    lock.write_text("# nothing: asked for\n")
    project.add(name(), "3.11")  # the bake file is of another
    environment = Environment(name(), "2.7.1", "3.11", "2021-11-02T00:00:00Z", asked="tensorflow==2.7.1")
    requirement = Requirement(environment, device, Lock(lock, "ab" * 32, {}))
    project.requirements[:] = [requirement]
    images = DockerBackend(project.root, "test").images
    try:
        prepared, _ = prepare(project)
        labels = images.find(requirement).labels
    finally:
        with contextlib.suppress(ImageNotFound):
            engine.api.remove_image(make_tag(requirement), force=True)
    assert prepared.images[environment.name].startswith("sha256:")
    assert (labels["harness.tensorflow"], labels["harness.environment"]) == ("2.7.1", environment.name)
    assert labels["harness.device"] == device.value


def test_images_are_pushed_and_a_runner_that_starts_empty_pulls_them(project, engine, monkeypatch):
    if not engine.is_here:
        lacking("a remote engine does not reach this machine's registry")
    with serving() as registry:
        monkeypatch.setenv("REGISTRY", f"{registry.address}/team/")
        # an image of a few bytes travels as one with a base does
        (project.root / "images" / "cpu.Dockerfile").write_text("FROM scratch\nCOPY uv.txt /uv.txt\n")
        requirement = project.add(name(), "3.11", lock="# nothing: pushed\n")
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


def test_an_interruption_ends_the_builds(project):
    """SIGINT while a step runs that would not end by itself: the process and its builders are gone."""
    project.add(name(), "3.11", lock="# nothing: interrupted\n")
    (project.root / "images" / "install.sh").write_text("echo begun; sleep infinity\n")
    script = f"""
import os, signal
from pathlib import Path
from harness.backends.docker.backend import DockerBackend
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.model.environment import Device

def interrupt(step):
    if "install.sh" in step.words:
        os.kill(os.getpid(), signal.SIGINT)

project = Project(Path({str(project.root)!r}))
requirements = [load_lock(project, each, Device.CPU) for each in load_environments(project).values()]
try:
    DockerBackend(project.root, "test").prepare(requirements, interrupt)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_build_ends_with_the_harness_that_is_killed(project):
    """Its builder is another process, which nobody asks to end."""
    named = name()
    project.add(named, "3.11", lock="# nothing: killed\n")
    (project.root / "images" / "install.sh").write_text("echo begun; sleep infinity\n")
    script = f"""
import os, signal
from pathlib import Path
from harness.backends.docker.backend import DockerBackend
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.model.environment import Device

def kill(step):
    if "install.sh" in step.words:
        os.kill(os.getpid(), signal.SIGKILL)

project = Project(Path({str(project.root)!r}))
requirements = [load_lock(project, each, Device.CPU) for each in load_environments(project).values()]
DockerBackend(project.root, "test").prepare(requirements, kill)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        # its builders write to the same pipe, which ends with the last of them
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    until = time.monotonic() + 30
    while builders := [entry for entry in psutil.process_iter(["cwd"]) if entry.info["cwd"] == str(project.root)]:
        if time.monotonic() > until:
            for builder in builders:
                builder.kill()
            pytest.fail(f"left: {builders}")
        time.sleep(0.05)


def test_an_image_like_its_lock_has_no_differences(docker, requirement):
    assert docker.verify(requirement).is_right


def test_the_bill_of_an_image_names_what_is_in_it_and_is_the_same_each_time(docker, requirement):
    bill = docker.make_sbom(requirement, docker.verify(requirement))
    assert bill == docker.make_sbom(requirement, docker.verify(requirement))
    told = json.loads(bill)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told["metadata"]["component"]["version"].startswith("sha256:")
    urls = {entry["purl"] for entry in told["components"]}
    assert {f"pkg:pypi/{name}@{version}" for name, version in requirement.lock.pins.items()} <= urls


def test_an_image_that_lacks_a_package_is_told(docker, requirement):
    lock = Lock(requirement.lock.path, requirement.lock.sha256, {"numpy": "1.16.4"})
    assert docker.verify(dataclasses.replace(requirement, lock=lock)).missing == {"numpy": "1.16.4"}
