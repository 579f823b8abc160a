"""The registry of backends, and the choice between them. Each backend is a file or a folder, with an entry here."""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from harness.model.backend import GpuWay
from harness.model.environment import normalize_architecture
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import GpuHost
from harness.model.texts import joined

# imported only for type checks, because the command line needs only the names, and must start fast
if TYPE_CHECKING:
    from harness.backends.docker.backend import DockerBackend
    from harness.backends.protocol import RegisteredBackend

#: The value of `--backend` that selects the first backend that works here.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """A backend: its name for `--backend`, and its class, which is imported at first use.

    `title` is its name in a sentence. `in_containers`: it runs launches in containers, from images. Such a backend may
    run untrusted scripts.
    """

    name: str
    title: str
    kind: str
    in_containers: bool = False

    def open(self, root: Path, run: str) -> "RegisteredBackend":
        """Return an instance of the backend. `root` is the project's folder, and `run` is the id of the run."""
        kind: type[RegisteredBackend] = resolve_name(self.kind)
        return kind(root, run)


#: All backends, in the order in which `auto` prefers them.
ENTRIES = (
    BackendEntry("docker", "Docker", "harness.backends.docker.backend:DockerBackend", in_containers=True),
    BackendEntry("local", "local environments", "harness.backends.local.backend:LocalBackend"),
)

#: The valid values of `--backend`.
CHOICES = (AUTO, *(entry.name for entry in ENTRIES))


class UntrustedError(UsageError):
    """Error for other people's code that would run without a container."""

    def __init__(self, backend: str, untrusted: Mapping[str, str]) -> None:
        super().__init__(
            f"{_describe_untrusted(untrusted)} With --backend {backend}, this code runs with your "
            "rights: it can read and change your files, and use the network.",
            f"Omit --backend {backend}. If you trust the code, pass --trust instead.",
        )


def check_backend(name: str) -> str:
    """Return the valid value of `--backend`. Raises UsageError for other values."""
    return name if name == AUTO else _find_entry(name).name


def _find_entry(name: str) -> BackendEntry:
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    choices = ", ".join([AUTO, *(entry.name for entry in ENTRIES)])
    raise UsageError(f"Unknown backend: {name!r}.", f"Use one of {choices}.")


def choose(
    name: str,
    root: Path,
    run: str,
    *,
    untrusted: Mapping[str, str] | None = None,
    gpus: Sequence[str] = (),
    via: GpuWay | None = None,
    is_resumed: bool = False,
) -> "tuple[RegisteredBackend, str]":
    """Return the backend and why it was chosen.

    `untrusted`: other people's code, which runs only in a container, as descriptions by name. `gpus` are the GPUs
    of each launch, and `via` is the requested method of access to these GPUs, if any. `is_resumed`: a run that started
    with the backend `name` is resumed, so it can't use another one. Raises CannotRunHereError, UntrustedError, and
    UsageError for a name that isn't registered.
    """
    if name != AUTO:
        if untrusted and not is_contained(name):
            raise UntrustedError(name, untrusted)
        backend = _find_entry(name).open(root, run)
        try:
            reason = "because the run started with it" if is_resumed else f"because of --backend {name}"
            return backend, f"{_describe_usable(backend, gpus, via)}, {reason}"
        except CannotRunHereError as error:
            others = [entry.name for entry in ENTRIES if not entry.in_containers and entry.name != name]
            options = "" if is_resumed else " or ".join(f"--backend {other}" for other in others)
            advice = [error.advice, f"Or measure without containers: {options}" if options else ""]
            raise CannotRunHereError(error.message, "\n".join(filter(None, advice))) from None
    refusals: list[CannotRunHereError] = []
    for entry in (entry for entry in ENTRIES if entry.in_containers or not untrusted):
        backend = entry.open(root, run)
        try:
            backend.check()
            if not untrusted:
                backend.check_tools()
        except CannotRunHereError as error:
            refusals.append(error)
            continue
        reason = f"because {_make_clause(refusals[0].message)}" if refusals else "because it is running"
        return backend, f"{_describe_usable(backend, gpus, via)}, {reason}"
    raise _make_refusal(refusals, untrusted or {})


def is_contained(name: str) -> bool:
    """Return whether a value of `--backend` runs untrusted scripts in containers or not at all."""
    return name == AUTO or _find_entry(name).in_containers


def find_contained(name: str) -> str:
    """Return a value of `--backend` that runs launches in containers: the named one or, for `auto`, the first."""
    return next(entry.name for entry in ENTRIES if entry.in_containers and name in (AUTO, entry.name))


def find_gpu_host(name: str, root: Path) -> GpuHost:
    """Return the GPUs for launches of a backend or, for `auto`, of the first backend that this machine can use."""
    return choose_backend(name, root).gpu_host


def find_architecture(name: str, root: Path) -> str:
    """Return the architecture of the processors that run launches of a backend or, for `auto`, of the first one here.

    They are the engine's processors. If no engine is running, they are this machine's.
    """
    for entry in ENTRIES:
        if name in (AUTO, entry.name):
            with suppress(CannotRunHereError):
                return entry.open(root, "").architecture
    return normalize_architecture(platform.machine())


def choose_backend(name: str, root: Path) -> "RegisteredBackend":
    """Return a backend that belongs to no run: the named one or, for `auto`, the first that this machine can use.

    Raises UsageError for an unknown name.
    """
    entries = [entry for entry in ENTRIES if check_backend(name) in (AUTO, entry.name)]
    for entry in entries[:-1]:
        backend = entry.open(root, "")
        try:
            backend.check()
            backend.check_tools()
        except CannotRunHereError:
            continue
        return backend
    return entries[-1].open(root, "")


def open_all(root: Path) -> "list[RegisteredBackend]":
    """Return all backends. They belong to no run."""
    return [entry.open(root, "") for entry in ENTRIES]


def open_image_backend(root: Path) -> "DockerBackend":
    """Return the backend with images, without connecting to its engine."""
    return next(cast("DockerBackend", entry.open(root, "images")) for entry in ENTRIES if entry.in_containers)


def _describe_usable(backend: "RegisteredBackend", gpus: Sequence[str], via: GpuWay | None) -> str:
    """Describe where launches run, and with which GPUs."""
    if not gpus:
        return backend.check()
    # check GPUs first, because "it never has GPUs" is a more useful error than "it isn't running"
    backend.check_gpus(gpus, via)
    return f"{backend.check()} with GPU {', '.join(gpus)}"


def _make_refusal(refusals: Sequence[CannotRunHereError], untrusted: Mapping[str, str]) -> CannotRunHereError:
    """Return the error for other people's code that needs a container, although no engine is running."""
    lines = [*(error.message for error in refusals), f"{_describe_untrusted(untrusted)} Such code needs a container."]
    titles = " or ".join(entry.title for entry in ENTRIES if entry.in_containers)
    return CannotRunHereError("\n".join(lines), f"Start {titles}, or, if you trust the code, pass --trust.")


def _describe_untrusted(untrusted: Mapping[str, str]) -> str:
    if len(untrusted) > 1:
        return f"{joined(list(untrusted))} are other people's code."
    ((name, description),) = untrusted.items()
    return f"{name} is somebody else's code: {description}."


def _make_clause(text: str) -> str:
    """Return an error's first line in a form that can continue a sentence."""
    line = text.splitlines()[0].rstrip(".")
    return line if line.startswith("Docker") else line[:1].lower() + line[1:]
