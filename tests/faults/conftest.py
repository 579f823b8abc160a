"""A real engine behind a proxy that freezes, drops or delays it, itself never touched; and a small disk."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
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


class Proxy:
    """A socket in front of an engine's. What goes wrong begins, and ends, when it is told to."""

    def __init__(self, path: Path, behind: str) -> None:
        self.address = f"unix://{path}"
        self._behind = behind
        self._open = threading.Event()
        self._open.set()
        self._drops: bytes = b""
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._path = path
        self.listen()

    def listen(self) -> None:
        """Take connections, as an engine that has started."""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._path))
        self._server.listen()
        self._ends.append(self._server)
        self._started(self._serve)

    def freeze(self) -> None:
        """From now on nothing passes; connections stay open, and new ones are taken."""
        self._open.clear()

    def thaw(self) -> None:
        """Let pass what was held back."""
        self._open.set()

    def swallow(self, words: bytes) -> None:
        """From now on requests with these words do not reach the engine, and get no answer."""
        self._drops = words

    def drop(self) -> None:
        """Close all connections and take no new ones, as an engine that has ended."""
        self._path.unlink(missing_ok=True)
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it."""
        self.thaw()
        self.drop()
        for thread in self._threads:
            thread.join(5)
        for end in self._ends:
            end.close()

    def _started(self, target, *arguments) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self._threads[-1].start()

    def _serve(self) -> None:
        server = self._server
        with suppress(OSError):
            while True:
                near = server.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                self._ends += [near, far]
                far.connect(self._behind)
                self._started(self._relay, near, far, True)
                self._started(self._relay, far, near, False)

    def _relay(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(2**16):
                self._open.wait()
                if not (is_request and self._drops and self._drops in chunk):
                    target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(engine, tmp_path):
    """A proxy before the engine of this machine."""
    proxy = Proxy(tmp_path / "engine.sock", engine.address.partition("://")[2])
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
