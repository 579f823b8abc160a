"""Runs a child process that ends when harness ends, even after `kill -9`. Otherwise, a build could run much longer.

This file is also the guard, a program that harness starts and that starts the command. The guard waits until the
command ends, or until its own standard input is closed. harness holds the other side of this pipe.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

#: Seconds after which a terminated command is killed.
PATIENCE = 10.0


def guard_command(command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` under the guard. Start it with `stdin=subprocess.PIPE`.

    Keep the pipe open. If it closes, or if the guard gets INT, TERM or HUP, the guard terminates the command and its
    children, which are in a separate session, and kills them if they don't end. The exit code is the command's.
    """
    return [sys.executable, "-I", __file__, *command]


def run(command: Sequence[str], environ: Mapping[str, str], seconds: float | None = None) -> tuple[int, str]:
    """Run a command under the guard. Return its exit code, and its stdout and stderr in one text.

    After `seconds`, if given, the command is terminated, and the last line of the text reports this.
    """
    process = subprocess.Popen(
        guard_command(command),
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    timeout_messages: list[str] = []

    def stop() -> None:
        timeout_messages.append(f"the process took longer than {f'{seconds:.1f}'.removesuffix('.0')} s")
        process.terminate()

    timer = threading.Timer(seconds, stop) if seconds else None
    try:
        with process:
            if timer:
                timer.start()
            output = process.stdout.read() if process.stdout else ""
    finally:
        if timer:
            timer.cancel()
    return process.returncode, "\n".join([output.rstrip("\n"), *timeout_messages])


def _main(command: Sequence[str]) -> int:
    is_requested, has_ended = threading.Event(), threading.Event()

    def end_command() -> None:
        is_requested.wait()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            if has_ended.wait(PATIENCE):
                break

    def watch() -> None:
        while os.read(0, 1):
            pass
        is_requested.set()

    for stop_signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop_signal, lambda *_: is_requested.set())
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for task in (watch, end_command):
        threading.Thread(target=task, daemon=True).start()
    code = process.wait()
    has_ended.set()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
