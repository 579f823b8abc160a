"""The backends that there are, and the choice between them: each is one file, or one folder, and one entry here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.run import Run

# the command line asks for the names alone, and is to start fast
if TYPE_CHECKING:
    from harness.backends.protocol import ImageBackend, RegisteredBackend

#: The value of `--backend` beside names: the first backend that works here.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """A backend: its name for `--backend`, and its class, which is imported at first use.

    `title` names it in a sentence. `in_containers`: it runs launches in containers, from images. So it may run an
    untrusted script, can give GPUs, and is an ImageBackend.
    """

    name: str
    title: str
    kind: str
    in_containers: bool = False

    def open(self, root: Path, run: str) -> "RegisteredBackend":
        """The backend for a run's id, with the project's folder."""
        return self.load()(root, run)

    def load(self) -> "type[RegisteredBackend]":
        """Its class."""
        return cast("type[RegisteredBackend]", resolve_name(self.kind))


#: All of them, in the order in which `auto` prefers them.
ENTRIES = (
    BackendEntry(
        "docker",
        "Docker",
        "harness.backends.docker.backend:DockerBackend",
        in_containers=True,
    ),
    BackendEntry("local", "local environments", "harness.backends.local.backend:LocalBackend"),
)

#: What `--backend` takes.
CHOICES = (AUTO, *(entry.name for entry in ENTRIES))


def known(name: str) -> str:
    """Return the valid value of `--backend`. Raises UsageError for other values."""
    return name if name == AUTO else _entry(name).name


def _entry(name: str) -> BackendEntry:
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    choices = ", ".join([AUTO, *(entry.name for entry in ENTRIES)])
    raise UsageError(f"There is no backend {name!r}.", f"--backend takes {choices}.")


def choose(
    name: str,
    root: Path,
    run: str,
    *,
    untrusted: bool = False,
    gpus: Sequence[str] = (),
    via: GpuWay | None = None,
) -> "tuple[RegisteredBackend, str]":
    """Return the backend and why it was chosen.

    `untrusted`: a scenario is from outside the project's scenarios/; it runs in a container, or in the backend that the
    user named. `gpus`: those of every launch, which only containers can have, and `via` is the requested method to get
    them, if any. Raises CannotRunHereError, and UsageError for a name that isn't registered, and for GPUs without
    containers.
    """
    if name != AUTO:
        backend = _entry(name).open(root, run)
        try:
            return backend, f"{_usable(backend, gpus, via)}, as --backend {name} asks"
        except CannotRunHereError as error:
            advice = [error.advice, *([] if gpus else [f"Or measure without it: {_without_containers(name)}"])]
            raise CannotRunHereError(error.message, "\n".join(filter(None, advice))) from None
    refusals: list[CannotRunHereError] = []
    for entry in (entry for entry in ENTRIES if entry.in_containers or not (untrusted or gpus)):
        backend = entry.open(root, run)
        try:
            backend.check()
        except CannotRunHereError as error:
            refusals.append(error)
            continue
        why = f"because {_clause(refusals[0].message)}" if refusals else "because it answers"
        return backend, f"{_usable(backend, gpus, via)}, {why}"
    raise _refusal(refusals, gpus)


def opened(root: Path) -> "list[RegisteredBackend]":
    """All backends, for no run."""
    return [entry.open(root, "") for entry in ENTRIES]


def image_backend(root: Path) -> "ImageBackend":
    """The backend with images, which alone gives GPUs. Its engine is not asked yet."""
    return next(cast("ImageBackend", entry.open(root, "images")) for entry in ENTRIES if entry.in_containers)


def registered(run: Run) -> BackendEntry | None:
    """The backend of a stored run; None if it is not registered any more."""
    return next((entry for entry in ENTRIES if entry.name == run.backend.name), None)


def _usable(backend: "RegisteredBackend", gpus: Sequence[str], via: GpuWay | None) -> str:
    """Describe where launches run, and with which GPUs."""
    if not gpus:
        return backend.check()
    # "it never has GPUs" is more use than "it is not running"
    backend.check_gpus(gpus, via)
    return f"{backend.check()} with GPU {', '.join(gpus)}"


def _refusal(refusals: Sequence[CannotRunHereError], gpus: Sequence[str]) -> CannotRunHereError:
    """Explain why no backend was chosen if containers are needed and no engine answers."""
    messages = [error.message for error in refusals]
    start = f"Start {' or '.join(entry.title for entry in ENTRIES if entry.in_containers)}"
    if gpus:
        return CannotRunHereError("\n".join([*messages, "--gpu needs containers."]), f"{start}.")
    reason = "A scenario from outside the project's scenarios/ is an untrusted script: it needs a container."
    return CannotRunHereError(
        "\n".join([*messages, reason]), f"{start}, or, if you trust the file, type {_without_containers()}."
    )


def _without_containers(but: str = "") -> str:
    """The options that need no engine."""
    return " or ".join(f"--backend {entry.name}" for entry in ENTRIES if not entry.in_containers and entry.name != but)


def _clause(text: str) -> str:
    """An error's first line as a part of another sentence."""
    line = text.splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]
