"""Run `docker buildx bake`, which builds images from docker-bake.hcl, and parse its output line by line.

    #9 [environment 2/4] RUN useradd …      a step starts
    #9 0.52 some output                     a line of its output, and the time in seconds
    #9 CACHED | DONE 1.2s | ERROR: …        how it ended
    #14 exporting to image                  a step of the builder itself
    [2/3] STEP 2/4: RUN useradd …           a step of `podman build` starts (podman.py)

Steps overlap. Each line starts with the number of its step. Lines in another format are ignored, because other builders
may print additional lines.
"""

import os
import re
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.backends.untrusted_text import join_lines
from harness.files import get_cache_dir
from harness.machine.child_process import guard_command
from harness.machine.uv import is_writable
from harness.model.environment import X86_64
from harness.model.errors import CannotRunHereError
from harness.model.texts import escape

#: The largest number of lines of a failed step in an error message, and of characters in each of these lines.
LINES = 15
LENGTH = 500

#: The largest number of characters of an instruction that are shown.
_INSTRUCTION_LENGTH = 72

# a line of a step; step 0 is left out, because it only names the builder
_LINE = re.compile(r"#(?P<number>[1-9]\d{0,8}) (?P<rest>.*)")
_STEP = re.compile(r"\[(?P<place>[^\]]*\d/\d+)\] (?P<instruction>\S.*)")
_PODMAN_STEP = re.compile(r"(?:\[(?P<stage>\d+/\d+)\] )?STEP (?P<place>\d+/\d+): (?P<instruction>.*)")
_OUTPUT = re.compile(r"\d+\.\d+ (?P<text>.*)")
_FLAGS = re.compile(r"^RUN (--[a-z]+=\S+\s+)*")

#: The largest number of bytes that are read as one line.
_LINE_BYTES = 64 * 1024


def get_version() -> str | None:
    """Return the version of `docker buildx`; None if there is no such command."""
    return _read_version(os.environ.get("PATH", ""))


