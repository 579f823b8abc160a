"""Lists an engine's images without its SDK, where the engine is a socket of this machine.

Importing the SDK takes longer than all else that `harness images list` does. Where there is more to it than a socket (a
context, TLS, SSH), or the socket does not answer, the SDK is asked.
"""

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from harness.backends.engine import connect, sentences

_USUAL = "/var/run/docker.sock"
_SECONDS = 10.0


def list_images(filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The images that pass a filter, as the engine's API lists them. Raises CannotRunHereError where none answers."""
    path = _socket()
    if path:
        with suppress(OSError, HTTPException, ValueError):
            return _ask(path, filters)
    engine = connect()
    with sentences("list images"):
        return list(engine.api.images(filters=dict(filters)))


def _socket() -> str:
    """The socket that the `docker` command would use; empty where it would use something else."""
    named = os.environ.get("DOCKER_HOST", "")
    if named:
        return named.removeprefix("unix://") if named.startswith("unix://") else ""
    return "" if _has_context() else _USUAL


def _has_context() -> bool:
    """Whether a context says where the engine is."""
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        settings = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        settings = {}
    except (OSError, ValueError):
        return True  # the SDK says what is wrong with it
    named = os.environ.get("DOCKER_CONTEXT") or settings.get("currentContext")
    return named not in (None, "", "default")


def _ask(path: str, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Raises OSError, HTTPException or ValueError where there is no answer."""
    connection = _Connection(path)
    try:
        connection.request("GET", f"/images/json?{urlencode({'filters': json.dumps(filters)})}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise HTTPException(answer.reason)
        return list(json.load(answer))
    finally:
        connection.close()


class _Connection(HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
