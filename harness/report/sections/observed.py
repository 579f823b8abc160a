"""What cells observed that is no time, experiment by experiment."""

from collections.abc import Iterator

from harness.analysis.behaviour import Behaviour, Said
from harness.analysis.observations import Observed, observations
from harness.analysis.results import Results
from harness.report import format, names, values
from harness.report.blocks import REST, Block, Entry, Head, Heading, Section, Text, Where
from harness.report.format import unit_of
from harness.report.sentences import SIDE_BY_SIDE, part
from harness.report.values import SeenLine, SeenValue


def sections(results: Results) -> Iterator[Section]:
    """What the cells observed. Where nothing is timed this is the answer; beside times it is in the details."""
    found = results.behaviours
    devices = len({each.device for each in found}) > 1
    tables: list[Block] = []
    for each in found:
        where = _where(results, timed=each.timed)
        device = [each.device.value] if devices else []
        place = ", ".join([*device, *(names.label(each.scenario, *pair) for pair in each.shared.items())])
        title = part(results, each.scenario, place)
        caption = ", ".join(filter(None, ["Observed", each.scenario.title, place]))
        tables += [Heading(title, where=where)] if title else []
        tables += _beside_times(results, each, caption) if each.timed else _by_environment(each, caption, where)
    if found:
        yield Section("What was observed", "observed", [*legends(results), *tables])


def legends(results: Results) -> Iterator[Text]:
    """How the tables are read."""
    wide = {len(each.environments) > SIDE_BY_SIDE for each in results.behaviours if not each.timed}
    told = [f"{values.SAME} means the same as in the environment to its left."] if False in wide else []
    told += ["Neighbouring environments with the same observation share a line."] if True in wide else []
    if wide:
        bold = "Bold: different from the environment before, or the cell's launches disagree."
        yield Text(" ".join([*told, bold]), True, where=_where(results, timed=False))
    if any(each.timed for each in results.behaviours):
        timed = "Next to the times: the observations that differ between compared cells, or that the header expects."
        yield Text(timed, True)


def _where(results: Results, *, timed: bool) -> Where:
    return REST if timed else REST | Where.TERMINAL if results.tables else ~Where(0)


def _by_environment(made: Behaviour, caption: str, where: Where) -> Iterator[Block]:
    """An observation a line."""
    lines = [
        SeenLine(
            ", ".join([row.observation, *(names.label(made.scenario, *pair) for pair in row.line.axes.items())]),
            [row.observation, *(row.line.axes.get(axis, "") for axis in made.axes)],
            [None if said is None else _value(said) for said in row.line.entries],
        )
        for row in made.rows
    ]
    labels = ["observation", *made.axes]
    yield values.by_environment(caption, labels, made.environments, lines, changes=True, where=where)
    yield from values.in_full(made.environments, lines)


def _beside_times(results: Results, made: Behaviour, caption: str) -> Iterator[Block]:
    """A line for each cell that has a number: the number, and what the cell observed."""
    table = next(table for table in results.tables if table.scenario is made.scenario)
    unit, axes = unit_of(table), names.varying(table)
    shown = list(dict.fromkeys(row.observation for row in made.rows))
    lines = []
    for row, head, value in table.times():
        if row.device is not made.device or not value.estimate:
            continue
        cell, name = table.cell(row, head.side), names.cell_name(table, row, head.side, axes)
        seen = observations(cell, results.found)
        time = Entry(format.time(value.estimate, unit), cells=[cell], order=value.estimate.value)
        lines.append(
            SeenLine(name, [name, time], [_value(seen[each]) if each in seen else None for each in shown], cell)
        )
    labels = [Head("cell", is_label=True), Head(f"time, {unit.symbol}", is_number=True)]
    yield values.side_by_side(caption, labels, shown, lines)
    yield from values.in_full(shown, lines)


def _value(said: Said) -> SeenValue:
    if isinstance(said, Observed):
        told = values.seen(said)
        return SeenValue(f"varies: {told}" if said.varies else told, stands_out=said.varies)
    return SeenValue(f"{said!s}", is_observed=False)
