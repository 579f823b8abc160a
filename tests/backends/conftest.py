import hashlib
from pathlib import Path

import pytest

from harness.backends.local.backend import LocalBackend
from harness.model.environment import Device, Environment, Lock, Requirement
from tests.conftest import ROOT


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def requirement_of(folder: Path, name: str = "test", python: str = "3.11") -> Requirement:
    """An environment whose lock names nothing."""
    path = folder / f"{name}-cpu.txt"
    path.write_text(f"# {name}: nothing\n")
    lock = Lock(path, hashlib.sha256(path.read_bytes()).hexdigest(), {})
    return Requirement(Environment(name, "0", python, "2020-01-01T00:00:00Z"), Device.CPU, lock)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """The cache folder and the requirement of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("prepared")
    requirement = requirement_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE_DIR", str(folder / "cache"))
        LocalBackend(ROOT, "test").prepare([requirement], lambda line: None)
    return folder / "cache", requirement


@pytest.fixture
def local(prepared, monkeypatch):
    """A backend that has that environment."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(prepared[0]))
    return LocalBackend(ROOT, "test-run")


@pytest.fixture
def requirement(prepared):
    return prepared[1]
