"""The Docker Engine: how to reach it, its facts, and its error messages."""

import os
import shutil
import socket
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

from harness.model.backend import HERE, REMOTE, BackendFacts
from harness.model.defaults import ENGINE_TIMEOUT
from harness.model.environment import normalize_architecture
from harness.model.errors import CannotRunHereError

if TYPE_CHECKING:
    from docker import APIClient

#: The name of this backend in the registry.
NAME = "docker"

#: The most times that a later answer takes as long as the first answer. If it takes longer, the engine is silent.
_SLOWER = 10

#: Resources that an engine can limit, by their names in `docker info`.
_LIMITS = {"CPUSet": "CPUs", "MemoryLimit": "memory", "SwapLimit": "swap", "PidsLimit": "processes"}

#: If Docker Engine does not answer: advice for users of these commands.
_OTHER_ENGINES = {
    "podman": (
        "Or use Podman: systemctl --user start podman.socket; export "
        "DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock"
    ),
    "nerdctl": (
        "containerd and nerdctl don't have Docker's interface, which harness needs. Without Docker Engine or Podman, "
        "pass --backend local."
    ),
}


@dataclass(frozen=True)
class Engine:
    """A connection to an engine that has answered. `address` is its URL."""

    api: "APIClient"
    address: str

    @property
    def is_here(self) -> bool:
        """Whether the engine is on this machine, according to its address.

        If it is, the engine uses this machine's clock and CPUs.
        """
        return is_of_this_machine(self.address)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        """The output of `docker info`."""
        usual_timeout = self.api.timeout
        self.api.timeout = max(usual_timeout, ENGINE_TIMEOUT)  # an engine starts programs for its answer
        try:
            with raise_as_sentences("report its configuration"):
                return dict(self.api.info())
        finally:
            self.api.timeout = usual_timeout

    @property
    def version(self) -> str:
        """The engine's version; empty if it isn't reported."""
        return str(self.info.get("ServerVersion", ""))

    @property
    def architecture(self) -> str:
        """The architecture of the engine's machine, by its name in harness."""
        return normalize_architecture(str(self.info.get("Architecture", "")))

    @property
    def is_podman(self) -> bool:
        """Whether the engine is Podman, which provides Docker's interface."""
        return "BuildahVersion" in self.info

    @property
    def facts(self) -> BackendFacts:
        """Return the facts about the engine for run.json."""
        info = self.info
        options = [option.split(",")[0].removeprefix("name=") for option in info.get("SecurityOptions") or ()]
        return BackendFacts(
            name=NAME,
            engine=f"{'Podman' if self.is_podman else 'Docker Engine'} {self.version}",
            api=self.api.api_version,
            where=HERE if self.is_here else REMOTE,
            system=info.get("OperatingSystem", ""),
            kernel=info.get("KernelVersion", ""),
            architecture=self.architecture,
            cpus=info.get("NCPU", 0),
            memory_bytes=info.get("MemTotal", 0),
            storage=info.get("Driver", ""),
            cgroup=f"{info.get('CgroupVersion', '1')} ({info.get('CgroupDriver', '')})",
            rootless="rootless" in options,
            security=options,
            more={"not limited": [name for key, name in _LIMITS.items() if info.get(key) is False]},
        )


def is_of_this_machine(address: str) -> bool:
    """Return whether an engine's address is a socket of this machine."""
    return address.startswith(("unix://", "http+unix://"))


def find_address() -> str:
    """Return the address of the engine that `connect` would use; empty if its context is broken.

    It makes no request to the engine.
    """
    from docker.errors import DockerException

    try:
        return _find_address()[0]
    except (DockerException, OSError, ValueError):
        return ""


