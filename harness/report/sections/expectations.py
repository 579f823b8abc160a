"""Statements of the sources that scenarios cite, checked against the observations."""

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

#: The headings of the columns before the environments.
LABELS = ("observation", "where", "stated")


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the results of the checks, by scenario."""
    statements = results.statements
    if not statements:
        return
    tables: list[Block] = []
    deviating_names: list[str] = []
    for _, group in groupby(statements, key=lambda statement: statement.scenario.name):
        scenario_statements = list(group)
        scenario, measured = (
            scenario_statements[0].scenario,
            {check.cell.environment for statement in scenario_statements for check in statement.checks},
        )
        environments = [environment.name for environment in results.run.environments if environment.name in measured]
        lines = [line for statement in scenario_statements for line in _list_lines(statement, environments)]
        caption = f"Statements, {scenario.title}"
        tables += format_heading(results, scenario, where=EVERYWHERE)
        tables += [tabulate_by_environment(caption, LABELS, environments, lines), *list_in_full(environments, lines)]
        deviating_lines = [line for line in lines if any(value and value.stands_out for value in line.values)]
        if deviating_lines:
            tables.append(tabulate_by_environment(caption, LABELS, environments, deviating_lines, where=Where.TERMINAL))
            deviating_names += [_name_line(line, environments) for line in deviating_lines]
    summary = [Text(f"Not as stated: {list_names(deviating_names)}.", where=FILES)] if deviating_names else []
    yield Section(
        "Claims checked against the source",
        "statements",
        [*summary, *tables],
    )


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


def _list_lines(statement: Statement, environments: Sequence[str]) -> Iterator[SeenLine]:
    """Yield a row for the statement, or several rows if its result differs between cells of an environment."""
    scenario, expectation = statement.scenario, statement.expectation
    cells = [check.cell for check in statement.checks]
    axes = [
        axis for axis in scenario.axes if axis not in expectation.when and len({cell.axes[axis] for cell in cells}) > 1
    ]
    # the device comes after the axes of the header
    by_cell = {
        ((*(check.cell.axes[axis] for axis in axes), check.cell.device.value), check.cell.environment): _make_value(
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


def _make_value(check: Check) -> SeenValue:
    if check.observed is None:
        return SeenValue(check.standing.value, is_observed=False, stands_out=True)
    text = format_seen(check.observed)
    match check.standing:
        case Standing.AS_STATED:
            return SeenValue(check.standing.value)
        case Standing.VARIES:
            return SeenValue(f"{check.standing.value}: {text}", stands_out=True)
    return SeenValue(text, stands_out=True)
