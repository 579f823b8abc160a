"""`docker buildx bake`: what builds images from docker-bake.hcl."""

import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.backends.buildlog import BuildLog
from harness.model.errors import CannotRunHereError

FILE = "docker-bake.hcl"

#: After this many seconds without a word from the builder, what it is doing is told.
_IDLE_SECONDS = 0.5

#: A line longer than this many bytes is cut.
_LONGEST = 64 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """One target of the bake file, and what is set beside or in place of its own: `labels.harness.lock` and so on."""

    name: str
    settings: Mapping[str, str]


def check() -> None:
    """Raise CannotRunHereError where there is no `docker buildx`."""
    advice = "Install the docker command with buildx (Debian: docker-cli and docker-buildx), or: --backend local"
    try:
        found = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False)
    except FileNotFoundError:
        raise CannotRunHereError(
            "Images are built by `docker buildx bake`, and there is no docker command.", advice
        ) from None
    if found.returncode:
        raise CannotRunHereError("Images are built by `docker buildx bake`, and this docker has no buildx.", advice)


class Builder:
    """Builds targets, each by a process of its own; what they have in common the engine does once.

    `root` is the folder with docker-bake.hcl. Several threads may build at a time; `stop` ends what all of them do.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.is_stopped = False

    def build(self, target: Target, tell: Callable[[str], object]) -> str:
        """Build a target. Returns nothing where that went well, else what failed and its last words.

        `tell` is called with what the builder is doing, whenever that takes time.
        """
        log = BuildLog()
        with self._started(target) as process:
            try:
                for line in _lines(process.stdout):
                    words = log.feed(line.decode("utf-8", "replace")) if line is not None else log.idle()
                    if words:
                        tell(words)
            finally:
                with self._lock:
                    self._running.discard(process)
        if not process.returncode:
            return ""
        return log.failure() or f"the builder ended with exit code {process.returncode}"

    def stop(self) -> None:
        """End every build, and let none begin. The builds' own threads see their processes end."""
        with self._lock:
            self.is_stopped = True
            for process in self._running:
                process.terminate()

    def _started(self, target: Target) -> subprocess.Popen[bytes]:
        with self._lock:
            if self.is_stopped:
                raise CannotRunHereError(f"{target.name} was not built: it was stopped.")
            process = subprocess.Popen(
                _command(target),
                cwd=self._root,
                # a newer buildx asks before it reads folders outside the project; those are named by the user
                env={**os.environ, "BUILDX_BAKE_ENTITLEMENTS_FS": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self._running.add(process)
            return process


def _command(target: Target) -> list[str]:
    # --load: a builder that is a container of its own keeps its images to itself; no provenance: with it, two builds
    # of the same thing have two ids
    command = ["docker", "buildx", "bake", "--file", FILE, "--load", "--provenance=false", "--progress=plain"]
    for key, value in target.settings.items():
        command += ["--set", f"{target.name}.{key}={value}"]
    return [*command, target.name]


def _lines(stream: IO[bytes] | None) -> Iterator[bytes | None]:
    """The lines of a stream, and None whenever it has been silent for a while."""
    if stream is None:
        return
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(_IDLE_SECONDS):
                yield None
                continue
            chunk = os.read(stream.fileno(), _LONGEST)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            rest = rest[:_LONGEST]
    if rest:
        yield rest
