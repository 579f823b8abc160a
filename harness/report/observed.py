"""Observed values as tables of text, environments side by side or in lines. Nothing here is escaped yet."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.analysis.observations import Observed
from harness.model.scenario import ENVIRONMENT
from harness.report.differences import SIDE_BY_SIDE, Text

#: A value is cut from here on, and told in full below its table: so much of it, and so many values.
CHARACTERS = 60
FULL_CHARACTERS, FULL = 4000, 20

#: The heading over what was observed, where environments are lines.
VALUE = "value"

#: In place of a value that is the same as in the environment before.
SAME = "="


@dataclass(frozen=True, slots=True)
class Entry:
    """What one cell of a table tells, whole; `is_value`: it was observed, rather than the reason why nothing was."""

    text: str
    is_value: bool = True
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A row before it is laid out: its labels, and an entry for each environment; None where there is no such cell.

    `name` is what it is called where it stands alone.
    """

    name: str
    labels: Sequence[str]
    entries: Sequence[Entry | None]


@dataclass(frozen=True, slots=True)
class Full:
    """A long value, and what and where it was."""

    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A table: its headings, its rows, and the values that are cut in them, the first `FULL` of them in full.

    `left` more are not told in full. `by_line`: environments are lines, not columns.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Text]]
    full: Sequence[Full]
    left: int
    by_line: bool


def text(value: Any) -> str:
    """A value as people write it: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def seen(observed: Observed) -> str:
    """What was observed; all of it where launches disagree."""
    return "; ".join(text(value) for value in observed.values)


def changes(labels: Sequence[str], environments: Sequence[str], lines: Sequence[Line]) -> Told:
    """Lines in which a value stands out where it is other than in the environment before, and is `SAME` where not."""
    if len(environments) > SIDE_BY_SIDE:
        rows = [row for line in lines for row in _runs(line, environments, mark=True)]
        return _told([*labels, ENVIRONMENT, VALUE], rows, environments, lines, by_line=True)
    marked = [[*map(Text, line.labels), *map(_cell, _changes(line.entries))] for line in lines]
    return _told([*labels, *environments], marked, environments, lines, by_line=False)


def plain(labels: Sequence[str], environments: Sequence[str], lines: Sequence[Line]) -> Told:
    """Lines with their entries as they are."""
    if len(environments) > SIDE_BY_SIDE:
        rows = [row for line in lines for row in _runs(line, environments, mark=False)]
        return _told([*labels, ENVIRONMENT, VALUE], rows, environments, lines, by_line=True)
    return columns(labels, environments, lines)


def columns(labels: Sequence[str], headings: Sequence[str], lines: Sequence[Line]) -> Told:
    """Lines with their entries as they are, each under its heading."""
    rows = [[*map(Text, line.labels), *map(_cell, line.entries)] for line in lines]
    return _told([*labels, *headings], rows, headings, lines, by_line=False)


def _changes(entries: Iterable[Entry | None]) -> list[Entry | None]:
    before: str | None = None
    marked: list[Entry | None] = []
    for entry in entries:
        if entry is None or not entry.is_value:
            marked.append(entry)
            continue
        changed = before is not None and entry.text != before
        same = before == entry.text
        marked.append(Entry(SAME if same else entry.text, stands_out=changed or entry.stands_out))
        before = entry.text
    return marked


def _told(
    headings: Sequence[str],
    rows: Sequence[Sequence[Text]],
    environments: Sequence[str],
    lines: Sequence[Line],
    *,
    by_line: bool,
) -> Told:
    full = _full(environments, lines)
    return Told(headings, rows, full[:FULL], max(0, len(full) - FULL), by_line)


def _runs(line: Line, environments: Sequence[str], *, mark: bool) -> list[list[Text]]:
    """A row for each run of environments, one after the other, that tell the same; the labels stand in the first.

    With `mark`, a value after the first stands out.
    """
    known = [(name, entry) for name, entry in zip(environments, line.entries, strict=True) if entry]
    rows: list[list[Text]] = []
    for entry, members in groupby(known, key=lambda pair: pair[1]):
        names = [name for name, _ in members]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"
        first = not rows
        shown = [Text(label) for label in line.labels] if first else [Text("") for _ in line.labels]
        changed = entry.stands_out or (mark and entry.is_value and not first)
        rows.append([*shown, Text(span), Text(_cut(entry.text), changed)])
    return rows


def _cell(entry: Entry | None) -> Text:
    return Text(_cut(entry.text), entry.stands_out) if entry else Text("")


def _cut(whole: str) -> str:
    line = " ".join(whole.split())
    return line if len(line) <= CHARACTERS else f"{line[: CHARACTERS - 1]}…"


def _full(environments: Sequence[str], lines: Sequence[Line]) -> list[Full]:
    """What is cut in the table, each value of a line once, with the environments that have it."""
    found: list[Full] = []
    for line in lines:
        having: dict[str, list[str]] = {}
        for name, entry in zip(environments, line.entries, strict=True):
            if entry and len(" ".join(entry.text.split())) > CHARACTERS:
                having.setdefault(entry.text, []).append(name)
        found += [Full(", ".join([line.name, *names]), whole[:FULL_CHARACTERS]) for whole, names in having.items()]
    return found
