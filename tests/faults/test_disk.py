"""A disk that is full at each write: nothing that was finished is lost, and the run goes on once there is room."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from harness.analysis.results import Results
from harness.cli.report import save
from harness.history.folder import History
from harness.history.summary import summarize
from harness.machine.identity import load_machine, name_machine
from harness.machine.lock import hold_lock
from harness.model.errors import CannotRunHereError
from harness.store.folder import RunFolder
from harness.store.signature import is_from_here, sign
from tests.cli.conftest import Harness
from tests.faults import full
from tests.runs import launch, run

SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "A sum, and what it was"
# [tool.harness.axes]
# length = ["short"]
# [[tool.harness.compare]]
# name = "new against old"
# along = "environment"
# ///


def scenario(bench, length):
    with open("sum.txt", "w") as file:
        file.write("1" * 20000)
    bench.artifact("sum.txt")
    bench.measure(lambda: sum(range(1000)))
"""

#: As short as a run can be that has all kinds of files.
RUN = (
    *("matrix", "-s", "kept", "--rounds", "1", "--backend", "local", "--seed", "1"),
    *("--warmup", "1ms", "--measure", "5ms"),
)


class Command:
    """The command, with all that it writes on the disk."""

    def __init__(self, harness: Harness, disk: Path, log: Path) -> None:
        self.disk, self.log, self._harness, self.environ = disk, log, harness, harness.environ
        self.environ |= {"HARNESS_DATA_DIR": str(disk / "data"), "HARNESS_CACHE_DIR": str(disk / "cache")}
        (harness.root / "scenarios" / "ways.py").unlink()
        (harness.root / "scenarios" / "kept.py").write_text(SCENARIO)

    def __call__(
        self, *arguments: str, when: str = "never", stdout: int | BinaryIO = subprocess.PIPE
    ) -> subprocess.CompletedProcess[str]:
        """Run it; the disk is full from the write `when` on."""
        return subprocess.run(
            [sys.executable, full.__file__, str(self.disk), when, str(self.log), *arguments],
            cwd=self._harness.root,
            env=self._harness.environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def writes(self) -> list[str]:
        """All that it wrote."""
        return self.log.read_text().splitlines()

    def run(self, when: str = "never") -> subprocess.CompletedProcess[str]:
        """Begin a run."""
        return self(*RUN, "--results", str(self.disk / "results"), when=when)

    def room(self) -> None:
        """Make room."""
        (self.disk / full.FILLER).unlink()

    @property
    def folders(self) -> list[Path]:
        """The folders of runs."""
        return [*(self.disk / "results").glob("*")]


@pytest.fixture
def command(harness: Harness, disk: Path, tmp_path: Path) -> Command:
    return Command(harness, disk, tmp_path / "log")


ENDS = {".html": "</html>\n", ".svg": "</svg>\n", ".md": "\n", ".json": "}\n", ".jsonl": "\n", ".txt": "1" * 20000}


def check_whole(folder: Path) -> list[str]:
    """No file has a part of what it should have, and none is left that was not finished. Returns the launches."""
    for path in folder.rglob("*"):
        assert not path.name.endswith(".part"), path
        if path.is_file() and path.name != ".lock":
            text = path.read_text()
            assert text.endswith(ENDS[path.suffix]) or (not text and path.name == "launches.jsonl"), path
    lines = (folder / "launches.jsonl").read_text().splitlines()
    for line in lines:
        for name in json.loads(line)["artifacts"]:
            assert (folder / name).read_text() == "1" * 20000
    return lines


def read_message(process: subprocess.CompletedProcess[str]) -> str:
    """The message of a command that had no room, which says what to do."""
    message = process.stderr
    assert "defect" not in message, message
    assert process.returncode == 4, message
    assert "No space left on device" in message or "MiB free" in message, message
    assert re.search(r"Free disk space|HARNESS_(DATA|CACHE)_DIR", message), message
    return message


#: More than is left of the page that a file ends in, which is there to be written to on a disk that is full.
LONG = "x" * 10000


def notes(disk: Path) -> None:
    History(disk / "history").note("2026-01-01", LONG)


def summaries(disk: Path) -> None:
    History(disk / "history").add(replace(summarize(Results(run(), [])), commit=LONG))


#: What writes, by what it writes: a folder, a file, and what was there before, or nothing.
WRITES: dict[str, Callable[[Path], object]] = {
    "a record": lambda disk: RunFolder(disk / "run").append(launch(error=LONG)),
    "run.json": lambda disk: RunFolder(disk / "run").write_run(replace(run(), commit=LONG), signed=True),
    "artifacts": lambda disk: RunFolder(disk / "run").write_artifacts("launch", {"a": b"1" * 5000, "b/c": b"2" * 5000}),
    "report.md": lambda disk: RunFolder(disk / "run").write_reports({"report.md": LONG}),
    "details.md": lambda disk: RunFolder(disk / "run").write_reports({"details.md": LONG}),
    "charts": lambda disk: RunFolder(disk / "run").write_reports({"charts/a.svg": LONG, "charts/b.svg": LONG}),
    "a new run's folder": lambda disk: RunFolder.create(disk, "new"),
    "the machine's name": lambda _: name_machine("name"),
    "a note": notes,
    "a summary": summaries,
    "a file for --output": lambda disk: save(disk / "out.json", LONG.encode()),
}


def mounted(disk: Path, how: str) -> None:
    """Have the disk mounted anew, `ro` or `rw`."""
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def files(disk: Path) -> dict[str, bytes]:
    """All files on the disk, by their paths, and what is in them."""
    return {str(path): path.read_bytes() for path in disk.rglob("*") if path.is_file() and path.name != full.FILLER}


@pytest.mark.slow
@pytest.mark.parametrize("is_full", [True, False], ids=["full", "read only"])
def test_a_write_that_fails_leaves_every_file_as_it_was(disk, is_full, monkeypatch):
    words = r"No space left on device|MiB free" if is_full else "Read-only file system"
    for number, (name, write) in enumerate(WRITES.items()):
        place = disk / str(number)
        place.mkdir()
        monkeypatch.setenv("HARNESS_DATA_DIR", str(place / "data"))
        folder = RunFolder.create(place, "run")
        folder.write_run(run(), signed=True)
        folder.append(launch())
        folder.write_reports({"report.md": "1", "details.md": "1", "charts/a.svg": "1"})
        load_machine()
        History(place / "history").note("2025-01-01", "before")
        before = files(place)
        full.fill(disk) if is_full else mounted(disk, "ro")
        with pytest.raises((CannotRunHereError, OSError), match=words) as error:
            write(place)
        assert files(place) == before, name
        if isinstance(error.value, CannotRunHereError):
            assert re.search("Free disk space|Make it writable|another", error.value.advice), name
        else:
            assert str(disk) in str(error.value.filename)
        (disk / full.FILLER).unlink() if is_full else mounted(disk, "rw")
        write(place)
        assert files(place) != before, name
        assert len(folder.read_launches()) == (2 if name == "a record" else 1)


def test_a_secret_that_cannot_be_kept_signs_nothing(disk, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_DIR", str(disk / "data"))
    full.fill(disk)
    assert not is_from_here(sign(b"{\n}\n"))
    assert not files(disk)
    (disk / full.FILLER).unlink()
    assert is_from_here(sign(b'{\n  "a": 1\n}\n'))


def test_a_lock_is_held_on_a_full_disk_too(disk):
    full.fill(disk)
    with (
        hold_lock(disk / "lock", "It is taken."),
        pytest.raises(CannotRunHereError, match="It is taken"),
        hold_lock(disk / "lock", "It is taken."),
    ):
        pass


@pytest.mark.slow
def test_folders_that_are_read_only_are_named_before_anything_is_launched(command):
    assert command.run().returncode == 0
    (folder,) = command.folders
    before = files(command.disk)
    mounted(command.disk, "ro")
    processes = [command("report", str(folder)), command("matrix", "--resume", str(folder))]
    # of a machine whose lock is elsewhere
    command.environ["HARNESS_DATA_DIR"] = str(command.log.parent / "data")
    processes += [command.run(), command(*RUN, "--results", str(command.log.parent / "results"))]
    mounted(command.disk, "rw")
    for process in processes:
        assert process.returncode == 4, process.stderr
        assert "defect" not in process.stderr
        assert "Read-only file system" in process.stderr
        assert re.search("Make it writable|HARNESS_CACHE_DIR|--results", process.stderr)
    assert files(command.disk) == before


#: The writes at which the disk is full in one test; in a campaign it is full at every one.
MOMENTS = ("run.json#1", "launches.jsonl#3")


@pytest.mark.slow
def test_a_run_on_a_disk_that_fills_up_goes_on_once_there_is_room(command):
    check_runs(command, MOMENTS)


@pytest.mark.campaign
def test_a_run_on_a_disk_that_fills_up_at_any_write_goes_on_once_there_is_room(command):
    assert command.run().returncode == 0
    # the files of a launch's scratch folder are many, and alike
    moments = [write for write in command.writes if ".py#" not in write]
    assert len(moments) > 30
    check_runs(command, moments)


def check_runs(command: Command, moments: Iterable[str]) -> None:
    for when in moments:
        for name in ("data", "results"):
            shutil.rmtree(command.disk / name, ignore_errors=True)
        process = command.run(when)
        assert (command.disk / full.FILLER).exists(), f"{when} was never written"
        if process.returncode:
            read_message(process)
        named = re.search(r"--resume (\S+)", process.stderr)
        lines = {folder: check_whole(folder) for folder in command.folders}
        # where there is something to go on with, the command for it is shown, and no folder is left where there is not
        assert [str(folder) for folder in lines] == ([named[1]] if named else []), process.stderr
        command.room()
        for folder, before in lines.items():
            resumed = command("matrix", "--resume", str(folder))
            assert resumed.returncode == 0, (when, resumed.stderr)
            after = check_whole(folder)
            assert after[: len(before)] == before
            assert [json.loads(line)["status"] for line in after].count("ok") >= 3
            assert (folder / "report.html").exists()
            assert list((folder / "charts").iterdir())


@pytest.mark.slow
def test_output_to_a_full_disk_is_a_sentence(command):
    with Path("/dev/full").open("wb") as output:
        process = command("scenarios", "list", stdout=output)
    assert "The output cannot be written" in read_message(process)
