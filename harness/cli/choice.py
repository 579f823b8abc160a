"""Chooses the backend: Docker where it answers, local environments elsewhere."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.backend import Backend
from harness.model.errors import CannotRunHereError, UsageError

if TYPE_CHECKING:
    from harness.backends.docker import DockerBackend


class BackendName(StrEnum):
    """What --backend takes."""

    AUTO = "auto"
    DOCKER = "docker"
    LOCAL = "local"


def choose(
    name: BackendName, root: Path, run: str, *, strangers: bool, gpus: Sequence[str] = ()
) -> tuple[Backend, str]:
    """The backend and why it was taken.

    `strangers`: a scenario from outside the project's scenarios/ is a stranger's program, which runs in a container or,
    where the user typed so, without one. `gpus`: those of every launch, which a container alone can have. Raises
    CannotRunHereError, and UsageError for GPUs with `--backend local`.
    """
    if name is BackendName.LOCAL:
        if gpus:
            raise UsageError(
                "--gpu needs containers: a local environment would take this machine's CUDA, which no lock pins.",
                "Leave --backend local out.",
            )
        return _local(root, run), "local environments, as --backend local asks"
    try:
        docker = _docker(root, run)
        engine = docker.facts().get("engine", "")
    except CannotRunHereError as error:
        if name is BackendName.DOCKER:
            raise
        if gpus:
            raise CannotRunHereError(f"{error.message}\n--gpu needs containers.", "Start Docker.") from None
        if strangers:
            raise CannotRunHereError(
                f"{error.message}\nA scenario from outside the project's scenarios/ needs a container.",
                "Start Docker, or, if you trust the file, type --backend local.",
            ) from None
        return _local(root, run), f"local environments, because {_clause(error.message)}"
    why = "as --backend docker asks" if name is BackendName.DOCKER else "because it answers"
    if gpus:
        docker.check_gpus(gpus)
        engine += f" with GPU {', '.join(gpus)} by {docker.access.way.value}"
    return docker, f"{engine}, {why}"


def announce(why: str) -> None:
    """Say on one line which backend was taken."""
    print(f"Backend: {why}.", file=sys.stderr)


def _docker(root: Path, run: str) -> "DockerBackend":
    from harness.backends.docker import DockerBackend

    return DockerBackend(root, run)


def _local(root: Path, run: str) -> Backend:
    from harness.backends.local import LocalBackend

    return LocalBackend(root, run)


def _clause(text: str) -> str:
    """An error's first line as a part of another sentence."""
    line = text.splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]
