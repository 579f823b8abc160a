"""Locks that the kernel lets go when their holder dies, however it dies."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.model.errors import CannotRunHereError


@contextlib.contextmanager
def exclusive(
    path: Path, busy: str, advice: str = "", waiting: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Hold the lock file `path`. Where it is held, `waiting` is told by whom, and the lock is waited for.

    Without `waiting` raises CannotRunHereError then, with `busy` and its holder's note.
    """
    try:
        # not O_CREAT on a file that is there: the kernel refuses that for another user's file in /tmp
        handle = os.open(path, os.O_RDWR if path.exists() else os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise CannotRunHereError(f"{busy} The lock {path} cannot be opened: {error.strerror}.", advice) from None
    try:
        with contextlib.suppress(PermissionError):  # whoever made it: other users must be able to open it
            os.fchmod(handle, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
            told = f"{busy} It is held by {holder or 'an unknown process'}."
            if waiting is None:
                raise CannotRunHereError(told, advice) from None
            waiting(f"{told} Waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def lock_file() -> Path:
    """The lock of this machine, which all users share; `HARNESS_MACHINE_LOCK` names another file."""
    named = os.environ.get("HARNESS_MACHINE_LOCK")
    return Path(named) if named else Path(tempfile.gettempdir()) / "harness-machine.lock"


def machine_to_itself(waiting: Callable[[str], object] | None = None) -> contextlib.AbstractContextManager[None]:
    """Hold the machine: two runs would measure each other, and so would a run and another one's builds."""
    return exclusive(
        lock_file(),
        "Another run is measuring on this machine.",
        "Wait for it, then type this again; `harness matrix` and `profile` do so with --wait.",
        waiting,
    )
