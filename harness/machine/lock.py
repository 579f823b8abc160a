"""Locks that the kernel lets go when their holder dies, however it dies."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.model.errors import CannotRunHereError


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
        # not O_CREAT on a file that is there: the kernel refuses that for another user's file in /tmp
        handle = os.open(path, os.O_RDWR if path.exists() else os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise CannotRunHereError(f"{busy} The lock {path} cannot be opened: {error.strerror}.", advice) from None
    try:
        with contextlib.suppress(PermissionError):  # whoever made it: other users must be able to open it
            os.fchmod(handle, 0o666)
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
            told = f"{busy} It is held by {holder or 'an unknown process'}."
            if waiting is None:
                raise CannotRunHereError(told, advice) from None
            waiting(f"{told} Waiting for it.")
            fcntl.flock(handle, how)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def lock_file() -> Path:
    """The lock of this machine, which all users share; `HARNESS_MACHINE_LOCK` names another file."""
    named = os.environ.get("HARNESS_MACHINE_LOCK")
    return Path(named) if named else Path(tempfile.gettempdir()) / "harness-machine.lock"


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
