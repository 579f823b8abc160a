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

#: What is read of a pipe without waiting: more than a pipe holds.
_REST = 1024**2

#: How often to look whether a process has ended, in seconds, where the system has no file descriptor for that.
_LOOK = 0.05


class LocalProcess:
    """A command to run in `folder`, which reads words from its standard input where it `takes_words`, else nothing."""

    def __init__(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], limits: Limits, *, takes_words: bool
    ) -> None:
        self._command = command
        self._folder = folder
        self._variables = dict(variables)
        self._limits = limits
        self._takes_words = takes_words
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[tuple[int, Read]] = []
        self._passed = False

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start it. Raises CannotRunHereError where it may not run on its CPUs."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(running_on(self._limits.cpus or ()))
            except OSError as error:
                wanted = ", ".join(map(str, self._limits.cpus or ()))
                raise CannotRunHereError(f"This process may not run on the CPUs {wanted}: {error.strerror}.") from None
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._variables,
                stdin=subprocess.PIPE if self._takes_words else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        pipes = [(self._process.stdout, stdout), (self._process.stderr, stderr)]
        self._readers = [(pipe.fileno(), read) for pipe, read in pipes if pipe is not None]

    def follow(self, seconds: float) -> bool:
        """Read until it has ended or its seconds have passed; True where a reader has enough before that.

        The end of its output is no end: it may have closed its streams, and others may hold them open after it.
        """
        pid, until = self._started.pid, time.monotonic() + seconds
        with contextlib.ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            for pipe, read in self._readers:
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
                        return True
                if not watched and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    return False
        self._passed = True
        return False

    def catch_up(self) -> None:
        """Read what its pipes hold, and wait for nobody."""
        for pipe, read in self._readers:
            _drain(pipe, read)

    def tell(self, word: str) -> None:
        """Write a line to its standard input; no mistake where it has ended."""
        stdin = self._started.stdin
        if stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(f"{word}\n".encode())

    def end(self) -> Ending:
        """End its whole process group, and say how it ended itself."""
        with self._started as process:
            # before the process is waited for: until then its number belongs to it and its group
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            self.catch_up()
            self._readers = []
        if self._passed:
            return Ending(seconds=self._limits.seconds)
        return Ending(signal=-code) if code < 0 else Ending(code)

    def close(self) -> None:
        """End it where it was started."""
        if self._process is not None:
            self.end()

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("The process was not started.")
        return self._process


def _drain(pipe: int, read: Read) -> None:
    os.set_blocking(pipe, False)
    left = _REST
    with contextlib.suppress(BlockingIOError):
        while left > 0 and (chunk := os.read(pipe, _CHUNK)):
            left -= len(chunk)
            read(chunk)
