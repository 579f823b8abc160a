"""A real engine behind a proxy that freezes, drops or delays it, itself never touched; and a small disk."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import _environments, harness
from tests.docker.conftest import (
    built,
    docker,
    engine,
    need_bases,
    pytest_runtest_makereport,
    requirement,
    shared_folder,
)
from tests.docker.proxy import Proxy
from tests.lacking import ALL, lacking

__all__ = [
    "_environments",
    "built",
    "docker",
    "engine",
    "harness",
    "need_bases",
    "pytest_runtest_makereport",
    "requirement",
    "shared_folder",
]


@pytest.fixture
def proxy(engine, tmp_path):
    """A proxy before the engine of this machine."""
    proxy = Proxy(engine, tmp_path / "engine.sock")
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def _disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("disk")
    process = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160m", "harness-test", path], capture_output=True, text=True, check=False
    )
    if process.returncode:
        lacking(f"a disk of the test's own needs root: {process.stderr.strip()}", ALL)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture
def disk(_disk: Path) -> Iterator[Path]:
    """A small disk of the tests' own, with nothing on it but a cache that has both environments."""
    yield _disk
    subprocess.run(["mount", "-o", "remount,rw", _disk], check=True)
    for path in _disk.iterdir():
        if path.name != "cache":
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
