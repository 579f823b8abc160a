"""Wheels and images from sources, in a real engine: builds have no network and no rights."""

import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import parse_requested
from harness.machine import git
from harness.model.backend import WheelRecipe
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError
from harness.project import Project
from harness.session.sources import WheelMaker
from tests.sources import SourceRepository

pytestmark = pytest.mark.docker

PROJECT = Project(Path(__file__).parents[2])

#: What a build of a stranger's package may try. Its last line tells what it could do.
TRIES = """\
import os, socket

def build_wheel(folder, config_settings=None, metadata_directory=None):
    results = [os.getuid()]
    try:
        socket.create_connection(("192.0.2.1", 80), 3)
        results.append("network")
    except OSError as error:
        results.append(error.strerror)
    raise SystemExit("tried: %s" % results)
"""


#: Leaves what it is told to in the folder for the wheel.
LEAVES = """\
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    for name, size in {leaves}:
        with open(os.path.join(folder, name), "w") as file:
            file.truncate(size)
    return "mine-1.0-py3-none-any.whl"
"""
WHEEL = "mine-1.0-py3-none-any.whl"


@pytest.fixture
def repository(need_images: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRepository:
    need_images("tf2.0")
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return SourceRepository(tmp_path / "mine")


def requirement(text: str) -> Requirement:
    environments, (name,) = WheelMaker(PROJECT, "local").resolve(load_environments(PROJECT), [parse_requested(text)])
    return load_lock(PROJECT, environments[name], Device.CPU)


def test_a_build_has_no_network_and_is_not_root(repository):
    (repository.folder / "backend.py").write_text(TRIES)
    repository.commit("")
    with pytest.raises(CannotRunHereError, match=r"tried: \[1000, 'Network is unreachable'\]"):
        requirement(f"tf2.0+mine@{repository.folder}")


def build(repository: SourceRepository, out: str, *leaves: tuple[str, int]) -> list[str]:
    """Build a source that leaves files of these names and sizes, and return the names of those that come out."""
    (repository.folder / "backend.py").write_text(LEAVES.format(leaves=leaves))
    (repository.folder / "build.txt").touch()
    repository.commit("")
    source, wheels = repository.folder.with_name(f"source-{out}"), repository.folder.with_name(out)
    (source / "files").mkdir(parents=True)
    git.read_commit(repository.folder, "HEAD").export(source / "files")
    recipe = WheelRecipe("mine", "3.7", source, repository.folder / "build.txt", 0, "1.0")
    DockerBackend(PROJECT.root, "sources").build_wheel(recipe, wheels)
    return sorted(path.name for path in wheels.iterdir())


def test_one_wheel_leaves_a_build_and_neither_several_nor_a_large_one(repository):
    assert build(repository, "one", (WHEEL, 5), ("other.txt", 5)) == [WHEEL]
    for number, leaves in enumerate([[(WHEEL, 5), ("other-1.0-py3-none-any.whl", 5)], [(WHEEL, 2**29 + 1)]]):
        with pytest.raises(CannotRunHereError, match="512 MiB"):
            build(repository, f"refused{number}", *leaves)


def test_a_builder_without_the_images_of_the_engine_is_refused(repository, monkeypatch):
    repository.commit("")
    name, buildx = f"harness-test-{secrets.token_hex(4)}", ["docker", "buildx"]
    monkeypatch.setenv("BUILDX_BUILDER", name)
    subprocess.run([*buildx, "create", "--driver", "docker-container", "--name", name], check=True)
    try:
        with pytest.raises(CannotRunHereError, match="docker-container"):
            requirement(f"tf2.0+mine@{repository.folder}")
    finally:
        subprocess.run([*buildx, "rm", name], check=True)


def test_the_image_has_the_wheel_of_all_files_of_the_commit_over_its_base(repository):
    (repository.folder / ".dockerignore").write_text("requires.txt\n")
    (repository.folder / ".gitattributes").write_text("requires.txt export-ignore\n")
    repository.commit("CALLS = 1\n")
    wanted = requirement(f"tf2.0+mine@{repository.folder}")
    assert wanted.lock.pins["mine"] == "1.0"
    backend = DockerBackend(PROJECT.root, "sources")
    try:
        backend.prepare([wanted], lambda _: None)
        verification = backend.verify(wanted)
        assert verification.is_right
        assert backend.unprepared([wanted]) == []
    finally:
        backend.engine.api.remove_image(f"harness/{wanted.environment.name}:cpu", force=True)
