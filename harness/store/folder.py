"""A run's folder: results/RUN with run.json, launches.jsonl, artifacts/, the reports and their charts/.

`launches.jsonl` has one line per finished launch. A line is appended and synced before the next launch starts. Reports
can be rebuilt from run.json, launches.jsonl and the artifacts.

The folder may come from somebody else. So harness doesn't read or write through links in the folder, or outside of it.
"""

import gc
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.files import (
    append,
    is_unfinished,
    open_regular_file,
    read,
    remove_unfinished,
    suggest_remedy,
    write_atomically,
)
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.launch import Launch
from harness.model.run import Run
from harness.store import codec
from harness.store.checks import check_launch, check_run, launch_check

if TYPE_CHECKING:
    from harness.model.profile import Part, Profile

#: The number of slashes in the path of an artifact that harness itself wrote: artifacts/LAUNCH/NAME. The scenario's
#: artifacts are in subfolders.
_OWN_SLASHES = 2

#: The disk space that a new run needs, in bytes. A launch needs some kilobytes, plus at most 64 KiB of error output.
ROOM = 64 * 1024 * 1024

#: The size limits, in bytes, for reading run.json (usually 1.3 MB for 10,000 cells), a line of launches.jsonl (usually
#: 3 KB), and a profile.
RUN_MOST, LINE_MOST, PROFILE_MOST = 256 * 1024**2, 64 * 1024**2, 256 * 1024**2


#: The pattern of the name of a new run's folder.
_RUN_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{4}(-\d+.*)?")


