"""Reads small files of the kernel, which contain a line or a number. If a file can't be read, the value is None."""

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.model.texts import parse_cpus


def read_text(path: Path) -> str | None:
    """Return the stripped text of a file, or None if it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_integer(path: Path) -> int | None:
    """Return the integer in a file, or None if it can't be read or contains no integer."""
    with contextlib.suppress(ValueError):
        return int(read_text(path) or "")
    return None


def read_cpu_list(path: Path) -> frozenset[int] | None:
    """Return the CPUs in a file with a list such as `0-3,8`, or None if it can't be read or parsed."""
    text = read_text(path)
    with contextlib.suppress(ValueError):
        return None if text is None else parse_cpus(text)
    return None


def find_control_groups(root: Path, controller: str, process: str = "self") -> Iterator[Path]:
    """Yield the folders of a process's control group and its parents, in each hierarchy that may have the controller.

    `controller` is `cpu` or `memory`; `root` is `/`; `process` is a number, or `self`. Some folders may not exist.
    """
    for line in (read_text(root / "proc" / process / "cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [controllers, controller] if controllers else ["", "unified"]
        group = PurePosixPath(path.lstrip("/"))
        for mount in mounts:
            # in a namespace, the path starts at the root, and may refer to a group outside the mount
            for folder in (group, *group.parents):
                yield root / "sys/fs/cgroup" / mount / folder


def make_printable(name: str) -> str:
    """Return a process's name, which is untrusted, with `?` for unprintable characters."""
    return "".join(character if character.isprintable() else "?" for character in name)
