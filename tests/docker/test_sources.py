"""Wheels and images from sources, in a real engine: builds have no network and no rights."""

from pathlib import Path

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError
from harness.session.sources import with_asked
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


@pytest.fixture
def repository(engine: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRepository:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return SourceRepository(tmp_path / "mine")


def requirement(text: str) -> Requirement:
    environments, (name,) = with_asked(PROJECT, load_environments(PROJECT), [text], backend="docker")
    return load_lock(PROJECT, environments[name], Device.CPU)


def test_a_build_has_no_network_and_is_not_root(repository: SourceRepository) -> None:
    (repository.folder / "backend.py").write_text(TRIES)
    repository.commit("")
    with pytest.raises(CannotRunHereError, match=r"tried: \[1000, 'Network is unreachable'\]"):
        requirement(f"tf2.0+mine@{repository.folder}")


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
