"""The kernel's small files: a line or a number each. What cannot be read is None, never a guess."""

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.model.texts import parse_cpus


def text(path: Path) -> str | None:
    """What the file says, without white space at its ends; None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def integer(path: Path) -> int | None:
    """The number in the file; None where it cannot be read or holds none."""
    with contextlib.suppress(ValueError):
        return int(text(path) or "")
    return None


def cpu_list(path: Path) -> frozenset[int] | None:
    """The CPUs in a file such as `0-3,8`; None where it cannot be read or is no such list."""
    listed = text(path)
    with contextlib.suppress(ValueError):
        return None if listed is None else parse_cpus(listed)
    return None


def control_groups(root: Path, controller: str, process: str = "self") -> Iterator[Path]:
    """The folders of a process's control group and of those above it, in each hierarchy that may have a controller.

    `controller` is `cpu` or `memory`; `root` is `/`; `process` is a number, or `self`. Some folders may not exist.
    """
    for line in (text(root / "proc" / process / "cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [controllers, controller] if controllers else ["", "unified"]
        inside = PurePosixPath(path.lstrip("/"))
        for mount in mounts:
            # a group of a namespace is shown from the root, and may lie outside what is mounted
            for part in (inside, *inside.parents):
                yield root / "sys/fs/cgroup" / mount / part


def printable(name: str) -> str:
    """A process's name, which it chooses itself, with `?` for what does not print."""
    return "".join(character if character.isprintable() else "?" for character in name)
