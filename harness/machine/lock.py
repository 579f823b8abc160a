"""Locks that the kernel releases when their holder ends, even after `kill -9`."""

import contextlib
import errno
import fcntl
import getpass
import math
import os
import platform
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.files import choose_mode, get_data_dir, make_folder, open_regular_file, suggest_remedy
from harness.machine import sysfs
from harness.model.errors import CannotRunHereError
from harness.model.texts import counted, escape, remove_password

#: The largest number of characters of the holder's command in a lock file, and of bytes that are read from the file.
_COMMAND_LENGTH, _NOTE_BYTES = 120, 600

#: The second line of a lock file: the run that its holder measures, and when the run probably ends (`time.time()`).
_RUN = re.compile(r"run (\S+) until (\d+)\s*")

#: Seconds between two looks of a waiting process at the holder and at its own place in the queue.
_LOOK_SECONDS = 2.0

#: The first lines of the lock files that this process holds, by descriptor.
_held: dict[int, str] = {}


class _BusyError(CannotRunHereError):
    """Error for a lock that another process holds."""


@contextlib.contextmanager
def hold_lock(
    path: Path,
    busy: str,
    advice: str = "",
    waiting: Callable[[str], object] | None = None,
    *,
    mode: int = fcntl.LOCK_EX,
) -> Iterator[None]:
    """Hold the lock file `path`. If another process holds it, call `waiting` with a message that names it, and wait.

    Without `waiting`, raises CannotRunHereError instead, with `busy` and a description of the holder. With the mode
    LOCK_SH, other processes with this mode can hold the lock at the same time.
    """
    # its holder may have removed the file after it was opened here, and then nobody else sees this lock
    while not _is_file_of(handle := _lock(path, mode, busy, advice, waiting), path):
        os.close(handle)
    try:
        command = shlex.join([Path(sys.argv[0]).name, *map(remove_password, sys.argv[1:])])
        holder = f"{_get_user()}, process {os.getpid()}, since {time.strftime('%H:%M')}"
        _held[handle] = f"{holder} ({escape(command)[:_COMMAND_LENGTH]})"
        _write(handle, _held[handle])
        yield
    finally:
        _held.pop(handle, None)
        os.close(handle)


def record_end(run: str, end: float) -> None:
    """Record which run this process measures, and when it probably ends (`time.time()`), for those who wait."""
    for handle, holder in _held.items():
        _write(handle, f"{holder}\nrun {run} until {end:.0f}")


def _write(handle: int, text: str) -> None:
    # on a full disk, the holder can't be recorded, but the lock is still held
    with contextlib.suppress(OSError):
        os.ftruncate(handle, os.pwrite(handle, text.encode(), 0))


def _get_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for the user
        return f"user {os.getuid()}"


def _read_holder(handle: int) -> tuple[str, str]:
    """Return the holder of a lock file, and a sentence about its run; each is empty if it isn't recorded."""
    holder, _, second = os.pread(handle, _NOTE_BYTES, 0).decode(errors="replace").strip().partition("\n")
    match = _RUN.fullmatch(second)
    minutes = math.ceil((int(match[2]) - time.time()) / 60) if match else 0
    run = f" Its run {match[1]} takes about {counted(minutes, 'more minute')}." if match and minutes > 0 else ""
    return holder, run


def _find_place(handle: int, locks: Path = Path("/proc/locks")) -> int:
    """Return the place of this process in the queue for a lock file, or its place if it waited now.

    The kernel lists the processes that wait, in their order. The list may omit other containers.
    """
    suffix, lines = f":{os.fstat(handle).st_ino}", (sysfs.read_text(locks) or "").splitlines()
    waiters = [words[5] for words in map(str.split, lines) if words[1] == "->" and words[6].endswith(suffix)]
    own_id = str(os.getpid())
    return waiters.index(own_id) + 1 if own_id in waiters else len(waiters) + 1


def _wait(handle: int, mode: int, busy: str, waiting: Callable[[str], object]) -> None:
    """Wait for a lock. Call `waiting` with its holder and the place in the queue, whenever one of them changes."""
    acquired, last_report = threading.Event(), None

    def report() -> None:
        nonlocal last_report
        (holder, run), place = _read_holder(handle), _find_place(handle)
        if (holder, place) != last_report:
            last_report = (holder, place)
            queue = f" {counted(place - 1, 'process')} will have it first." if place > 1 else ""
            waiting(f"{busy} It is held by {holder or 'an unknown process'}.{run}{queue} Waiting for it.")

    def watch() -> None:
        while not acquired.wait(_LOOK_SECONDS):
            report()

    report()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        fcntl.flock(handle, mode)
    finally:
        acquired.set()
        thread.join()


