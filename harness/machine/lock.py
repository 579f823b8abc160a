"""Locks that the kernel lets go when their holder dies, however it dies."""

import contextlib
import errno
import fcntl
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.files import data_dir, make_folder, mode_of, opened, remedy
from harness.model.errors import CannotRunHereError
from harness.model.texts import escaped

#: How many characters of a holder's command a lock file has, and how many bytes of the file are read.
_COMMAND, _NOTE = 120, 600


def exclusive(
    path: Path, busy: str, advice: str = "", waiting: Callable[[str], object] | None = None
) -> contextlib.AbstractContextManager[None]:
    """Hold the lock file `path`. Where it is held, `waiting` is told by whom, and the lock is waited for.

    Without `waiting` raises CannotRunHereError then, with `busy` and its holder's note.
    """
    return _locked(path, fcntl.LOCK_EX, busy, advice, waiting)


@contextlib.contextmanager
def _locked(
    path: Path, how: int, busy: str, advice: str = "", waiting: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Hold the lock file `path`, alone (LOCK_EX) or with others who share it (LOCK_SH)."""
    try:
        handle = _opened(path)
    except OSError as error:
        raise CannotRunHereError(
            f"The lock {path} cannot be opened: {error.strerror}.",
            _remedy(path, error),
        ) from None
    try:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, _NOTE, 0).decode(errors="replace").strip()
            told = f"{busy} It is held by {holder or 'an unknown process'}."
            if waiting is None:
                raise CannotRunHereError(told, advice) from None
            waiting(f"{told} Waiting for it.")
            fcntl.flock(handle, how)
        # on a full disk nobody is told who holds it, and it is held all the same
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
            told = f"process {os.getpid()}, since {time.strftime('%H:%M')} ({escaped(command)[:_COMMAND]})"
            os.pwrite(handle, told.encode(), 0)
        yield
    finally:
        os.close(handle)


def _remedy(path: Path, error: OSError) -> str:
    if error.errno in (errno.EROFS, errno.ENOSPC, errno.EDQUOT):
        return f"{remedy(error)}, then type this again."
    return f"Remove it, if it is nobody's: rm {shlex.quote(str(path))}" if path.exists() else ""


def _opened(path: Path) -> int:
    """A descriptor of a lock file, which is made where there is none. Raises OSError for a link and what is no file."""
    while True:
        try:
            # not O_CREAT on a file that is there: the kernel refuses that for another user's file in a shared folder
            handle = opened(Path(path.name), os.O_RDWR, within=path.parent)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # another process made it meanwhile
                made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode_of(path))
                shared = os.environ.get("HARNESS_MACHINE_LOCK")
                if shared and str(path).startswith(shared):
                    os.fchmod(made, 0o666)  # the other users who share it must be able to open it
                return made
            continue
        if os.fstat(handle).st_nlink != 1:
            os.close(handle)
            raise OSError(errno.EMLINK, "the file has another name too")
        return handle


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file `path`; a file that is not there, or cannot be opened, is not held."""
    try:
        handle = opened(Path(path.name), os.O_RDONLY, within=path.parent)
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


def lock_file() -> Path:
    """Return the path of the user's lock for this machine.

    If `HARNESS_MACHINE_LOCK` is set, it is the path. Several users can share that file.
    """
    named = os.environ.get("HARNESS_MACHINE_LOCK")
    if named:
        return Path(named)
    folder = data_dir()
    with contextlib.suppress(OSError):  # the lock cannot be opened then, which says why
        make_folder(folder)
    # a home folder may be on several machines
    return folder / f"{platform.node() or 'machine'}.lock"


def run_lock(run: str) -> Path:
    """The lock of a run of this user, by its id, which it holds as long as it goes on, whatever its folder."""
    return data_dir() / "runs" / f"{re.sub(r'[^A-Za-z0-9-]', '_', run)}.lock"


@contextlib.contextmanager
def run_to_itself(run: str) -> Iterator[None]:
    """Hold a run. Raises CannotRunHereError where another process does: it measures, or cleans up."""
    path = run_lock(run)
    try:
        make_folder(path.parent)
    except OSError as error:
        raise CannotRunHereError(
            f"The folder {path.parent} cannot be written: {error.strerror}.",
            f"{remedy(error)}, or name another with HARNESS_DATA_DIR.",
        ) from None
    with exclusive(path, f"The run {run} is going on."):
        yield
        with contextlib.suppress(OSError):  # a file that stays says nothing: who holds it is what counts
            path.unlink(missing_ok=True)


#: What is said where the machine, or each of its slots, is held.
_BUSY = "Another run is measuring on this machine."
_WAIT = "Wait for it, then type this again; `harness matrix` and `profile` do so with --wait."

#: How often slots are looked at again by who waits for one, in seconds.
_AGAIN = 0.5


def machine_to_itself(waiting: Callable[[str], object] | None = None) -> contextlib.AbstractContextManager[None]:
    """Hold the machine: two runs would measure each other, and so would a run and another one's builds."""
    return exclusive(lock_file(), _BUSY, _WAIT, waiting)


@contextlib.contextmanager
def slot_to_itself(slots: Sequence[Sequence[str]], waiting: Callable[[str], object] | None = None) -> Iterator[int]:
    """Hold the first slot that is free, and the machine together with runs in other slots; gives its place.

    A slot is the names of all that it has (`cpu3`, `gpu0`), each with a lock of its own: so slots of two divisions of
    the machine exclude each other where they overlap. A run that has the machine to itself excludes all.
    Where no slot is free, raises CannotRunHereError, or tells `waiting` and waits.
    """
    with _locked(lock_file(), fcntl.LOCK_SH, _BUSY, _WAIT, waiting):
        told = False
        while True:
            for place, names in enumerate(slots):
                with contextlib.ExitStack() as held:
                    try:
                        for name in sorted(names):
                            held.enter_context(exclusive(lock_file().with_name(f"{lock_file().name}.{name}"), _BUSY))
                    except CannotRunHereError as error:
                        busy = error
                        continue
                    yield place
                    return
            if waiting is None:
                raise CannotRunHereError(f"No slot of this machine is free. {busy.message}", _WAIT)
            if not told:
                waiting(f"No slot of this machine is free. {busy.message} Waiting for one.")
                told = True
            time.sleep(_AGAIN)
