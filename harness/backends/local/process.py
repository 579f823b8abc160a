"""One local process in its own session: pinned from its start, read in bounded memory, and ended with its children."""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from harness.backends.worker import Ending, Read
from harness.machine import niceness
from harness.machine.cpus import running_on
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

_CHUNK = 64 * 1024

#: What is read of a pipe without waiting: more than a pipe holds.
_REST = 1024**2

#: How often to check whether a process has ended, in seconds, if the system has no file descriptor for that.
_LOOK = 0.05


#: prctl(2): who is given the children of processes that have ended, and that it is to be this one.
_PR_SET_CHILD_SUBREAPER = 36

#: For how long processes that launches left are ended, in seconds; each may have left others.
_ORPHANS_SECONDS = 5.0

#: How often threads are looked for that are to be moved: a script may move its own back again, for ever.
_MOVES = 100

#: The kernel reports a process's start to 10 ms.
_TICK = 0.02


@dataclass
class _Started:
    """The started processes that haven't been waited for, and the time (`_now`) of the oldest one."""

    alive: set[int] = field(default_factory=set)
    since: float = 0.0


_STARTED = _Started()


def _become_subreaper() -> None:
    """Make this process the parent of orphans of its launches, such as a child in another session."""
    with contextlib.suppress(OSError, AttributeError):  # no Linux
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _now() -> float:
    """Return the seconds since the machine was started: a clock that can't be set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _start_time(pid: int) -> float:
    """When a process began, by `_now`. Raises OSError if there is none."""
    # the second field is the command's name in brackets, which may hold anything; the 22nd is the start
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _end_orphans() -> None:
    """Kill the processes that launches have left, if no process is alive that may own them.

    These are new children of this process that are in other sessions. Its own children are in its session, which no
    process of another session can enter.
    """
    if _STARTED.alive:
        return
    until, own, begun = time.monotonic() + _ORPHANS_SECONDS, os.getsid(0), _STARTED.since - _TICK
    while time.monotonic() < until:
        left = []
        for child in psutil.Process().children():
            with contextlib.suppress(OSError):
                if os.getsid(child.pid) != own and _start_time(child.pid) >= begun:
                    left.append(child.pid)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


class LocalProcess:
    """A command to run in `folder`. With `takes_words`, it reads words from its standard input.

    On the CPUs `prior` it has the lowest nice value.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        limits: Limits,
        *,
        takes_words: bool,
        prior: Collection[int] = (),
    ) -> None:
        self._command = command
        self._folder = folder
        self._variables = dict(variables)
        self._limits = limits
        self._takes_words = takes_words
        self._prior = set(prior)
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[tuple[int, Read]] = []
        self._passed = False

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start it. Raises CannotRunHereError if it may not run on its CPUs."""
        _become_subreaper()
        if not _STARTED.alive:
            _STARTED.since = _now()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(running_on(self._limits.cpus or ()))
            except OSError as error:
                raise _refused(self._limits.cpus or (), error) from None
            if self._is_prior(self._limits.cpus or ()):
                stack.enter_context(niceness.running_at(niceness.LOWEST))
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
        _STARTED.alive.add(self._process.pid)
        pipes = [(self._process.stdout, stdout), (self._process.stderr, stderr)]
        self._readers = [(pipe.fileno(), read) for pipe, read in pipes if pipe is not None]

    def move(self, cpus: Collection[int]) -> None:
        """Move all of its threads, and its children's, to these CPUs. Raises CannotRunHereError if that isn't allowed.

        A new thread has the CPUs of the thread that starts it, so none is left after all known ones have moved.
        """
        nice = niceness.LOWEST if self._is_prior(cpus) else None
        try:
            for _ in range(_MOVES):
                root = psutil.Process(self._started.pid)
                if not sum(
                    _move_threads(process.pid, set(cpus), nice) for process in (root, *root.children(recursive=True))
                ):
                    return
        except psutil.NoSuchProcess:
            return
        except OSError as error:
            raise _refused(cpus, error) from None

    def follow(self, seconds: float) -> bool:
        """Read until it has ended or its time limit; return True if a reader has enough before that.

        The end of its output doesn't mean its end: it may have closed its streams, and others may hold them open after
        it.
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
            _STARTED.alive.discard(process.pid)
            _end_orphans()
            self.catch_up()
            self._readers = []
        if self._passed:
            return Ending(seconds=self._limits.seconds)
        return Ending(signal=-code) if code < 0 else Ending(code)

    def close(self) -> None:
        """End it where it was started."""
        if self._process is not None:
            self.end()

    def _is_prior(self, cpus: Collection[int]) -> bool:
        return bool(cpus) and set(cpus) <= self._prior

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("The process was not started.")
        return self._process


def _move_threads(pid: int, cpus: set[int], nice: int | None) -> int:
    """Have the threads of a process run on these CPUs; returns how many did not. Raises OSError if they may not.

    They get the value `nice`, if there is one.
    """
    moved = 0
    with contextlib.suppress(FileNotFoundError):  # the process has ended
        for thread in [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]:
            with contextlib.suppress(ProcessLookupError):  # the thread has
                if nice is not None:
                    os.setpriority(os.PRIO_PROCESS, thread, nice)
                if os.sched_getaffinity(thread) != cpus:
                    os.sched_setaffinity(thread, cpus)
                    moved += 1
    return moved


def _refused(cpus: Collection[int], error: OSError) -> CannotRunHereError:
    numbers = ", ".join(map(str, cpus))
    return CannotRunHereError(f"This process isn't allowed to run on the CPUs {numbers}: {error.strerror}.")


def _drain(pipe: int, read: Read) -> None:
    os.set_blocking(pipe, False)
    left = _REST
    with contextlib.suppress(BlockingIOError):
        while left > 0 and (chunk := os.read(pipe, _CHUNK)):
            left -= len(chunk)
            read(chunk)