def connect() -> Engine:
    """Return the engine that the `docker` command would use: DOCKER_HOST, the current context, or the usual socket.

    Raises CannotRunHereError, with the address, if no engine is running there.
    """
    import docker

    endpoint, setting = os.environ.get("DOCKER_HOST", ""), "DOCKER_HOST"
    try:
        endpoint, setting = _find_address()
        if endpoint.startswith("unix://"):
            # the SDK would wrap the system's error, and leave its connection open
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(endpoint.removeprefix("unix://"))
        start_time = time.monotonic()
        engine = Engine(docker.from_env(timeout=max(get_timeout(), ENGINE_TIMEOUT)).api, endpoint)
        # a machine under load also answers later requests slowly
        engine.api.timeout = max(get_timeout(), ceil(_SLOWER * (time.monotonic() - start_time)))
    except Exception as error:  # noqa: BLE001 - the SDK lets through whatever a socket or a broken file raises
        place = f"{setting} ({endpoint})" if endpoint else f"the context {os.environ.get('DOCKER_CONTEXT')!r}"
        advice = "Start Docker Engine (`sudo systemctl start docker`) or Docker Desktop, or install one of them."
        if isinstance(_find_system_error(error), PermissionError):
            advice = "Give your user access to Docker Engine: `sudo usermod -aG docker $USER`, then log in again."
        elif os.environ.get("DOCKER_HOST"):
            advice += " Or unset DOCKER_HOST, which points to an engine other than this machine's usual one."
        else:
            advice += next((f" {text}" for command, text in _OTHER_ENGINES.items() if shutil.which(command)), "")
        raise CannotRunHereError(f"Docker Engine does not answer at {place}: {_find_cause(error)}.", advice) from None
    weakref.finalize(engine, engine.api.close)
    return engine


def get_timeout() -> int:
    """Return how many seconds to wait for an answer from the engine."""
    try:
        return max(1, int(os.environ["HARNESS_ENGINE_SECONDS"]))
    except (KeyError, ValueError):
        return ENGINE_TIMEOUT


def is_late(error: BaseException) -> bool:
    """Return whether an error means that an answer, or part of an answer, arrived too late."""
    from requests.exceptions import ConnectionError as Broken
    from requests.exceptions import Timeout

    # if only the rest of an answer is late, the error contains urllib3's error
    has_partial_answer = isinstance(error, Broken) and any(
        type(argument).__name__ == "ReadTimeoutError" for argument in error.args
    )
    return has_partial_answer or isinstance(error, Timeout | TimeoutError)


def _find_address() -> tuple[str, str]:
    """Return the address, and the setting that defines it. Raises DockerException if the context doesn't exist."""
    from docker.context import ContextAPI
    from docker.errors import DockerException

    host = os.environ.get("DOCKER_HOST", "")
    if host:
        return host, "DOCKER_HOST"
    context = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT"))
    if context is None:
        raise DockerException("this Docker context does not exist")
    return str(context.Host), f"the context {context.name!r}"


@contextmanager
def raise_as_sentences(what: str) -> Iterator[None]:
    """Raise the SDK's errors in the block as CannotRunHereError. `what` continues "Docker Engine refused to"."""
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        explanation = error.explanation or str(error)
        raise CannotRunHereError(f"Docker Engine refused to {what}: {explanation}") from error
    except (DockerException, OSError) as error:
        message = f"Docker Engine stopped answering during this request: {what}: {_find_cause(error)}."
        raise CannotRunHereError(message, "To check whether Docker Engine works again: docker info") from error


def _find_system_error(error: BaseException) -> OSError | None:
    """Return the operating system's error that caused a chain of library errors; None if there is none."""
    causes = [cause for cause in (error.__cause__, error.__context__, *error.args) if isinstance(cause, Exception)]
    own_error = error if isinstance(error, OSError) and error.strerror else None
    return next(filter(None, map(_find_system_error, causes)), own_error)


def _find_cause(error: BaseException) -> str:
    system_error = _find_system_error(error)
    return str(system_error.strerror if system_error is not None else error).rstrip(".")
