"""Observed values by environment as tables: side by side, or of many environments in lines; long ones in full below."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from harness.analysis.observations import Observed
from harness.model.scenario import ENVIRONMENT, Cell
from harness.report import blocks
from harness.report.blocks import REST, Code, Entry, Folded, Head, Table, Text, Where
from harness.report.sentences import SIDE_BY_SIDE

#: A value is cut from here on, and told in full below its table: so much of it, and so many values.
CHARACTERS = 60
FULL_CHARACTERS, FULL = 4000, 20

#: In place of a value that is the same as in the environment before.
SAME = "="


@dataclass(frozen=True, slots=True)
class SeenValue:
    """What one place of a table tells, whole; without `is_observed` it is the reason why nothing was observed."""

    text: str
    is_observed: bool = True
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class SeenLine:
    """A row before it is laid out: its labels, and a value for each column; None where there is no such cell.

    `name` is what it is called where it stands alone; `cell` is the one that all of it is about.
    """

    name: str
    labels: Sequence[str | Entry]
    values: Sequence[SeenValue | None]
    cell: Cell | None = None


def text(value: Any) -> str:
    """A value as people write it: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def seen(observed: Observed) -> str:
    """What was observed; all of it where launches disagree."""
    return "; ".join(map(text, observed.values))


def by_environment(
    caption: str,
    labels: Sequence[str],
    environments: Sequence[str],
    lines: Sequence[SeenLine],
    *,
    changes: bool = False,
    where: Where = REST,
) -> Table:
    """Environments as columns, or as lines where these would be too many.

    With `changes`, a value stands out where it is other than in the environment before, and is `SAME` where it is not.
    """
    heads = [Head(label, is_label=True) for label in labels]
    if len(environments) > SIDE_BY_SIDE:
        by_line = [*heads, Head(ENVIRONMENT, is_label=True), Head("value")]
        rows = [row for line in lines for row in _runs(line, environments, changes=changes)]
        return Table(caption, by_line, rows, where=where)
    marked = [replace(line, values=list(_changes(line.values))) for line in lines] if changes else lines
    return side_by_side(caption, heads, environments, marked, where=where)


def side_by_side(
    caption: str, labels: Sequence[Head], headings: Sequence[str], lines: Sequence[SeenLine], *, where: Where = REST
) -> Table:
    """The values as they are, each under its heading."""
    rows = [blocks.Line([*map(_label, line.labels), *map(_entry, line.values)], line.cell) for line in lines]
    return Table(caption, [*labels, *map(Head, headings)], rows, where=where)


def in_full(headings: Sequence[str], lines: Sequence[SeenLine]) -> list[Folded]:
    """What is cut in a table, each value of a line once, with the headings that have it."""
    found: list[tuple[str, str]] = []
    for line in lines:
        having: dict[str, list[str]] = {}
        for heading, value in zip(headings, line.values, strict=True):
            if value and len(_on_one_line(value.text)) > CHARACTERS:
                having.setdefault(value.text, []).append(heading)
        found += [(", ".join([line.name, *named]), whole[:FULL_CHARACTERS]) for whole, named in having.items()]
    told = [block for what, whole in found[:FULL] for block in (Text(f"{what}:"), Code(whole, "text"))]
    more = [Text(f"{len(found) - FULL} more are in launches.jsonl.")] if len(found) > FULL else []
    return [Folded("In full", [*told, *more])] if told else []


def _changes(values: Iterable[SeenValue | None]) -> Iterator[SeenValue | None]:
    before: str | None = None
    for value in values:
        if value is None or not value.is_observed:
            yield value
            continue
        changed = before is not None and value.text != before
        yield SeenValue(SAME if value.text == before else value.text, stands_out=changed or value.stands_out)
        before = value.text


def _runs(line: SeenLine, environments: Sequence[str], *, changes: bool) -> Iterator[blocks.Line]:
    """A row for each run of environments, one after the other, that tell the same; the labels stand in the first."""
    known = [(name, value) for name, value in zip(environments, line.values, strict=True) if value]
    labels = [*map(_label, line.labels)]
    for number, (value, members) in enumerate(groupby(known, key=lambda pair: pair[1])):
        names = [name for name, _ in members]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"
        changed = changes and value.is_observed and number > 0
        told = replace(value, stands_out=value.stands_out or changed)
        yield blocks.Line([*(Entry("") if number else label for label in labels), Entry(span), _entry(told)], line.cell)


def _label(label: str | Entry) -> Entry:
    return label if isinstance(label, Entry) else Entry(label)


def _entry(value: SeenValue | None) -> Entry:
    if value is None:
        return Entry("")
    line = _on_one_line(value.text)
    return Entry(line if len(line) <= CHARACTERS else f"{line[: CHARACTERS - 1]}…", value.stands_out)


def _on_one_line(whole: str) -> str:
    return " ".join(whole.split())
