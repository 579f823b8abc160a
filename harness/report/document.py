"""The report's content, made once from a run and its launches; Markdown and the terminal only lay it out."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.answers import answers
from harness.analysis.control import Control
from harness.analysis.cover import Box, cover
from harness.analysis.lookup import Lookup, lookup
from harness.analysis.missing import Missing, missing
from harness.analysis.tables import Table, tables
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import attribution, course, facts, grid
from harness.report.answers import SENTENCES, Sentence, sentences
from harness.report.attribution import AttributionView
from harness.report.cells import Cells, cells
from harness.report.comparisons import Comparisons, comparisons
from harness.report.course import Disturbance, Ended, Lengths, Resolution
from harness.report.grid import Grid, Marked


@dataclass(frozen=True, slots=True)
class TableView:
    """One scenario's numbers as text: its times, what its marks tell, its comparisons, and each cell.

    `table` holds the numbers themselves. `fewer`: some have fewer rounds than the others.
    """

    scenario: Scenario
    table: Table
    grid: Grid
    unit: str
    rounds: int
    fewer: bool
    marked: Marked
    comparisons: Comparisons | None
    cells: Cells


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
    and `cpu_count` is how many (empty and 0: all of them). `control` is the A/A control, `resolution` what it shows,
    `twice`: some group has one.
    `command` runs it again; `folder` is where commands find it, from where it was started.
    """

    run: Run
    cpus: str
    cpu_count: int
    sentences: Sequence[Sentence]
    more_answers: int
    measured: Sequence[Measured]
    ended: Ended
    lengths: Lengths
    disturbance: Disturbance
    control: Control | None
    resolution: Resolution | None
    twice: bool
    tables: Sequence[TableView]
    attributions: Sequence[AttributionView]
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
        sentences=sentences(run, answered),
        more_answers=max(0, len(answered) - SENTENCES),
        measured=[_measured(scenario, found) for scenario in run.scenarios],
        ended=course.ended(run),
        lengths=course.lengths(run, launches, found),
        disturbance=course.disturbance(run, launches),
        control=found.control,
        resolution=course.resolution(run, found),
        twice=any(group.control for group in run.plan.groups),
        tables=[_view(table, found) for table in made],
        attributions=[view for table in made for view in attribution.views(run, table, found)],
        absences=[_absence(entry, found) for entry in missing(found)],
        command=_again(run),
        folder=run.folder or f"results/{run.id}",
    )


def _view(table: Table, found: Lookup) -> TableView:
    estimates = [value.estimate for row in table.rows for value in row.values if value.estimate]
    rounds = table.rounds
    return TableView(
        scenario=table.scenario,
        table=table,
        grid=grid.times(table),
        unit=grid.table_unit(table).symbol,
        rounds=rounds,
        fewer=any(estimate.rounds < rounds for estimate in estimates),
        marked=grid.marked(table),
        comparisons=comparisons(table),
        cells=cells(table, found),
    )


def _measured(scenario: Scenario, found: Lookup) -> Measured:
    members = [cell for cell in found.cells if cell.scenario == scenario.name]
    devices = dict.fromkeys(cell.device.value for cell in members)
    return Measured(scenario, list(devices), len(members), sum(cell in found.series for cell in members))


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
