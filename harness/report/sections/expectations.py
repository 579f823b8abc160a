"""Statements of the sources that scenarios cite, checked against the observations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.analysis.behaviour import fold
from harness.analysis.observations import Check, Standing, Statement
from harness.analysis.results import Results
from harness.model.scenario import DEVICE
from harness.model.texts import counted
from harness.report import names
from harness.report.blocks import EVERYWHERE, FILES, Block, Section, Text, Where
from harness.report.phrases import format_heading, list_names
from harness.report.sections.observations import (
    SeenLine,
    SeenValue,
    format_seen,
    format_value,
    list_in_full,
    tabulate_by_environment,
)

#: The headings before the environments.
LABELS = ("observation", "where", "stated")


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the results of the checks, by scenario."""
    statements = results.statements
    if not statements:
        return
    tables: list[Block] = []
    otherwise: list[str] = []
    for _, members in groupby(statements, key=lambda statement: statement.scenario.name):
        stated = list(members)
        scenario, present = (
            stated[0].scenario,
            {check.cell.environment for statement in stated for check in statement.checks},
        )
        environments = [environment.name for environment in results.run.environments if environment.name in present]
        lines = [line for statement in stated for line in _lines(statement, environments)]
        caption = f"Statements, {scenario.title}"
        tables += format_heading(results, scenario, where=EVERYWHERE)
        tables += [tabulate_by_environment(caption, LABELS, environments, lines), *list_in_full(environments, lines)]
        odd = [line for line in lines if any(value and value.stands_out for value in line.values)]
        if odd:
            tables.append(tabulate_by_environment(caption, LABELS, environments, odd, where=Where.TERMINAL))
            otherwise += [_name(line, environments) for line in odd]
    # without times, this section contains the main results
    where = EVERYWHERE if results.tables else Where.DETAILS
    more = [Text(f"Not as stated: {list_names(otherwise)}.", where=FILES)] if otherwise else []
    yield Section(
        "Claims checked against the source",
        "statements",
        [Text(count_results(statements), where=where), *more, *tables],
    )


def count_results(statements: Sequence[Statement]) -> str:
    """Count the statements by result, once per cell to which they apply."""
    standings = Counter(check.standing for statement in statements for check in statement.checks)
    listing = ", ".join(f"{standings[standing]} {standing.value}" for standing in Standing if standings[standing])
    checked = sum(standings.values())
    total = counted(checked, "statement")
    return (
        f"{total} from the sources {'was' if checked == 1 else 'were'} compared with the observations: {listing}. "
        "Each cell counts separately."
    )


def _name(line: SeenLine, environments: Sequence[str]) -> str:
    """Name a statement that doesn't hold, and where: `traces, retracing (tf2.0, tf2.1)`."""
    named = [name for name, value in zip(environments, line.values, strict=True) if value and value.stands_out]
    return f"{line.name} ({', '.join(named)})"


def _lines(statement: Statement, environments: Sequence[str]) -> Iterator[SeenLine]:
    """Yield a row for the statement, or several rows if its result differs between cells of an environment."""
    scenario, expectation = statement.scenario, statement.expectation
    cells = [check.cell for check in statement.checks]
    axes = [
        axis for axis in scenario.axes if axis not in expectation.when and len({cell.axes[axis] for cell in cells}) > 1
    ]
    # the device comes after the axes of the header
    by_cell = {
        ((*(check.cell.axes[axis] for axis in axes), check.cell.device.value), check.cell.environment): _value(check)
        for check in statement.checks
    }
    when = [names.label(scenario, axis, value) for axis, value in expectation.when.items()]
    for line in fold(by_cell, [*axes, DEVICE], environments, lambda value: value.text):
        own = [value if axis == DEVICE else names.label(scenario, axis, value) for axis, value in line.axes.items()]
        where = ", ".join([*when, *own])
        name = ", ".join(filter(None, [expectation.observation, where]))
        yield SeenLine(name, [expectation.observation, where, format_value(expectation.value)], line.entries)


def _value(check: Check) -> SeenValue:
    if check.observed is None:
        return SeenValue(check.standing.value, is_observed=False, stands_out=True)
    shown = format_seen(check.observed)
    match check.standing:
        case Standing.AS_STATED:
            return SeenValue(check.standing.value)
        case Standing.VARIES:
            return SeenValue(f"{check.standing.value}: {shown}", stands_out=True)
    return SeenValue(shown, stands_out=True)
