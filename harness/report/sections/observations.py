"""Observations that aren't times, by scenario. Long values are shown in full below their table."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from harness.analysis.behaviour import Behaviour, ObservationEntry
from harness.analysis.observations import Observed
from harness.analysis.results import Results
from harness.model.scenario import ENVIRONMENT
from harness.report import names
from harness.report.blocks import (
    EVERYWHERE,
    REST,
    Block,
    Code,
    Entry,
    Folded,
    Head,
    Line,
    Section,
    Table,
    Text,
    Where,
)
from harness.report.escape import shorten
from harness.report.phrases import SIDE_BY_SIDE, format_heading

#: The largest number of characters of a value in a table. Longer values are cut, and shown in full below the table.
CHARACTERS = 60
#: The largest number of characters of a value that is shown in full, and of such values.
FULL_CHARACTERS, FULL = 4000, 20

#: The text that replaces a value that is the same as in the previous environment.
SAME = "="


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the tables of observations.

    If nothing is timed, they are the main results. Otherwise, they are in the details.
    """
    behaviours = results.behaviours
    if behaviours:
        blocks = [block for behaviour in behaviours for block in _list_blocks(results, behaviour)]
        yield Section("Observations", "observed", [*make_legends(results), *blocks])


def make_legends(results: Results) -> Iterator[Text]:
    """Yield the legends of the tables."""
    is_wide = {len(behaviour.environments) > SIDE_BY_SIDE for behaviour in results.behaviours}
    sentences = [
        f"{SAME} means the same as in the environment to its left." if False in is_wide else "",
        "Adjacent environments with the same observation share a line." if True in is_wide else "",
        "Bold: different from the environment before, or the cell's launches disagree.",
    ]
    is_timed = {behaviour.timed for behaviour in results.behaviours}
    yield Text(" ".join(filter(None, sentences)), True, where=_choose_outputs(results, timed=False not in is_timed))
    if True in is_timed:
        note = "Of cells with times: the observations that differ between compared cells, or that the header expects."
        yield Text(note, True)


def _choose_outputs(results: Results, *, timed: bool) -> Where:
    return REST if timed else REST | Where.TERMINAL if results.tables else EVERYWHERE


def _list_blocks(results: Results, behaviour: Behaviour) -> Iterator[Block]:
    where = _choose_outputs(results, timed=behaviour.timed)
    has_several_devices = len({other.device for other in results.behaviours}) > 1
    shared_labels = [names.label(behaviour.scenario, *pair) for pair in behaviour.shared.items()]
    place = ", ".join([*([behaviour.device.value] if has_several_devices else []), *shared_labels])
    yield from format_heading(results, behaviour.scenario, place, where)
    caption = ", ".join(filter(None, ["Observed", behaviour.scenario.title, place]))
    lines = [
        SeenLine(
            ", ".join([row.observation, *(names.label(behaviour.scenario, *pair) for pair in row.line.axes.items())]),
            [row.observation, *(row.line.axes.get(axis, "") for axis in behaviour.axes)],
            [None if entry is None else _make_value(entry) for entry in row.line.entries],
        )
        for row in behaviour.rows
    ]
    labels = ["observation", *behaviour.axes]
    yield tabulate_by_environment(caption, labels, behaviour.environments, lines, changes=True, where=where)
    yield from list_in_full(behaviour.environments, lines)


def _make_value(entry: ObservationEntry) -> "SeenValue":
    if isinstance(entry, Observed):
        text = format_seen(entry)
        return SeenValue(f"varies: {text}" if entry.varies else text, stands_out=entry.varies)
    return SeenValue(f"{entry!s}", is_observed=False)


# Values by environment: in columns, or in lines if there are many environments.


@dataclass(frozen=True, slots=True)
class SeenValue:
    """The observation in one cell of a table. If `is_observed` is false, `text` is the reason."""

    text: str
    is_observed: bool = True
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class SeenLine:
    """A row before its layout: its labels, and a value per column. A value is None if its cell doesn't exist.

    `name` is the name of the row outside the table.
    """

    name: str
    labels: Sequence[str]
    values: Sequence[SeenValue | None]


