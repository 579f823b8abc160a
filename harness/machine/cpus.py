"""Which CPUs a launch is pinned to."""

import contextlib
import os
from collections.abc import Iterator

from harness.model.errors import UsageError


def choose(wish: str, allowed: set[int]) -> tuple[int, ...] | None:
    """The CPUs that `--cpus` means: a count, `all` (None: no pinning), or a list such as `0,2-3`.

    A count takes the highest numbers: interrupts and whatever else runs here tend to the lowest. Raises UsageError for
    a count or a CPU that `allowed` (what this process may use) does not have.
    """
    if wish == "all":
        return None
    if wish.isdecimal():
        return _count(int(wish), allowed)
    if wish.endswith(",") and wish[:-1].isdecimal():
        return _listed({int(wish[:-1])}, wish, allowed)
    return _listed(_parse(wish), wish, allowed)


def _count(count: int, allowed: set[int]) -> tuple[int, ...]:
    if not 1 <= count <= len(allowed):
        raise UsageError(
            f"--cpus {count}: this process may use {len(allowed)} CPUs ({_format(allowed)}).",
            "Ask for fewer, or `--cpus all`. One CPU by number is `--cpus 1,` or `--cpus 1-1`.",
        )
    return tuple(sorted(allowed)[-count:])


def _listed(cpus: set[int], wish: str, allowed: set[int]) -> tuple[int, ...]:
    missing = cpus - allowed
    if missing or not cpus:
        raise UsageError(f"--cpus {wish}: this process may use the CPUs {_format(allowed)}, not {_format(missing)}.")
    return tuple(sorted(cpus))


def _parse(wish: str) -> set[int]:
    cpus: set[int] = set()
    for part in wish.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"--cpus {wish}: not a count, `all`, or a list of CPUs such as `0,2-3`.")
        if dash and int(last) - int(first) > 4096:
            raise UsageError(f"--cpus {wish}: {part.strip()} is a range of more than 4,096 CPUs.")
        cpus.update(range(int(first), int(last) + 1) if dash else [int(first)])
    return cpus


def _format(cpus: set[int]) -> str:
    return ", ".join(str(cpu) for cpu in sorted(cpus)) or "none"


@contextlib.contextmanager
def keeping_off(cpus: tuple[int, ...] | None) -> Iterator[None]:
    """Keep this process off the CPUs that launches are pinned to, where that leaves it any."""
    before = os.sched_getaffinity(0)
    rest = before - set(cpus or ())
    if cpus and rest:
        os.sched_setaffinity(0, rest)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
