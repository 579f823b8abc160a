"""`docker buildx bake`: what builds images from docker-bake.hcl."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.backends.text import escaped
from harness.model.backend import Progress
from harness.model.errors import CannotRunHereError

FILE = "docker-bake.hcl"

#: How many of the builder's last lines an error shows.
_LINES = 15


@dataclass(frozen=True, slots=True)
class Target:
    """One target of the bake file and the labels that are set beside its own."""

    name: str
    labels: Mapping[str, str]


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


def bake(root: Path, targets: Sequence[Target], progress: Progress) -> str:
    """Build the targets. Returns nothing where that went well, else the builder's last words.

    On a terminal the builder draws its own progress; elsewhere each of its lines goes to `progress`.
    """
    if sys.stderr.isatty():
        done = subprocess.run(_command(targets, "auto"), cwd=root, stdout=sys.stderr, check=False)
        # what was drawn cannot be quoted; what failed is not cached, so the builder says it again
        return bake_quietly(root, targets, lambda _: None) if done.returncode else ""
    return bake_quietly(root, targets, progress)


def bake_quietly(root: Path, targets: Sequence[Target], progress: Progress) -> str:
    """Build the targets with the builder's progress as lines; else as `bake`."""
    lines: list[str] = []
    process = subprocess.Popen(
        _command(targets, "plain"),
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with process:
        try:
            for line in filter(str.strip, process.stdout or ()):
                lines.append(escaped(line.rstrip()))
                del lines[:-_LINES]
                progress(lines[-1])
        except BaseException:
            process.terminate()
            raise
    return "\n".join(lines) if process.returncode else ""


def _command(targets: Sequence[Target], progress: str) -> list[str]:
    # --load: a builder that is a container of its own keeps its images to itself; no provenance: with it, two builds
    # of the same thing have two ids
    command = ["docker", "buildx", "bake", "--file", FILE, "--load", "--provenance=false", f"--progress={progress}"]
    for target in targets:
        for label, value in target.labels.items():
            command += ["--set", f"{target.name}.labels.{label}={value}"]
    return [*command, *(target.name for target in targets)]
