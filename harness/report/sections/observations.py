"""Observations that aren't times, and the statements of sources that are checked against them, by scenario.

Long values are shown in full below their table.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from harness.analysis.behaviour import Behaviour, ObservationEntry, fold
from harness.analysis.observations import Check, Observed, Standing, Statement
from harness.analysis.results import Results
from harness.model.scenario import DEVICE, ENVIRONMENT
from harness.model.texts import counted
from harness.report import names
from harness.report.blocks import (
    EVERYWHERE,
    FILES,
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
from harness.report.phrases import SIDE_BY_SIDE, format_heading, list_names

#: The largest number of characters of a value in a table. Longer values are cut, and shown in full below the table.
CHARACTERS = 60
#: The largest number of characters of a value that is shown in full, and of such values.
FULL_CHARACTERS, FULL = 4000, 20

#: The headings of the columns before the environments, in a table of statements.
LABELS = ("observation", "where", "stated")

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
    rows = [Line([*map(Entry, line.labels), *map(_make_value_entry, line.values)]) for line in marked_lines]
    return Table(caption, [*heads, *map(Head, environments)], rows, where=where)


def list_in_full(headings: Sequence[str], lines: Sequence[SeenLine]) -> list[Folded]:
    """Return a folded block with the values that a table cuts, each with its headings."""
    cut_values: list[tuple[str, str]] = []
    for line in lines:
        headings_by_value: dict[str, list[str]] = {}
        for heading, value in zip(headings, line.values, strict=True):
            if value and len(_join_lines(value.text)) > CHARACTERS:
                headings_by_value.setdefault(value.text, []).append(heading)
        cut_values += [
            (", ".join([line.name, *value_headings]), shorten(text, FULL_CHARACTERS))
            for text, value_headings in headings_by_value.items()
        ]
    blocks = [block for label, text in cut_values[:FULL] for block in (Text(f"{label}:"), Code(text, "text"))]
    more = counted(len(cut_values) - FULL, "more value", "is")
    remainder = [Text(f"{more} in launches.jsonl.")] if len(cut_values) > FULL else []
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


# Statements of the sources that scenarios cite, checked against the observations.


def make_statements(results: Results) -> Iterator[Section]:
    """Yield the section with the results of the checks, by scenario."""
    statements = results.statements
    if not statements:
        return
    tables: list[Block] = []
    deviating_names: list[str] = []
    for _, group in groupby(statements, key=lambda statement: statement.scenario.name):
        scenario_statements = list(group)
        scenario = scenario_statements[0].scenario
        measured = {check.cell.environment for statement in scenario_statements for check in statement.checks}
        environments = [environment.name for environment in results.run.environments if environment.name in measured]
        lines = [line for statement in scenario_statements for line in _list_statement_lines(statement, environments)]
        caption = f"Statements, {scenario.title}"
        tables += format_heading(results, scenario, where=EVERYWHERE)
        tables += [tabulate_by_environment(caption, LABELS, environments, lines), *list_in_full(environments, lines)]
        deviating_lines = [line for line in lines if any(value and value.stands_out for value in line.values)]
        if deviating_lines:
            tables.append(tabulate_by_environment(caption, LABELS, environments, deviating_lines, where=Where.TERMINAL))
            deviating_names += [_name_line(line, environments) for line in deviating_lines]
    summary = [Text(f"Not as stated: {list_names(deviating_names)}.", where=FILES)] if deviating_names else []
    yield Section("Claims checked against the source", "statements", [*summary, *tables])


def describe(results: Results) -> str:
    """Return a sentence that counts the statements that hold, once per cell to which they apply; empty without any."""
    checks = [check for statement in results.statements for check in statement.checks]
    if not checks:
        return ""
    as_stated = sum(check.standing is Standing.AS_STATED for check in checks)
    return f"{as_stated} of {counted(len(checks), 'statement')} {'is' if as_stated == 1 else 'are'} as the sources say."


def _name_line(line: SeenLine, environments: Sequence[str]) -> str:
    """Name a statement that doesn't hold, and where: `traces, retracing (tf2.0, tf2.1)`."""
    environment_names = [
        name for name, value in zip(environments, line.values, strict=True) if value and value.stands_out
    ]
    return f"{line.name} ({', '.join(environment_names)})"


def _list_statement_lines(statement: Statement, environments: Sequence[str]) -> Iterator[SeenLine]:
    """Yield a row for the statement, or several rows if its result differs between cells of an environment."""
    scenario, expectation = statement.scenario, statement.expectation
    cells = [check.cell for check in statement.checks]
    axes = [
        axis for axis in scenario.axes if axis not in expectation.when and len({cell.axes[axis] for cell in cells}) > 1
    ]
    # the device comes after the axes of the header
    by_cell = {
        ((*(check.cell.axes[axis] for axis in axes), check.cell.device.value), check.cell.environment): _check_value(
            check
        )
        for check in statement.checks
    }
    condition = [names.label(scenario, axis, value) for axis, value in expectation.when.items()]
    for line in fold(by_cell, [*axes, DEVICE], environments, lambda value: value.text):
        axis_labels = [
            value if axis == DEVICE else names.label(scenario, axis, value) for axis, value in line.axes.items()
        ]
        context = ", ".join([*condition, *axis_labels])
        name = ", ".join(filter(None, [expectation.observation, context]))
        yield SeenLine(name, [expectation.observation, context, format_value(expectation.value)], line.entries)


def _check_value(check: Check) -> SeenValue:
    if check.observed is None:
        return SeenValue(check.standing.value, is_observed=False, stands_out=True)
    text = format_seen(check.observed)
    match check.standing:
        case Standing.AS_STATED:
            return SeenValue(check.standing.value)
        case Standing.VARIES:
            return SeenValue(f"{check.standing.value}: {text}", stands_out=True)
    return SeenValue(text, stands_out=True)
