"""Commands as forks of a process that has imported all they need, so that a test pays for no imports.

The process is the fork server of multiprocessing.
"""

import importlib
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import harness
from harness.cli import main as run_harness

#: The packages that commands import late; the harness's own modules are all imported. DuckDB is not: in a process that
#: ends, it prints which of its objects are left.
NEEDED = ("docker", "jinja2", "pydantic", "typer._adapters")

#: How the names of variables begin that Python or the loader reads at its start.
FIXED = ("PYTHON", "LC_", "LANG", "LD_")

#: `MODULE:NAME` of a function (or nothing), and the number of the call `before`, `after` or `amid` which it is killed.
Point = tuple[str, int, str]


class Forks:
    """The fork server, which has the variables that this process has now."""

    def __init__(self) -> None:
        self._environ = dict(os.environ)
        self._context = multiprocessing.get_context("forkserver")
        names = (package.name for package in pkgutil.walk_packages(harness.__path__, "harness."))
        self._context.set_forkserver_preload([*NEEDED, *(name for name in names if not name.endswith("__main__"))])

    def takes(self, environ: Mapping[str, str]) -> bool:
        """Whether a fork is the same as a process that is started with these variables."""
        mine, other = (
            {name: value for name, value in entry.items() if name.startswith(FIXED)}
            for entry in (self._environ, environ)
        )
        return mine == other

    def ended(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        stdout: Path,
        stderr: Path,
        at: Point = ("", 1, "after"),
        seconds: float | None = None,
    ) -> int:
        """Run a command, killed at a point or after so many seconds; returns its exit code, negative for a signal."""
        process = self._context.Process(target=command, args=(arguments, dict(environ), folder, (stdout, stderr), at))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
        assert code is not None
        return code

    def run(
        self, arguments: Sequence[str], *, environ: Mapping[str, str], folder: Path, seconds: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command as subprocess.run does, and keep what it says."""
        with tempfile.TemporaryDirectory() as streams:
            paths = [Path(streams, name) for name in ("stdout", "stderr")]
            code = self.ended(
                arguments, environ=environ, folder=folder, stdout=paths[0], stderr=paths[1], seconds=seconds
            )
            out, err = (entry.read_text() if entry.exists() else "" for entry in paths)
        return subprocess.CompletedProcess(["harness", *arguments], code, out, err)


def die() -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def patch(point: str, count: int, when: str) -> None:
    """Have the count-th call of a function kill this process.

    Raises KeyError, AttributeError or ImportError where there is no such function.
    """
    module, _, path = point.partition(":")
    *holders, name = path.split(".")
    holder = importlib.import_module(module)
    for entry in holders:
        holder = getattr(holder, entry)
    attribute = vars(holder)[name]
    function: Callable[..., Any] = attribute.__func__ if isinstance(attribute, classmethod) else attribute
    calls = 0

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count and when == "before":
            die()
        if calls == count and when == "amid":  # half of what it writes
            path, line = arguments
            with Path(named.get("within", ""), path).open("ab") as file:
                file.write(line[: len(line) // 2])
            die()
        result = function(*arguments, **named)
        if calls == count:
            die()
        return result

    setattr(holder, name, classmethod(called) if isinstance(attribute, classmethod) else called)


def command(
    arguments: Sequence[str], environ: Mapping[str, str], folder: Path, streams: tuple[Path, Path], at: Point
) -> None:
    """Be the command; raises SystemExit, as it does."""
    os.setsid()
    for target, path in ((1, streams[0]), (2, streams[1])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    tempfile.tempdir = None
    os.chdir(folder)
    sys.argv = ["harness", *arguments]
    try:
        if at[0]:
            patch(*at)
    except (AttributeError, ImportError, KeyError):
        traceback.print_exc()
        sys.exit(70)
    run_harness()
