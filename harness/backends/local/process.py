"""One local process in a session of its own: pinned from its first instruction, read in bounded memory, ended whole."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.backends.worker import Ending, Read
from harness.machine.cpus import running_on
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

_CHUNK = 64 * 1024

#: What is still read of a pipe after the process's end: more than a pipe holds.
_REST = 1024**2

#: How often to look whether a process has ended, in seconds, where the system has no file descriptor for that.
_LOOK = 0.05


def run(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], limits: Limits, *, stdout: Read, stderr: Read
) -> Ending:
    """Run a command in `folder` to its end, or until a reader returned True: that is enough.

    Its whole process group is gone when this returns or raises.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(running_on(limits.cpus or ()))
        except OSError as error:
            wanted = ", ".join(map(str, limits.cpus or ()))
            raise CannotRunHereError(f"This process may not run on the CPUs {wanted}: {error.strerror}.") from None
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    pipes = [(process.stdout, stdout), (process.stderr, stderr)]
    readers = [(pipe.fileno(), read) for pipe, read in pipes if pipe is not None]
    with process:
        try:
            passed = _follow(process.pid, readers, time.monotonic() + limits.seconds)
        finally:
            # before the process is waited for: until then its number belongs to it and its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        for pipe, read in readers:
            _drain(pipe, read)
    if passed:
        return Ending(seconds=limits.seconds)
    return Ending(signal=-code) if code < 0 else Ending(code)


def _follow(pid: int, readers: Sequence[tuple[int, Read]], until: float) -> bool:
    """Read until the process has ended or said enough; True where its time passed first.

    The end of its output is no end: it may have closed its streams, and others may hold them open after it.
    """
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for pipe, read in readers:
            selector.register(pipe, selectors.EVENT_READ, read)
        watched = hasattr(os, "pidfd_open")
        if watched:
            end = os.pidfd_open(pid)
            stack.callback(os.close, end)
            selector.register(end, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left if watched else min(left, _LOOK)):
                if key.data is None:
                    return False
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                elif key.data(chunk):
                    return False
            if not watched and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return False
    return True


def _drain(pipe: int, read: Read) -> None:
    """Read what a pipe still holds, and wait for nobody."""
    os.set_blocking(pipe, False)
    left = _REST
    with contextlib.suppress(BlockingIOError):
        while left > 0 and (chunk := os.read(pipe, _CHUNK)):
            left -= len(chunk)
            read(chunk)
