"""Runs a local process in a separate session. It is pinned from its start, and its children end together with it."""

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
from harness.machine.cpus import run_on_cpus
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

_CHUNK_BYTES = 64 * 1024

#: The largest number of bytes to read from a pipe without waiting. It is more than a pipe holds.
_DRAIN_BYTES = 1024**2

#: Seconds between checks whether a process has ended, on systems without file descriptors for processes.
_POLL_SECONDS = 0.05

#: The option of prctl(2) that makes this process the parent of its descendants' orphans.
_PR_SET_CHILD_SUBREAPER = 36

#: Time limit in seconds for ending the processes that launches have left behind. Each may have left other processes.
_ORPHANS_SECONDS = 5.0

#: The largest number of attempts to move all threads of a process, because a script can always move its threads back.
_MAX_MOVES = 100

#: Tolerance in seconds for the start times of processes, which the kernel reports in steps of 10 ms.
_TICK_SECONDS = 0.02


@dataclass
class _Started:
    """The started processes that haven't been waited for, and the time when the first one started.

    The time is in seconds since the machine was started (CLOCK_BOOTTIME), because this clock can't be set.
    """

    pids: set[int] = field(default_factory=set)
    first_start: float = 0.0


_STARTED = _Started()


def _read_start_time(pid: int) -> float:
    """Return the start time of a process, on the clock of `_Started`. Raises OSError if it doesn't exist."""
    # the second field is the command's name in parentheses, with any characters; the 22nd is the start time
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _end_orphans() -> None:
    """Kill the processes that launches have left behind, unless a launch is still running.

    These processes are new children of this process in other sessions. This process's other children are in its own
    session, which a process in another session can't enter.
    """
    if _STARTED.pids:
        return
    deadline, own_session = time.monotonic() + _ORPHANS_SECONDS, os.getsid(0)
    first_start = _STARTED.first_start - _TICK_SECONDS
    while time.monotonic() < deadline:
        has_ended_one = False
        for child in psutil.Process().children():
            with contextlib.suppress(OSError):  # it has ended, or this user may not kill it
                if os.getsid(child.pid) != own_session and _read_start_time(child.pid) >= first_start:
                    os.kill(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)
                    has_ended_one = True
        if not has_ended_one:
            return


@dataclass(eq=False)
class LocalProcess:
    """A process that runs a command in `folder`. With `takes_words`, it reads commands from its standard input.

    If it runs only on CPUs in `prior`, it gets the lowest nice value.
    """

    command: Sequence[str]
    folder: Path
    variables: Mapping[str, str]
    limits: Limits
    takes_words: bool
    prior: Collection[int] = ()
    _process: subprocess.Popen[bytes] | None = None
    _readers: Sequence[tuple[int, Read]] = ()
    _is_timed_out: bool = False

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start the command. Raises CannotRunHereError if it may not run on its CPUs."""
        with contextlib.suppress(OSError, AttributeError):  # systems other than Linux don't have this function
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if not _STARTED.pids:
            _STARTED.first_start = time.clock_gettime(time.CLOCK_BOOTTIME)
        cpus = self.limits.cpus or ()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(run_on_cpus(cpus))
            except OSError as error:
                raise _make_refusal(cpus, error) from None
            if self._has_priority(cpus):
                stack.enter_context(niceness.run_at_nice_value(niceness.LOWEST))
            self._process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.PIPE if self.takes_words else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        _STARTED.pids.add(self._process.pid)
        pipes = [(self._process.stdout, stdout), (self._process.stderr, stderr)]
        self._readers = [(pipe.fileno(), reader) for pipe, reader in pipes if pipe is not None]

    def move(self, cpus: Collection[int]) -> None:
        """Move all threads of the process and its children to these CPUs.

        Raises CannotRunHereError if the process may not run on them.

        A new thread inherits the CPUs of the thread that starts it. So if all existing threads have moved, no thread
        remains on other CPUs.
        """
        nice = niceness.LOWEST if self._has_priority(cpus) else None
        try:
            for _ in range(_MAX_MOVES):
                root = psutil.Process(self._started_process.pid)
                processes = (root, *root.children(recursive=True))
                if not sum(_move_threads(process.pid, set(cpus), nice) for process in processes):
                    return
        except psutil.NoSuchProcess:
            return
        except OSError as error:
            raise _make_refusal(cpus, error) from None

    def follow(self, seconds: float) -> bool:
        """Read the output until the process ends or until the time limit. Return True if a reader has read enough.

        The end of the output isn't the end of the process: the process may have closed its streams, and its children
        may keep the streams open after its end.
        """
        pid, deadline = self._started_process.pid, time.monotonic() + seconds
        with contextlib.ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            for pipe, reader in self._readers:
                selector.register(pipe, selectors.EVENT_READ, reader)
            has_pidfd = False
            with contextlib.suppress(AttributeError, OSError):  # Python or the kernel is too old for it
                pidfd = os.pidfd_open(pid)
                stack.callback(os.close, pidfd)
                has_pidfd = bool(selector.register(pidfd, selectors.EVENT_READ))
            while (remaining := deadline - time.monotonic()) > 0:
                for key, _ in selector.select(remaining if has_pidfd else min(remaining, _POLL_SECONDS)):
                    if key.data is None:
                        return False
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    elif key.data(chunk):
                        return True
                if not has_pidfd and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    return False
        self._is_timed_out = True
        return False

    def catch_up(self) -> None:
        """Read the output that is in its pipes, without waiting."""
        for pipe, reader in self._readers:
            os.set_blocking(pipe, False)
            remaining = _DRAIN_BYTES
            with contextlib.suppress(BlockingIOError):
                while remaining > 0 and (chunk := os.read(pipe, _CHUNK_BYTES)):
                    remaining -= len(chunk)
                    reader(chunk)

    def send(self, word: str) -> None:
        """Write a line to its standard input. If the process has ended, this does nothing."""
        stdin = self._started_process.stdin
        if stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(f"{word}\n".encode())

    def end(self) -> Ending:
        """Kill its whole process group, and return how the process itself ended."""
        with self._started_process as process:
            # kill the group before waiting for the process, because after that, another process may get its number
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            _STARTED.pids.discard(process.pid)
            _end_orphans()
            self.catch_up()
            self._readers = ()
        if self._is_timed_out:
            return Ending(seconds=self.limits.seconds)
        return Ending(signal=-code) if code < 0 else Ending(code)

    def close(self) -> None:
        """End the process if it was started."""
        if self._process is not None:
            self.end()

    def _has_priority(self, cpus: Collection[int]) -> bool:
        return bool(cpus) and set(cpus) <= set(self.prior)

    @property
    def _started_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("The process was not started.")
        return self._process


def _move_threads(pid: int, cpus: set[int], nice: int | None) -> int:
    """Move the threads of a process to these CPUs. Return the number of threads that were on other CPUs.

    The threads get the value `nice`, if it is given. Raises OSError if they may not be moved.
    """
    moved = 0
    with contextlib.suppress(FileNotFoundError):  # the process has ended
        for thread in [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]:
            with contextlib.suppress(ProcessLookupError):  # the thread has ended
                if nice is not None:
                    os.setpriority(os.PRIO_PROCESS, thread, nice)
                if os.sched_getaffinity(thread) != cpus:
                    os.sched_setaffinity(thread, cpus)
                    moved += 1
    return moved


def _make_refusal(cpus: Collection[int], error: OSError) -> CannotRunHereError:
    numbers = ", ".join(map(str, cpus))
    return CannotRunHereError(f"This process isn't allowed to run on the CPUs {numbers}: {error.strerror}.")