def _lock(path: Path, mode: int, busy: str, advice: str, waiting: Callable[[str], object] | None) -> int:
    """Open and lock the lock file `path`, as `hold_lock` does. Return its descriptor."""
    try:
        if path.is_relative_to(get_data_dir()):
            make_folder(path.parent)
        handle = _open_lock(path)
    except OSError as error:
        raise CannotRunHereError(
            f"The lock {path} cannot be opened: {error.strerror}.", _suggest_remedy(path, error)
        ) from None
    try:
        try:
            fcntl.flock(handle, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                holder, run = _read_holder(handle)
                text = f"{busy} It is held by {holder or 'an unknown process'}.{run}"
                raise _BusyError(text, advice) from None
            _wait(handle, mode, busy, waiting)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_file_of(handle: int, path: Path) -> bool:
    """Return whether a descriptor's file is still the file at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _suggest_remedy(path: Path, error: OSError) -> str:
    is_full = error.errno in (errno.EROFS, errno.ENOSPC, errno.EDQUOT)
    if path.is_relative_to(get_data_dir()) and (is_full or error.errno in (errno.EACCES, errno.ENOTDIR)):
        return f"{suggest_remedy(error)}, or set HARNESS_DATA_DIR to a folder that you can write to."
    if is_full:
        return f"{suggest_remedy(error)}, then run the command again."
    # in contrast to pathlib, this doesn't raise an error in a folder that can't be entered
    exists = os.path.exists(path)  # noqa: PTH110
    return f"If no process uses the lock, remove it: rm {shlex.quote(str(path))}" if exists else ""


def _open_lock(path: Path) -> int:
    """Open a lock file, and create it if it is missing. Raises OSError for a link or anything but a regular file."""
    while True:
        try:
            # no O_CREAT for an existing file: in a shared folder, the kernel refuses it for another user's file
            handle = open_regular_file(Path(path.name), os.O_RDWR, within=path.parent)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # another process has created it in the meantime
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, choose_mode(path))
                shared_prefix = os.environ.get("HARNESS_MACHINE_LOCK")
                if shared_prefix and str(path).startswith(shared_prefix):
                    os.fchmod(descriptor, 0o666)  # other users may share the lock
                return descriptor
            continue
        if os.fstat(handle).st_nlink > 1:  # 0 if its holder has just removed it
            os.close(handle)
            raise OSError(errno.EMLINK, "the file has a second name (hard link)")
        return handle


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock file `path`. A missing or unreadable file isn't held."""
    try:
        handle = open_regular_file(Path(path.name), os.O_RDONLY, within=path.parent)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def get_lock_path() -> Path:
    """Return the path of the user's lock for this machine.

    If `HARNESS_MACHINE_LOCK` is set, its value is the path. Several users can share this file.
    """
    if path := os.environ.get("HARNESS_MACHINE_LOCK"):
        return Path(path)
    # several machines may share a home folder
    return get_data_dir() / f"{platform.node() or 'machine'}.lock"


def find_measuring() -> list[str]:
    """Return who measures on this machine, or in its slots: a holder, and a sentence about its run, if it is known."""
    path = get_lock_path()
    holders = []
    for lock in (path, *sorted(path.parent.glob(f"{path.name}.*"))):
        if is_held(lock):
            handle = open_regular_file(Path(lock.name), os.O_RDONLY, within=lock.parent)
            holders.append(".".join(_read_holder(handle)))
            os.close(handle)
    return holders


def get_run_lock_path(run: str) -> Path:
    """Return the path of the lock that a run of this user holds. It doesn't depend on the run's folder."""
    return get_data_dir() / "runs" / f"{re.sub(r'[^A-Za-z0-9-]', '_', run)}.lock"


@contextlib.contextmanager
def hold_run_lock(run: str) -> Iterator[None]:
    """Hold a run's lock. Raises CannotRunHereError if another process measures or cleans up the run."""
    path = get_run_lock_path(run)
    with hold_lock(path, f"The run {run} is still in progress."):
        yield
        with contextlib.suppress(OSError):  # the file may remain, because it isn't locked any more
            path.unlink(missing_ok=True)


#: The error and the advice if the machine, or every slot of it, is in use.
_BUSY_MESSAGE = "Another run is measuring on this machine."
_ADVICE = "Run this command again after that run has ended, or pass --wait to wait for it."

#: Seconds between two attempts to get a slot.
_RETRY_SECONDS = 0.5


def hold_machine(waiting: Callable[[str], object] | None = None) -> contextlib.AbstractContextManager[None]:
    """Hold the machine's lock. Two runs, or a run and a build, at the same time would affect the measured times."""
    return hold_lock(get_lock_path(), _BUSY_MESSAGE, _ADVICE, waiting)


@contextlib.contextmanager
def hold_slot(slots: Sequence[Sequence[str]], waiting: Callable[[str], object] | None = None) -> Iterator[int]:
    """Hold the first free slot, and share the machine with runs in other slots. Yields the slot's index.

    A slot is a list of names (`cpu3`, `gpu0`), and each name has a separate lock. So two slots that overlap can't be
    held at the same time, even if runs divide the machine differently. While a run holds the whole machine, no slot is
    free. If no slot is free, call `waiting` and wait; without `waiting`, raise CannotRunHereError.
    """
    machine_lock, last_report = get_lock_path(), ""
    with hold_lock(machine_lock, _BUSY_MESSAGE, _ADVICE, waiting, mode=fcntl.LOCK_SH):
        while True:
            for index, names in enumerate(slots):
                with contextlib.ExitStack() as stack:
                    try:
                        for name in sorted(names):
                            slot_lock = machine_lock.with_name(f"{machine_lock.name}.{name}")
                            stack.enter_context(hold_lock(slot_lock, _BUSY_MESSAGE))
                    except _BusyError as error:
                        busy_error = error
                        continue
                    yield index
                    return
            if waiting is None:
                raise CannotRunHereError(f"No slot of this machine is free. {busy_error.message}", _ADVICE)
            # the sentence about the run has the time left, and so changes all the time
            if (holder := busy_error.message.partition(" Its run ")[0]) != last_report:
                waiting(f"No slot of this machine is free. {busy_error.message} Waiting for a slot.")
                last_report = holder
            time.sleep(_RETRY_SECONDS)
