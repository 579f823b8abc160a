"""The report's content, made once from a run and its launches; Markdown and the terminal only lay it out."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.answers import Answer, Finding, answers
from harness.analysis.cover import Box, cover
from harness.analysis.lookup import Lookup, lookup
from harness.analysis.missing import Missing, missing
from harness.analysis.tables import Table, tables
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import facts, format, grid
from harness.report.grid import Grid

#: How many sentences the answer has at most.
SENTENCES = 3

#: With fewer rounds a report shows intervals and no verdict.
VERDICT_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """The parts of one answer: `subject` takes `low` to `high` times as long as `base`, in `where`.

    `subject_has` and `base_has` are what differs beside; `low_at` and `high_at` name the extreme rows (of one row they
    are empty, and `interval` is its interval). `longer`, `shorter` and `unshown` count rows whose interval lies above
    1, below 1, or holds it; rows without an interval are in none. They are told only where `judged`: from four rounds.
    """

    lead: str
    subject: str
    subject_has: str
    base: str
    base_has: str
    where: str
    rows: int
    low: str
    low_at: str
    high: str
    high_at: str
    interval: str
    longer: int
    shorter: int
    unshown: int
    judged: bool


@dataclass(frozen=True, slots=True)
class TableView:
    """One scenario's table as text, and what its notes tell.

    `modes` names the numbers whose launches have several modes, with their share: `small, tf2.0 eager: 2 of 5`.
    `fewer`: some numbers have fewer rounds than the others. `percentages`: there are columns of them.
    """

    scenario: Scenario
    grid: Grid
    unit: str
    rounds: int
    modes: Sequence[str]
    fewer: bool
    percentages: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """How many cells a scenario has in this run, on which devices, and how many of them have a number."""

    scenario: Scenario
    devices: Sequence[str]
    cells: int
    numbers: int


@dataclass(frozen=True, slots=True)
class Absence:
    """One reason why cells gave no number, and the names of those cells; `left` of them are not named."""

    cause: Missing
    cells: Sequence[str]
    left: int


@dataclass(frozen=True, slots=True)
class Document:
    """Everything that a report says, in its order.

    `more_answers`: answers beyond the three that are shown. `cpus` are the CPUs that launches were pinned to, `0-3`,
    and `cpu_count` is how many (empty and 0: all of them). `command` runs it again; `folder` is where commands find it,
    from where it was started.
    """

    run: Run
    cpus: str
    cpu_count: int
    sentences: Sequence[Sentence]
    more_answers: int
    measured: Sequence[Measured]
    tables: Sequence[TableView]
    absences: Sequence[Absence]
    command: str
    folder: str


def build(run: Run, launches: Sequence[Launch]) -> Document:
    """The report's content."""
    found = lookup(run, launches)
    made = [table for table in tables(run, found) if table.rows]
    answered = [answer for table in made for answer in answers(table)]
    pinned = run.plan.limits.cpus or ()
    return Document(
        run=run,
        cpus=facts.cpus(pinned),
        cpu_count=len(pinned),
        sentences=[_sentence(run, answer) for answer in _telling(answered)],
        more_answers=max(0, len(answered) - SENTENCES),
        measured=[_measured(scenario, found) for scenario in run.scenarios],
        tables=[_view(table) for table in made],
        absences=[_absence(entry, found) for entry in missing(found)],
        command=_again(run),
        folder=run.folder or f"results/{run.id}",
    )


def _telling(answered: Sequence[Answer]) -> list[Answer]:
    """The answers furthest from "as long", as many as are shown, in the tables' order."""

    def distance(answer: Answer) -> float:
        ends = (answer.findings[0].ratio.value, answer.findings[-1].ratio.value)
        return max(max(ratio, 1.0 / ratio) for ratio in ends)

    kept = sorted(range(len(answered)), key=lambda index: -distance(answered[index]))[:SENTENCES]
    return [answered[index] for index in sorted(kept)]


