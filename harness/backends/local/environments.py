"""Local environments: one virtual environment per lock file, in the user's cache."""

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.backends import wheels
from harness.files import get_cache_dir, get_wheel_path, parse_json, write_atomically
from harness.machine import child_process
from harness.machine.interpreters import find_python
from harness.machine.lock import hold_lock
from harness.machine.uv import find_uv, get_last_lines, make_build_environ, make_environ
from harness.model.backend import PreparationStep, Progress, Stage, WheelRecipe
from harness.model.environment import TENSORFLOW, Requirement
from harness.model.errors import CannotRunHereError, UnavailableError, explain_unwritable

#: The file that marks a complete environment. It is written last, so an environment without it is incomplete.
_MARKER = "harness.json"


@dataclass(frozen=True)
class Environments:
    """The environments of this user. `root` is the folder with images/install.sh.

    `missing` maps each Python version that wasn't found to the error. A failed download takes seconds, so it isn't
    repeated.
    """

    root: Path
    find_python: Callable[[str], Path] = find_python
    missing: dict[str, UnavailableError] = field(default_factory=dict, compare=False)

    def folder(self, requirement: Requirement) -> Path:
        """Return the environment's folder. Its name depends on the lock, the Python version and the install scripts."""
        names = ["install.sh", *(["overlay.sh"] if requirement.environment.wheel else [])]
        recipe = b"".join((self.root / "images" / name).read_bytes() for name in names)
        contents = f"{requirement.lock.sha256} {requirement.environment.python} "
        key = sha256(contents.encode() + recipe).hexdigest()[:16]
        return get_cache_dir() / "environments" / f"{requirement.environment.name}-{key}"

    def python(self, requirement: Requirement) -> Path:
        """Return the environment's interpreter."""
        return self.folder(requirement) / "bin" / "python"

    def packages(self, requirement: Requirement) -> Path:
        """Return the folder of NVIDIA's packages, if the lock has some."""
        return self.folder(requirement) / f"lib/python{requirement.environment.python}/site-packages/nvidia"

    def is_ready(self, requirement: Requirement) -> bool:
        """Return whether the environment is complete, and its base interpreter still exists."""
        return (self.folder(requirement) / _MARKER).exists() and self.python(requirement).exists()

    def check(self, requirement: Requirement) -> None:
        """Raise CannotRunHereError if a file was changed, added or removed since the environment was created.

        A script could change files that later launches would run. After a change, the environment is no longer ready,
        so that `make` creates it again.
        """
        folder = self.folder(requirement)
        state = _read_marker(folder).get("state", "")  # missing in older versions
        if state and state != _hash_files(folder):
            (folder / _MARKER).unlink(missing_ok=True)
            raise CannotRunHereError(
                f"The environment {requirement.environment.name} was changed after it was created, for example by a "
                f"script that ran in it.",
                "The next run that needs this environment creates it again.",
            )

    def make(self, requirement: Requirement, progress: Progress) -> None:
        """Create the environment unless it exists.

        Raises UnavailableError if it can't be created, and CannotRunHereError if the cache can't be written.
        """
        if self.is_ready(requirement):
            return
        folder, name = self.folder(requirement), requirement.name
        python = self._find_interpreter(requirement.environment.python)
        with explain_unwritable(f"The folder {folder}", "To use another folder, set HARNESS_CACHE_DIR."):
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock, lock_message = folder.with_name(f".{folder.name}.lock"), f"Another process has locked {folder.name}."
            with hold_lock(lock, lock_message, waiting=lambda words: progress(PreparationStep(name, words))):
                if self.is_ready(requirement):
                    progress(PreparationStep(name, "installed by another process", Stage.READY))
                    return
                # an environment contains its own path, so it is created in its final folder
                if folder.exists():
                    shutil.rmtree(folder)
                progress(PreparationStep(name, f"installing {requirement.environment.title} on Python {python}"))
                packages = self._install(python, requirement, folder)
                for library in self.packages(requirement).glob("cuda_cupti/lib/libcupti.so.*"):
                    # a name that TensorFlow 2.5 to 2.11 tries after a name with CUDA's version
                    link = library.with_name("libcupti.so")
                    link.unlink(missing_ok=True)
                    link.symlink_to(library.name)
                marker = {"lock": requirement.lock.sha256, "python": str(python), "packages": packages}
                marker["state"] = _hash_files(folder)
                write_atomically(folder / _MARKER, json.dumps(marker))
                progress(PreparationStep(name, "installed", Stage.READY))

    def _find_interpreter(self, version: str) -> Path:
        try:
            if version not in self.missing:
                return self.find_python(version)
        except UnavailableError as error:
            self.missing[version] = error
        raise self.missing[version]

    def _install(self, python: Path, requirement: Requirement, folder: Path) -> Mapping[str, str]:
        """Install the environment. Return the packages of its lock, or nothing if it also has its own wheel."""
        environment, packages = requirement.environment, wheels.find_folder()
        lock = requirement.base.lock if requirement.base and environment.wheel else requirement.lock
        _link_similar(python, lock.pins, folder)
        offline = [str(packages)] if packages is not None else []
        steps = [["install.sh", str(python), str(lock.path), str(folder), *offline]]
        if environment.wheel:
            steps.append(["overlay.sh", str(folder), str(get_wheel_path(environment.wheel)), *environment.replaced])
        for script, *arguments in steps:
            code, output = self._run(script, arguments, make_environ() | {"UV_NO_BUILD": "1"})
            if code:  # old source packages are built, without the user's secrets
                code, output = self._run(script, arguments, make_build_environ())
            if code:
                raise UnavailableError(
                    f"The environment {environment.name} could not be installed:\n{get_last_lines(output)}",
                    "To measure without a local environment, pass --backend docker.",
                )
        return {} if environment.wheel else lock.pins

    def build_wheel(self, recipe: WheelRecipe, folder: Path) -> None:
        """Build a wheel from a source into a folder, with this user's rights. Raises CannotRunHereError."""
        with TemporaryDirectory() as environment_folder:
            python = str(self._find_interpreter(recipe.python))
            build_arguments = [environment_folder, str(recipe.files), str(folder), recipe.version, str(recipe.instant)]
            for script, arguments, environ in (
                ("install.sh", [python, str(recipe.lock), environment_folder], make_environ()),
                ("build.sh", build_arguments, make_build_environ()),
            ):
                code, output = self._run(script, arguments, environ, wheels.BUILD_SECONDS)
                if code:
                    last_lines = get_last_lines(output, 15)
                    raise CannotRunHereError(f"The wheel of {recipe.package} could not be built:\n{last_lines}")

    def _run(
        self, script: str, arguments: Sequence[str], environ: Mapping[str, str], seconds: float | None = None
    ) -> tuple[int, str]:
        """Run a script in images/, for at most `seconds` if given. Returns its exit code and its output."""
        return child_process.run(["sh", str(self.root / "images" / script), *arguments], environ, seconds)


