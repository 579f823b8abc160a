"""Wheels and images from sources, in a real engine: builds have no network and no rights."""

import subprocess
from pathlib import Path

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.machine import git
from harness.model.backend import WheelRecipe
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError
from harness.session.sources import resolve_requested
from tests.sources import SourceRepository

PROJECT = Project(Path(__file__).parents[2])

#: What a build of a stranger's package may try. Its last line tells what it could do.
TRIES = """\
import os, socket

def build_wheel(folder, config_settings=None, metadata_directory=None):
    found = [os.getuid()]
    try:
        socket.create_connection(("192.0.2.1", 80), 3)
        found.append("network")
    except OSError as error:
        found.append(error.strerror)
    raise SystemExit("tried: %s" % found)
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
def repository(engine: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRepository:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return SourceRepository(tmp_path / "mine")


def requirement(text: str) -> Requirement:
    environments, (name,) = resolve_requested(PROJECT, load_environments(PROJECT), [text], backend="docker")
    return load_lock(PROJECT, environments[name], Device.CPU)


def test_a_build_has_no_network_and_is_not_root(repository: SourceRepository) -> None:
    (repository.folder / "backend.py").write_text(TRIES)
    repository.commit("")
    with pytest.raises(CannotRunHereError, match=r"tried: \[1000, 'Network is unreachable'\]"):
        requirement(f"tf2.0+mine@{repository.folder}")


def test_a_build_has_all_files_of_the_commit(repository: SourceRepository) -> None:
    (repository.folder / ".dockerignore").write_text("requires.txt\n")
    (repository.folder / ".gitattributes").write_text("requires.txt export-ignore\n")
    repository.commit("")
    assert requirement(f"tf2.0+mine@{repository.folder}").lock.pins["mine"] == "1.0"


def built(repository: SourceRepository, *leaves: tuple[str, int]) -> list[str]:
    """Build a source that leaves files of these names and sizes, and return the names of those that come out."""
    (repository.folder / "backend.py").write_text(LEAVES.format(leaves=leaves))
    (repository.folder / "build.txt").touch()
    repository.commit("")
    source, out = repository.folder.with_name("source"), repository.folder.with_name("out")
    (source / "files").mkdir(parents=True)
    git.read_commit(repository.folder, "HEAD").export(source / "files")
    recipe = WheelRecipe("mine", "3.7", source, repository.folder / "build.txt", 0, "1.0")
    DockerBackend(PROJECT.root, "sources").build_wheel(recipe, out)
    return sorted(path.name for path in out.iterdir())


def test_one_file_leaves_a_build(repository: SourceRepository) -> None:
    assert built(repository, (WHEEL, 5), ("other.txt", 5)) == [WHEEL]


@pytest.mark.parametrize("leaves", [[(WHEEL, 5), ("other-1.0-py3-none-any.whl", 5)], [(WHEEL, 2**29 + 1)]])
def test_several_wheels_and_a_large_one_do_not_leave_a_build(
    repository: SourceRepository, leaves: list[tuple[str, int]]
) -> None:
    with pytest.raises(CannotRunHereError, match="must leave one wheel of at most 512 MiB"):
        built(repository, *leaves)


def test_a_builder_without_the_images_of_the_engine_is_refused(
    repository: SourceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("")
    monkeypatch.setenv("BUILDX_BUILDER", "harness-test-sources")
    buildx = ["docker", "buildx"]
    subprocess.run([*buildx, "create", "--driver", "docker-container", "--name", "harness-test-sources"], check=True)
    try:
        with pytest.raises(CannotRunHereError, match="a builder with the driver docker-container"):
            requirement(f"tf2.0+mine@{repository.folder}")
    finally:
        subprocess.run([*buildx, "rm", "harness-test-sources"], check=True)


def test_the_image_has_the_wheel_over_its_base(repository: SourceRepository) -> None:
    repository.commit("CALLS = 1\n")
    wanted = requirement(f"tf2.0+mine@{repository.folder}")
    backend = DockerBackend(PROJECT.root, "sources")
    try:
        backend.prepare([wanted], lambda _: None)
        found = backend.verify(wanted)
        assert (found.installed["mine"], found.is_right) == ("1.0", True)
        assert backend.unprepared([wanted]) == []
    finally:
        backend.engine.api.remove_image(f"harness/{wanted.environment.name}:cpu", force=True)