def _sentence(run: Run, answer: Answer) -> Sentence:
    scenario, along, several = answer.table.scenario, answer.comparison.along, len(answer.findings) > 1
    titles = {known.name: known.title for known in run.environments} if along == ENVIRONMENT else {}
    low, high = answer.findings[0], answer.findings[-1]
    shared = {**answer.context, **answer.common}
    words = [scenario.name, *(grid.label(scenario, axis, value) for axis, value in shared.items())]
    shown = [finding for finding in answer.findings if finding.shown]
    return Sentence(
        lead=answer.comparison.name if answer.comparison.pick else "",
        subject=titles.get(answer.subject) or grid.label(scenario, along, answer.subject),
        subject_has=", ".join(answer.subject_has),
        base=titles.get(answer.base) or grid.label(scenario, along, answer.base),
        base_has=", ".join(answer.base_has),
        where=", ".join(words),
        rows=len(answer.findings),
        low=format.times(low.ratio),
        low_at=_place(answer, low) if several else "",
        high=format.times(high.ratio),
        high_at=_place(answer, high) if several else "",
        interval="" if several else format.between(low.ratio.interval),
        longer=sum(finding.ratio.value > 1.0 for finding in shown),
        shorter=sum(finding.ratio.value < 1.0 for finding in shown),
        unshown=sum(finding.shown is False for finding in answer.findings),
        judged=answer.table.rounds >= VERDICT_ROUNDS,
    )


def _place(answer: Answer, finding: Finding) -> str:
    """The row's values that the answer's rows do not share."""
    device = [finding.row.device.value] if answer.table.several_devices else []
    axes = [axis for axis in answer.table.row_axes if axis not in answer.common]
    return ", ".join([*device, *(grid.label(answer.table.scenario, axis, finding.row.axes[axis]) for axis in axes)])


def _view(table: Table) -> TableView:
    values = [value for row in table.rows for value in row.values]
    return TableView(
        scenario=table.scenario,
        grid=grid.build(table),
        unit=grid.table_unit(table).symbol,
        rounds=table.rounds,
        modes=_modes(table),
        fewer=any(value.estimate and value.estimate.rounds < table.rounds for value in values),
        percentages=any(head.other for head in table.columns),
    )


def _modes(table: Table) -> list[str]:
    names = []
    for row in table.rows:
        place = ", ".join(grid.label(table.scenario, axis, row.axes[axis]) for axis in table.row_axes)
        for head, value in zip(table.columns, row.values, strict=True):
            if value.modes and value.modes.count:
                name = ", ".join(part for part in (place, grid.side_name(table, head.side)) if part)
                names.append(f"{name}: {value.modes.count} of {value.modes.of}")
    return names


def _measured(scenario: Scenario, found: Lookup) -> Measured:
    cells = [cell for cell in found.cells if cell.scenario == scenario.name]
    devices = dict.fromkeys(cell.device.value for cell in cells)
    return Measured(scenario, list(devices), len(cells), sum(cell in found.series for cell in cells))


def _absence(entry: Missing, found: Lookup) -> Absence:
    boxes, left = cover(entry.cells, found.cells)
    return Absence(entry, [_box(box) for box in boxes], left)


def _box(box: Box) -> str:
    """`keras_step, tf2.15, api keras`: the environment first, then what else is restricted."""
    environments = box.values.get(ENVIRONMENT, ())
    axes = [f"{axis} {'/'.join(values)}" for axis, values in box.values.items() if axis != ENVIRONMENT]
    count = f" ({box.count} cells)" if box.count > 1 else ""
    return ", ".join([box.scenario, *(["/".join(environments)] if environments else []), *axes]) + count


def _again(run: Run) -> str:
    """The command that was typed, with the seed that it got."""
    typed = list(run.command)
    seeded = any(word == "--seed" or word.startswith("--seed=") for word in typed)
    return shlex.join(typed if seeded else [*typed, "--seed", str(run.plan.seed)])