def _read_marker(folder: Path) -> dict[str, Any]:
    """Return the contents of an environment's marker. Without a marker, the state is `none`."""
    try:
        return dict(parse_json((folder / _MARKER).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {"state": "none"}


def _link_similar(python: Path, pins: Mapping[str, str], folder: Path) -> None:
    """Start an environment with the files of a ready one that has the same TensorFlow, if there is one.

    The files are hard links. Packages that differ are removed, and the installer adds the missing packages. So an
    environment with one more package takes seconds.
    """
    tensorflow = {name: pins[name] for name in TENSORFLOW if name in pins}
    similar = []
    for path in folder.parent.glob(f"*/{_MARKER}"):
        marker = _read_marker(path.parent)
        packages = dict(marker.get("packages") or {})
        if tensorflow and marker.get("python") == str(python) and tensorflow.items() <= packages.items():
            similar.append((len(packages.items() ^ pins.items()), path.parent, packages))
    for _, other, packages in sorted(similar, key=lambda entry: entry[:2]):
        removed = [name for name, version in packages.items() if pins.get(name) != version]
        command = [str(find_uv()), "pip", "uninstall", "--quiet", "--python", str(folder), *removed]
        try:
            if _read_marker(other).get("state") != _hash_files(other):
                continue
            ignore = partial(_list_ignored, other)
            shutil.copytree(other, folder, symlinks=True, copy_function=_link_or_copy, ignore=ignore)
            (folder / "bin").mkdir()
            for script in (other / "bin").iterdir():
                _copy_script(script, folder)
            if not removed or child_process.run(command, make_environ())[0] == 0:
                return
        except (OSError, shutil.Error):  # no hard links, or another process removes the other environment
            pass
        shutil.rmtree(folder, ignore_errors=True)


def _list_ignored(environment: Path, folder: str, _names: Sequence[str]) -> Collection[str]:
    """Return the names in a folder of an environment that aren't copied. Packages can have folders of these names."""
    return (_MARKER, "bin") if Path(folder) == environment else ()


def _link_or_copy(source: str, copy: str) -> None:
    """Link a file in the folder of a package. The installer changes other files, so they are copied."""
    in_package = "/" in source.partition("/site-packages/")[2]
    (os.link if in_package else shutil.copy2)(source, copy)


def _copy_script(script: Path, folder: Path) -> None:
    """Copy a program of an environment to another one in `folder`, whose path replaces the path of the first one."""
    copy = folder / "bin" / script.name
    shutil.copy2(script, copy, follow_symlinks=False)
    if not copy.is_symlink():
        copy.write_bytes(copy.read_bytes().replace(bytes(script.parents[1]), bytes(folder)))


def _hash_files(folder: Path) -> str:
    """Return a hash of the names, sizes, times and link targets of all files in a folder, except the marker."""
    state = sha256()

    def add(inner: str) -> None:
        with os.scandir(inner) as entries:
            for entry in sorted(entries, key=lambda child: child.name):
                if entry.path == str(folder / _MARKER):
                    continue
                entry_stat = entry.stat(follow_symlinks=False)
                kind, size, link = entry_stat.st_mode, entry_stat.st_size, ""
                if entry.is_symlink():
                    link = str(Path(entry.path).readlink())
                is_folder = entry.is_dir(follow_symlinks=False)
                # leave out the size and the time of a folder, because temporary files of the installer change them
                fields = (entry.path, kind) if is_folder else (entry.path, kind, size, entry_stat.st_mtime_ns, link)
                state.update(repr(fields).encode("utf-8", "surrogateescape"))
                if is_folder:
                    add(entry.path)

    add(str(folder))
    return state.hexdigest()
