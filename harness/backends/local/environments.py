"""Local environments: one virtual environment per lock, in the user's cache, made once."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from harness.backends import wheels
from harness.files import cache_dir
from harness.machine.interpreters import find_python
from harness.machine.lock import exclusive
from harness.machine.uv import environ, last_words
from harness.model.backend import Progress, Stage, Step
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UnavailableError

#: Written last, so that a folder without it is one that was never finished.
_MARKER = "harness.json"


@dataclass(frozen=True)
class Environments:
    """The environments of this user. `root` is the folder with images/install.sh."""

    root: Path
    find_python: Callable[[str], Path] = find_python

    def folder(self, requirement: Requirement) -> Path:
        """Where the environment is: its name says which lock was installed, on which Python, and how."""
        recipe = (self.root / "images" / "install.sh").read_bytes()
        what = f"{requirement.lock.sha256} {requirement.environment.python} "
        key = sha256(what.encode() + recipe).hexdigest()[:16]
        return cache_dir() / "environments" / f"{requirement.environment.name}-{key}"

    def python(self, requirement: Requirement) -> Path:
        """The environment's interpreter."""
        return self.folder(requirement) / "bin" / "python"

    def is_ready(self, requirement: Requirement) -> bool:
        """Whether it is whole, and the interpreter that it was made from is still there."""
        return (self.folder(requirement) / _MARKER).exists() and self.python(requirement).exists()

    def make(self, requirement: Requirement, progress: Progress) -> None:
        """Make the environment unless it is there.

        Raises UnavailableError where it cannot be had, CannotRunHereError where the cache cannot be written.
        """
        if self.is_ready(requirement):
            return
        folder, name = self.folder(requirement), requirement.environment.name
        python = self.find_python(requirement.environment.python)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock, busy = folder.with_name(f".{folder.name}.lock"), f"The lock of {folder.name} is taken."
            with exclusive(lock, busy, waiting=lambda words: progress(Step(name, words))):
                if self.is_ready(requirement):
                    progress(Step(name, "installed by another process", Stage.READY))
                    return
                # an environment knows its own path, so it is made in place
                if folder.exists():
                    shutil.rmtree(folder)
                progress(Step(name, f"installing {requirement.environment.title} on Python {python}"))
                self._install(python, requirement, folder)
                (folder / _MARKER).write_text(json.dumps({"lock": requirement.lock.sha256, "python": str(python)}))
                progress(Step(name, "installed", Stage.READY))
        except OSError as error:
            raise CannotRunHereError(
                f"The folder {folder} cannot be written: {error.strerror}.", "HARNESS_CACHE_DIR names another."
            ) from None

    def _install(self, python: Path, requirement: Requirement, folder: Path) -> None:
        script, packages = self.root / "images" / "install.sh", wheels.folder()
        offline = [str(packages)] if packages is not None else []
        done = subprocess.run(
            ["sh", str(script), str(python), str(requirement.lock.path), str(folder), *offline],
            env=environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise UnavailableError(
                f"The environment {requirement.environment.name} could not be installed:\n{last_words(done.stdout)}",
                "--backend docker needs no local environment.",
            )