@cache
def _read_version(_path: str) -> str | None:
    """Return the version of `docker buildx` on this PATH, which a command asks for several times."""
    try:
        process = subprocess.run(["docker", "buildx", "version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if process.returncode else process.stdout


def make_environ() -> dict[str, str]:
    """Return the environment variables for buildx. If its usual folder can't be written, it uses harness's cache."""
    folder = f"{os.environ.get('DOCKER_CONFIG') or '~/.docker'}/buildx"
    return {**({} if is_writable(folder) else {"BUILDX_CONFIG": str(get_cache_dir() / "buildx")}), **os.environ}


def check_driver() -> None:
    """Raise CannotRunHereError if the builder can't use an image of the engine as a base.

    A builder with another driver would search for the name of the base in a public registry.
    """
    command = ["docker", "buildx", "inspect"]
    process = subprocess.run(command, env=make_environ(), capture_output=True, text=True, check=False)
    driver = re.search(r"^Driver: *(\S+)", process.stdout, re.MULTILINE)
    if driver is None or driver[1] != "docker":
        name = driver[1] if driver else "unknown"
        raise CannotRunHereError(
            f"`docker buildx` uses a builder with the driver {name}, which can't use the engine's images as bases.",
            "Select the engine's own builder: docker buildx use default",
        )


class Builder:
    """Builds targets, each in its own process. The engine builds shared parts once.

    `root` is the folder with docker-bake.hcl. Several threads may build at a time; `stop` ends all builds.
    `architecture` is the architecture of the images.
    """

    def __init__(self, root: Path, architecture: str = X86_64) -> None:
        self._root = root
        self._environ = {"ARCHITECTURE": "" if architecture == X86_64 else architecture}
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.is_stopped = False

    def check(self, *, uses_images: bool) -> None:
        """Raise CannotRunHereError if nothing can be built here. `uses_images` if an image of the engine is a base."""
        if get_version() is None:
            reason = "buildx isn't installed" if shutil.which("docker") else "the docker command isn't installed"
            raise CannotRunHereError(
                f"Images can't be built with `docker buildx bake`, because {reason}.",
                "Install the docker command with buildx (Debian: docker-cli and docker-buildx), or pass --backend "
                "local.",
            )
        if uses_images:
            check_driver()

    def build(
        self, target: str, settings: Mapping[str, str], report: Callable[[str], object], folder: Path | None = None
    ) -> str:
        """Build a target of the bake file. Return the failed step with its last lines; empty if the build succeeded.

        The build makes an image or, if `folder` is given, files in that folder. `settings` such as
        `labels.harness.lock` extend or replace the settings in the bake file. `report` is called with each command that
        starts.
        """
        log = BuildLog()
        with self._start_build(target, settings, folder) as process:
            assert process.stdout is not None
            try:
                while line := process.stdout.readline(_LINE_BYTES):
                    if step := log.feed(line.decode("utf-8", "replace")):
                        report(step)
            finally:
                with self._lock:
                    self._running.discard(process)
        if not process.returncode:
            return ""
        return log.describe_failure() or f"the build ended with exit code {process.returncode}"

    def stop(self) -> None:
        """End every build, and don't start new builds. The threads of the builds notice that their processes end."""
        with self._lock:
            self.is_stopped = True
            for process in self._running:
                process.terminate()

    def _make_command(self, target: str, settings: Mapping[str, str], folder: Path | None) -> list[str]:
        # --load, because a builder in a container would otherwise keep the image for itself; no provenance, because
        # it makes the ids of two equal builds differ
        command = ["docker", "buildx", "bake", "--file", "docker-bake.hcl", "--provenance=false", "--progress=plain"]
        command.append(f"--set={target}.output=type=local,dest={folder}" if folder else "--load")
        for key, value in settings.items():
            command += ["--set", f"{target}.{key}={value}"]
        return [*command, target]

    def _start_build(self, target: str, settings: Mapping[str, str], folder: Path | None) -> subprocess.Popen[bytes]:
        with self._lock:
            if self.is_stopped:
                raise CannotRunHereError(f"The build of {target} was stopped.")
            process = subprocess.Popen(
                guard_command(self._make_command(target, settings, folder)),
                cwd=self._root,
                # newer versions of buildx ask before they read folders outside the project, but the user named them
                env={**make_environ(), **self._environ, "BUILDX_BAKE_ENTITLEMENTS_FS": "0"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self._running.add(process)
            return process


@dataclass
class _BuildStep:
    words: str
    output: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))


class BuildLog:
    """The progress of one build, according to the lines of its builder."""

    def __init__(self) -> None:
        self._steps: dict[int, _BuildStep] = {}
        self._failed_step: _BuildStep | None = None
        self._last_lines: deque[str] = deque(maxlen=LINES)
        self._error_line = ""

    def feed(self, line: str) -> str:
        """Process the next line. Return a command that starts, otherwise nothing."""
        line = escape(line.rstrip()[:LENGTH], keep="\t")
        if not line:
            return ""
        if step := _PODMAN_STEP.fullmatch(line):  # its steps don't overlap
            self._last_lines.clear()
            line = _shorten_command(f"[{step['stage'] or '1/1'} {step['place']}] {step['instruction']}")
            self._last_lines.append(f"{line}:")
            return line if step["instruction"].startswith("RUN ") else ""
        self._last_lines.append(line)
        if line.startswith("ERROR: "):
            self._error_line = line
        match = _LINE.fullmatch(line)
        return self._feed_step(int(match["number"]), match["rest"]) if match else ""

    def describe_failure(self) -> str:
        """Return the description of a failed build: the step with its last lines and the error, if known."""
        if self._failed_step is None:
            return "\n".join(self._last_lines)
        return "\n".join(filter(None, [f"{self._failed_step.words}:", *self._failed_step.output, self._error_line]))

    def _feed_step(self, number: int, text: str) -> str:
        step = self._steps.get(number)
        if step is None:
            words = _shorten_command(text)
            self._steps[number] = _BuildStep(words)
            return words if "] RUN " in text else ""
        if text.startswith("ERROR"):
            self._failed_step = self._failed_step or step
        if output := _OUTPUT.fullmatch(text):
            step.output.append(output["text"])
        return ""


def _shorten_command(text: str) -> str:
    """Return the command of a step, without the source of its files: `environment 4/4: sh /tmp/install.sh …`."""
    match = _STEP.fullmatch(text)
    if match is None:
        return join_lines(text, _INSTRUCTION_LENGTH)
    return f"{match['place']}: {join_lines(_FLAGS.sub('', match['instruction']), _INSTRUCTION_LENGTH)}"
