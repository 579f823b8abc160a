"""Commands as forks of a process that has imported all they need, so that a test pays for no imports.

`python -m tests.forked` is that process. A line of its input is a JSON object: `arguments` of the command, `environ`
and `folder` to run it in, `stdout` and `stderr`, files that take what it says; `point` (`MODULE:NAME`, or empty),
`count` and `when` (`before`, `after` or `amid` the count-th call) at which it is killed with `kill -9`, and `seconds`
after which it is where nothing else has ended it. A line of its output is the status that waitpid(2) tells.
"""

import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
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


class Forks:
    """The process that forks. A context manager; asked by one thread at a time."""

    def __init__(self) -> None:
        self._environ = dict(os.environ)
        self._asking = threading.Lock()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            # Ctrl-C is for pytest, which ends it
            start_new_session=True,
        )

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def takes(self, environ: Mapping[str, str]) -> bool:
        """Whether a fork is the same as a process that is started with these variables, and can be asked for now."""
        mine, other = (
            {name: value for name, value in entry.items() if name.startswith(FIXED)}
            for entry in (self._environ, environ)
        )
        return mine == other and not self._asking.locked()

    def ended(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        stdout: Path,
        stderr: Path,
        at: tuple[str, int, str] = ("", 1, "after"),
        seconds: float | None = None,
    ) -> int:
        """Run a command, killed at a point or after so many seconds; returns its exit code, negative for a signal."""
        request = {
            "arguments": arguments,
            "environ": dict(environ),
            **{"folder": str(folder), "stdout": str(stdout), "stderr": str(stderr)},
            **dict(zip(("point", "count", "when"), at, strict=True)),
            "seconds": seconds,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._asking:
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            return os.waitstatus_to_exitcode(int(self._server.stdout.readline()))

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


def die(*_: object) -> None:
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


def command(request: dict[str, Any]) -> None:
    """Be the command; raises SystemExit, as it does."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    output, errors = (os.open(request[name], how, 0o644) for name in ("stdout", "stderr"))
    for target, source in ((0, nothing), (1, output), (2, errors)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    tempfile.tempdir = None
    os.chdir(request["folder"])
    sys.argv = ["harness", *request["arguments"]]
    try:
        if request["point"]:
            patch(request["point"], request["count"], request["when"])
    except (AttributeError, ImportError, KeyError):
        traceback.print_exc()
        sys.exit(70)
    run_harness()
    sys.exit()


def wait_for(pid: int, seconds: float | None) -> int:
    """How a child ended; it is killed after so many seconds."""
    with selectors.DefaultSelector() as selector:
        end = os.pidfd_open(pid)
        selector.register(end, selectors.EVENT_READ)
        if not selector.select(seconds):
            os.kill(pid, signal.SIGKILL)
        os.close(end)
    return os.waitpid(pid, 0)[1]


def main() -> None:
    """Take lines until there are no more."""
    names = (package.name for package in pkgutil.walk_packages(harness.__path__, "harness."))
    for name in [*NEEDED, *(name for name in names if not name.endswith("__main__"))]:
        importlib.import_module(name)
    gc.freeze()  # what is imported is never garbage
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            command(request)
        print(wait_for(pid, request["seconds"]), flush=True)


if __name__ == "__main__":
    main()
