"""Commands that are killed with `kill -9`, at a point or at a moment: `python killed.py`.

Each is a fork of this process, which has imported what they need.

A line of its input is a JSON object: `arguments` of the command, `environ` and `folder` to run it in, `output` the file
that takes what it says; `point` (`MODULE:NAME`, or empty), `count` and `when` (`before`, `after` or `amid` the count-th
call), and `seconds` after which it is killed where nothing else has ended it. A line of its output is the status that
waitpid(2) tells.
"""

import importlib
import json
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

#: What the commands import when they need it, and each would again.
NEEDED = (
    "harness.cli.running",
    "harness.cli.history",
    "harness.fleet.merge",
    "harness.history.index",
    "harness.report.charts.picture",
    "harness.session",
    "scipy.special",
    "scipy.stats",
)


def die(*_: object) -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def patch(point: str, count: int, when: str) -> None:
    """Have the count-th call of a function kill this process. Raises KeyError, AttributeError or
    ImportError where there is no such function."""
    module, _, path = point.partition(":")
    *holders, name = path.split(".")
    holder = importlib.import_module(module)
    for each in holders:
        holder = getattr(holder, each)
    given = vars(holder)[name]
    function: Callable[..., Any] = given.__func__ if isinstance(given, classmethod) else given
    calls = 0

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count and when == "before":
            die()
        if calls == count and when == "amid":  # half of what it writes
            path, line = arguments
            with (named["within"] / path).open("ab") as file:
                file.write(line[: len(line) // 2])
            die()
        done = function(*arguments, **named)
        if calls == count:
            die()
        return done

    setattr(holder, name, classmethod(called) if isinstance(given, classmethod) else called)


def command(asked: dict[str, Any]) -> None:
    """Be the command; does not return."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    os.environ.update(asked["environ"])
    os.chdir(asked["folder"])
    sys.argv = ["harness", *asked["arguments"]]
    if asked["point"]:
        patch(asked["point"], asked["count"], asked["when"])
    from harness.cli import main

    main()


def waited(pid: int, seconds: float | None) -> int:
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
    for name in NEEDED:
        importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if not pid:
            code = 70
            try:
                command(asked)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            except (AttributeError, ImportError, KeyError):
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(waited(pid, asked["seconds"]), flush=True)


if __name__ == "__main__":
    main()