class RunFolder:
    """The folder of a run. Methods that can't write a file raise CannotRunHereError, and leave no incomplete file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def _launches(self) -> Path:
        return self.path / "launches.jsonl"

    @classmethod
    def create(cls, results: Path, run: str) -> "RunFolder":
        """Create the folder of a new run, and check that the folder is writable and that there is enough disk space."""
        path, is_made = results / run, False
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"The name of the results folder {results} is not UTF-8.", "Choose another folder with --results."
            ) from None
        try:
            path.mkdir(parents=True)
            is_made = True
            free_bytes = shutil.disk_usage(path).free
            if free_bytes < ROOM:
                path.rmdir()
                raise CannotRunHereError(
                    f"{results} has {free_bytes / 2**20:.0f} MiB free; a run needs {ROOM / 2**20:.0f} MiB.",
                    "Free disk space, or choose another folder with --results.",
                )
            write_atomically(path / "launches.jsonl", b"", synced=True)
        except OSError as error:
            if is_made:
                shutil.rmtree(path, ignore_errors=True)
            raise CannotRunHereError(
                f"The results folder {path} cannot be written: {error.strerror}.",
                "Choose another folder with --results.",
            ) from None
        return cls(path)

    @classmethod
    def open(cls, path: Path | str) -> "RunFolder":
        """Return the folder of an existing run. Raises UsageError if it isn't the folder of a run."""
        try:
            return cls._open(Path(path))
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None

    @classmethod
    def _open(cls, path: Path) -> "RunFolder":
        launches = path / "launches.jsonl"
        if not (path / "run.json").exists() and launches.is_file() and launches.stat().st_size:
            raise UsageError(
                f"{path} is incomplete (run.json is missing): a merge was killed.",
                f"Merge the runs again. To remove the folder: rm -r {shlex.quote(str(path))}",
            )
        if cls.is_unbegun(path):
            raise UsageError(
                f"{path} is empty (run.json is missing): its run was killed before the first launch.",
                f"Start the run again. To remove the folder: harness clean {shlex.quote(str(path))}",
            )
        if not (path / "run.json").is_file():
            raise UsageError(f"{path} isn't the folder of a run: run.json is missing.", "Pass a folder in results/.")
        folder = cls(path)
        for entry in path.iterdir():
            folder._refuse_link(entry.name)
        return folder

    @staticmethod
    def is_unbegun(path: Path) -> bool:
        """Return whether the run in this folder was killed before its first launch.

        In this folder, run.json is missing, and there are no files except those that a new run creates.
        """
        if not path.is_dir():
            return False
        names = {entry.name for entry in path.iterdir() if not is_unfinished(entry)}
        return names == {"launches.jsonl"} or bool(not names and _RUN_NAME.fullmatch(path.name))

    def discard(self) -> bool:
        """Remove the folder if its run ended before the first launch. Otherwise, keep the folder and return False."""
        if (self.path / "run.json").exists() or (self._launches.exists() and self._launches.stat().st_size):
            return False
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def write_run(self, run: Run, *, signed: bool = False) -> None:
        """Write run.json atomically. If `signed`, sign it as a run of this machine, so that it can be resumed here."""
        from harness.store.signature import sign  # noqa: PLC0415 - reports don't need it

        with self._writing("run.json") as path:
            data = codec.dump(run, indent=2) + b"\n"
            write_atomically(path, sign(data) if signed else data, synced=True)

    def read_run(self) -> Run:
        """Read and check run.json. Raises UsageError for a corrupt file."""
        path = self.path / "run.json"
        run = codec.load(Run, self._read(path.name, RUN_MOST), path)
        try:
            check_run(run)
        except ValueError as error:
            raise DamagedError(path, str(error)) from None
        return run

    def is_from_here(self) -> bool:
        """Return whether this user wrote run.json on this machine. Other run.json files are untrusted."""
        from harness.store.signature import is_from_here  # noqa: PLC0415 - reports don't need it

        return is_from_here(self._read("run.json", RUN_MOST))

    def append(self, launch: Launch) -> None:
        """Append a finished launch as one line, and sync the file. If writing fails, no part of the line remains."""
        with self._writing("launches.jsonl") as path:
            append(Path(path.name), codec.dump(launch), within=self.path)

    def read_launches(self, run: Run | None = None) -> list[Launch]:
        """Return the finished launches in the order in which they ended, without an incomplete last line.

        With `run`, check that each launch belongs to the run. Raises UsageError for a corrupt line.
        """
        lines, check, launches = self._read_lines(), launch_check(run) if run else check_launch, list[Launch]()
        compactor = codec.LaunchCompactor()
        with pause_garbage_collection():
            for number, line in enumerate(lines, 1):
                if line.strip():
                    source = f"{self._launches}, line {number}"
                    launch = codec.load(Launch, line, source)
                    try:
                        check(launch)
                    except ValueError as error:
                        raise DamagedError(source, str(error)) from None
                    launches.append(compactor.compact(launch))
        return launches

    def repair(self) -> bool:
        """Repair the folder of a run whose process was killed. Return whether the last line was incomplete.

        Removes an incomplete last line of launches.jsonl, so that the next launch starts on a new line, and deletes
        unfinished files.
        """
        for folder in (self.path, self.path / "charts", *self.path.glob("artifacts/**/")):
            remove_unfinished(folder)
        complete_size = sum(len(line) + 1 for line in self._read_lines())
        has_torn_line = self._launches.stat().st_size > complete_size
        if has_torn_line:
            with self._writing("launches.jsonl") as path:
                os.truncate(path, complete_size)
        return has_torn_line

    @property
    def is_torn(self) -> bool:
        """Whether launches.jsonl ends in the middle of a line."""
        with suppress(OSError), os.fdopen(open_regular_file(Path(self._launches.name), within=self.path), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            return file.read() not in (b"", b"\n")
        return False  # the next reader of the file reports the error

    def _read_lines(self) -> Iterator[bytes]:
        """Yield the complete lines of launches.jsonl one by one, because the file may not fit in memory."""
        try:
            with os.fdopen(open_regular_file(Path(self._launches.name), within=self.path), "rb") as file:
                while line := file.readline(LINE_MOST):
                    if line.endswith(b"\n"):
                        yield line[:-1]
                    elif len(line) == LINE_MOST:
                        raise DamagedError(self._launches, f"a line is longer than {LINE_MOST >> 20} MiB")
        except OSError as error:
            raise UsageError(f"{self._launches} cannot be read: {error.strerror}.") from None

    def _read(self, name: str, max_bytes: int) -> bytes:
        """Return the bytes of a file of the run.

        Raises UsageError if the file is missing, is a link, or isn't a regular file.
        """
        try:
            return read(Path(name), within=self.path, most=max_bytes)
        except OSError as error:
            raise UsageError(f"{self.path / name} cannot be read: {error.strerror}.") from None

    def _refuse_link(self, name: str) -> None:
        """Raise UsageError if a path in the run's folder is a link, or is in a linked folder."""
        path = self.path
        for part in Path(name).parts:
            path /= part
            if path.is_symlink():
                raise UsageError(
                    f"{path} is a link. harness doesn't read or write through links in a run's folder.",
                    "Check where the link points to, and remove the link.",
                )

    def write_artifacts(self, launch: str, artifacts: Mapping[str, bytes]) -> list[str]:
        """Write the artifacts of a launch to artifacts/`launch`/. Return their paths, relative to the run's folder."""
        relative_paths = []
        with self._writing("artifacts") as folder:
            for name, data in artifacts.items():
                path = (folder / launch).joinpath(*(part for part in Path(name).parts if part not in ("/", "..")))
                self._refuse_link(path.relative_to(self.path).as_posix())
                write_atomically(path, data)
                relative_paths.append(path.relative_to(self.path).as_posix())
        return relative_paths

    def read_profiles(self, launch: Launch) -> "dict[Part, Profile]":
        """Return the profiles among a launch's artifacts. Raises UsageError for a corrupt file or a newer schema."""
        from harness.model.profile import Part  # noqa: PLC0415 - only reports of profiles need it

        # files in subfolders belong to the scenario
        own_artifacts = {Path(name).name: name for name in launch.artifacts if name.count("/") == _OWN_SLASHES}
        return {
            part: codec.load_profile(self._read(name, PROFILE_MOST), self.path / name)
            for part in Part
            if (name := own_artifacts.get(f"{part.file}.json"))
        }

    def write_reports(
        self, texts: Mapping[str, str] | Mapping[str, bytes], again: str = "harness matrix --resume"
    ) -> list[Path]:
        """Write the files of a report, including charts/NAME.svg, and remove the files of an older report.

        Returns the paths of the files except charts. If writing fails, the error suggests the command `again`.
        """
        charts: dict[str, str | bytes] = {}
        paths = []
        for name, text in texts.items():
            if name.startswith("charts/"):
                charts[Path(name).name] = text
                continue
            with self._writing(name, again) as path:
                write_atomically(path, text)
            paths.append(path)
        self._write_charts(charts, again)
        if "details.md" not in texts:
            with self._writing("details.md", again) as path:
                path.unlink(missing_ok=True)
        return paths

    def _write_charts(self, charts: Mapping[str, str | bytes], retry_command: str) -> None:
        """Replace the files in charts/ with `charts`, by name. Without charts, remove the folder."""
        with self._writing("charts", retry_command) as path:
            for name, text in charts.items():
                write_atomically(path / name, text)
            for old_chart in path.glob("*.svg"):
                if old_chart.name not in charts:
                    old_chart.unlink(missing_ok=True)
            if not charts:
                with suppress(OSError):  # the folder is missing, or contains other files
                    path.rmdir()

    @contextmanager
    def _writing(self, name: str, retry_command: str = "harness matrix --resume") -> Iterator[Path]:
        """Yield the path of a file or folder of the run, for writing. An OSError becomes a CannotRunHereError.

        The error suggests `retry_command`, followed by the run's folder, to repeat the interrupted work.
        """
        self._refuse_link(name)
        path = self.path / name
        try:
            yield path
        except OSError as error:
            problem, remedy = f"{path} cannot be written: {error.strerror}.", suggest_remedy(error)
            if not (self.path / "run.json").exists():
                raise CannotRunHereError(problem, f"{remedy}, then start the run again.") from None
            raise CannotRunHereError(
                f"{problem} Finished launches are saved.",
                f"{remedy}, then continue with: {retry_command} {shlex.quote(str(self.path))}",
            ) from None


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector in the block. Later collections ignore objects that exist when the block ends.

    Reading a run creates hundreds of thousands of objects, and hardly any of them becomes garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
