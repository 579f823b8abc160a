"""A command that ends when the harness does, however that ends: `kill -9` asks nobody, and a build goes on for long.

This file is also the program that stands between the two: it waits for the command, and for the end of its own standard
input, of which the harness holds the other end.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

#: A command that was asked to end is killed after so many seconds.
PATIENCE = 10.0


def guarded(command: Sequence[str]) -> list[str]:
    """What to start in the place of a command, with `stdin=subprocess.PIPE`, which must stay open as long as it runs.

    Where that pipe closes, or it is asked to end itself (INT, TERM, HUP), the command and what it has started, in a
    session of their own, are asked to end, and killed if they do not. It ends as the command does.
    """
    return [sys.executable, "-I", __file__, *command]


def _main(command: Sequence[str]) -> int:
    asked, ended = threading.Event(), threading.Event()

    def ask(*_: object) -> None:
        asked.set()

    def end() -> None:
        asked.wait()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            if ended.wait(PATIENCE):
                break

    def watch() -> None:
        while os.read(0, 1):
            pass
        asked.set()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, ask)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for task in (watch, end):
        threading.Thread(target=task, daemon=True).start()
    code = process.wait()
    ended.set()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
