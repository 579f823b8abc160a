"""Which processes used the CPUs. Their names are strangers' strings, of which only what prints is kept."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: So many of the busiest are named, of those that used at least so much of one CPU.
NAMED, FEWEST_PERCENT = 3, 1.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process's short name, and the clock ticks that it has used."""

    name: str
    ticks: int


def read(root: Path) -> dict[tuple[int, int], Process]:
    """All that are seen from here, by number and start: a number may be given again."""
    found = {}
    for path in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            number, begun, process = _parse((path / "stat").read_text(encoding="utf-8", errors="replace"))
            found[number, begun] = process
    return found


def _parse(stat: str) -> tuple[int, int, Process]:
    """One process's line; its name stands in parentheses and may hold any character, parentheses too."""
    head, _, tail = stat.rpartition(")")
    number, _, name = head.partition(" (")
    values = tail.split()  # the first of them is the line's third
    printable = "".join(character if character.isprintable() else "?" for character in name)
    return int(number), int(values[19]), Process(printable, int(values[11]) + int(values[12]))


def busiest(
    before: Mapping[tuple[int, int], Process], after: Mapping[tuple[int, int], Process], seconds: float, hertz: int
) -> list[dict[str, object]]:
    """The processes, other than this one, that used most: number, name, % of one CPU. One that ended is not seen."""
    used = {
        key: process.ticks - (before[key].ticks if key in before else 0)
        for key, process in after.items()
        if key[0] != os.getpid()
    }
    shares = {key: 100 * ticks / hertz / seconds for key, ticks in used.items()}
    first = sorted(shares, key=lambda key: (-shares[key], key))[:NAMED]
    return [
        {"pid": key[0], "name": after[key].name, "percent": shares[key]}
        for key in first
        if shares[key] >= FEWEST_PERCENT
    ]
