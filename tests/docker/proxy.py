"""A proxy in front of the machine's Docker Engine, which itself is never touched."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness.backends.docker.engine import Engine


class Proxy:
    """A socket in front of an engine's, at a path or at a TCP port. Faults begin and end when a test says so."""

    def __init__(self, engine: Engine, path: Path | None = None) -> None:
        self._behind = engine.address.partition("://")[2]
        self._open = threading.Event()
        self._open.set()
        self._drops: bytes = b""
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._path = path
        self.listen()

    def listen(self) -> None:
        """Take connections, as an engine that has started."""
        if self._path:
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(str(self._path))
            self._server.listen()
            self.address = f"unix://{self._path}"
        else:
            self._server = socket.create_server(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
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
        if self._path:
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

    def _started(self, target: Callable[..., None], *arguments: object) -> None:
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
