"""Chooses the backend: Docker where it answers, local environments elsewhere."""

import sys
from enum import StrEnum
from pathlib import Path

from harness.model.backend import Backend
from harness.model.errors import CannotRunHereError


class BackendName(StrEnum):
    """What --backend takes."""

    AUTO = "auto"
    DOCKER = "docker"
    LOCAL = "local"


def choose(name: BackendName, root: Path, run: str, *, strangers: bool) -> tuple[Backend, str]:
    """The backend and why it was taken.

    `strangers`: a scenario from outside the project's scenarios/ is a stranger's program, which runs in a container or,
    where the user typed so, without one. Raises CannotRunHereError.
    """
    if name is BackendName.LOCAL:
        return _local(root, run), "local environments, as --backend local asks"
    try:
        docker = _docker(root, run)
        engine = docker.facts().get("engine", "")
    except CannotRunHereError as error:
        if name is BackendName.DOCKER:
            raise
        if strangers:
            raise CannotRunHereError(
                f"{error.message}\nA scenario from outside the project's scenarios/ needs a container.",
                "Start Docker, or, if you trust the file, type --backend local.",
            ) from None
        return _local(root, run), f"local environments, because {_clause(error.message)}"
    why = "as --backend docker asks" if name is BackendName.DOCKER else "because it answers"
    return docker, f"{engine}, {why}"


def announce(why: str) -> None:
    """Say on one line which backend was taken."""
    print(f"Backend: {why}.", file=sys.stderr)


def _docker(root: Path, run: str) -> Backend:
    from harness.backends.docker import DockerBackend

    return DockerBackend(root, run)


def _local(root: Path, run: str) -> Backend:
    from harness.backends.local import LocalBackend

    return LocalBackend(root, run)


def _clause(text: str) -> str:
    """An error's first line as a part of another sentence."""
    line = text.splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]