def format_value(value: Any) -> str:
    """Return a value as text: strings without quotes, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def format_seen(observed: Observed) -> str:
    """Return the observation of a cell. If its launches disagree, the text contains all values."""
    return "; ".join(map(format_value, observed.values))


def tabulate_by_environment(
    caption: str,
    labels: Sequence[str],
    environments: Sequence[str],
    lines: Sequence[SeenLine],
    *,
    changes: bool = False,
    where: Where = REST,
) -> Table:
    """Return a table with environments as columns or, if there are too many, as rows.

    With `changes`, a value that differs from the previous environment is highlighted, and an equal value becomes SAME.
    """
    heads = [Head(label, is_label=True) for label in labels]
    if len(environments) > SIDE_BY_SIDE:
        rows = [row for line in lines for row in _list_spans(line, environments, changes=changes)]
        return Table(caption, [*heads, Head(ENVIRONMENT, is_label=True), Head("value")], rows, where=where)
    marked_lines = [replace(line, values=list(_mark_changes(line.values))) for line in lines] if changes else lines
    return _join_tables(caption, heads, environments, marked_lines, where)


def _join_tables(
    caption: str, labels: Sequence[Head], headings: Sequence[str], lines: Sequence[SeenLine], where: Where
) -> Table:
    rows = [Line([*map(Entry, line.labels), *map(_make_value_entry, line.values)]) for line in lines]
    return Table(caption, [*labels, *map(Head, headings)], rows, where=where)


def list_in_full(headings: Sequence[str], lines: Sequence[SeenLine]) -> list[Folded]:
    """Return a folded block with the values that a table cuts, each with its headings."""
    cut_values: list[tuple[str, str]] = []
    for line in lines:
        headings_by_value: dict[str, list[str]] = {}
        for heading, value in zip(headings, line.values, strict=True):
            if value and len(_join_lines(value.text)) > CHARACTERS:
                headings_by_value.setdefault(value.text, []).append(heading)
        cut_values += [
            (", ".join([line.name, *value_headings]), text[:FULL_CHARACTERS])
            for text, value_headings in headings_by_value.items()
        ]
    blocks = [block for label, text in cut_values[:FULL] for block in (Text(f"{label}:"), Code(text, "text"))]
    remainder = [Text(f"{len(cut_values) - FULL} more are in launches.jsonl.")] if len(cut_values) > FULL else []
    return [Folded("In full", [*blocks, *remainder])] if blocks else []


def _mark_changes(values: Iterable[SeenValue | None]) -> Iterator[SeenValue | None]:
    previous: str | None = None
    for value in values:
        if value is None or not value.is_observed:
            yield value
            continue
        is_changed = previous is not None and value.text != previous
        yield SeenValue(SAME if value.text == previous else value.text, stands_out=is_changed or value.stands_out)
        previous = value.text


def _list_spans(line: SeenLine, environments: Sequence[str], *, changes: bool) -> Iterator[Line]:
    """Yield a row for each group of successive environments with equal values. The labels are in the first row."""
    observed = [(name, value) for name, value in zip(environments, line.values, strict=True) if value]
    for number, (value, pairs) in enumerate(groupby(observed, key=lambda pair: pair[1])):
        names = [name for name, _ in pairs]
        span_name = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"
        is_changed = changes and value.is_observed and number > 0
        labels = [Entry("" if number else label) for label in line.labels]
        entry = _make_value_entry(replace(value, stands_out=value.stands_out or is_changed))
        yield Line([*labels, Entry(span_name), entry])


def _make_value_entry(value: SeenValue | None) -> Entry:
    return Entry(shorten(_join_lines(value.text), CHARACTERS), value.stands_out) if value else Entry("")


def _join_lines(text: str) -> str:
    return " ".join(text.split())
