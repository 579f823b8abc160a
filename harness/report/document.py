"""The report's content, made once from a run and its launches; Markdown and the terminal only lay it out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.answers import answers
from harness.analysis.control import Control
from harness.analysis.cover import Box, cover
from harness.analysis.lookup import Lookup, lookup
from harness.analysis.missing import Missing, missing
from harness.analysis.tables import Table, tables
from harness.model.launch import Launch
from harness.model.run import AskByHand, Run, nothing_by_hand
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import attribution, behaviour, course, differences, facts, grid, sweeps
from harness.report.again import Again, again
from harness.report.answers import SENTENCES, Sentence, sentences
from harness.report.attribution import AttributionView
from harness.report.behaviour import BehaviourView
from harness.report.cells import Cells, cells
from harness.report.comparisons import Comparisons, comparisons
from harness.report.course import Disturbance, Ended, Lengths, Resolution
from harness.report.differences import Differences
from harness.report.expectations import Expectations, expectations
from harness.report.facts import Machine
from harness.report.grid import Grid, Marked
from harness.report.sweeps import SweepView
from harness.report.timeline import Moment, timeline


@dataclass(frozen=True, slots=True)
class TableView:
    """One scenario's numbers as text: its times, what its marks tell, its comparisons, and each cell.

    `table` holds the numbers themselves, `timeline` its launches in order of time. `shared` are the labels that are the
    same in every row of the grid, in words. `fewer`: some have fewer rounds than the others.
    """

    scenario: Scenario
    table: Table
    grid: Grid
    shared: str
    unit: str
    rounds: int
    fewer: bool
    marked: Marked
    comparisons: Comparisons | None
    cells: Cells
    timeline: Sequence[Moment]


@dataclass(frozen=True, slots=True)
class Measured:
    """How many cells a scenario has in this run, on which devices, and how many have a number, or only observed."""

    scenario: Scenario
    devices: Sequence[str]
    cells: int
    numbers: int
    observed: int


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
    `twice`: some group has one. `expectations` is None where no statement of a source could be checked.
    `again` runs it again; `folder` is where commands find it, from where it was started.
    """

    run: Run
    cpus: str
    cpu_count: int
    sentences: Sequence[Sentence]
    more_answers: int
    measured: Sequence[Measured]
    machine: Machine
    differences: Differences
    ended: Ended
    lengths: Lengths
    disturbance: Disturbance
    control: Control | None
    resolution: Resolution | None
    twice: bool
    tables: Sequence[TableView]
    sweeps: Sequence[SweepView]
    expectations: Expectations | None
    behaviours: Sequence[BehaviourView]
    attributions: Sequence[AttributionView]
    absences: Sequence[Absence]
    again: Again
    folder: str


def build(run: Run, launches: Sequence[Launch], by_hand: AskByHand = nothing_by_hand) -> Document:
    """The report's content; `by_hand` says what can be typed without the harness."""
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
        machine=facts.machine(run),
        differences=differences.differences(run),
        ended=course.ended(run),
        lengths=course.lengths(run, launches, found),
        disturbance=course.disturbance(run, launches),
        control=found.control,
        resolution=course.resolution(run, found),
        twice=any(group.control for group in run.plan.groups),
        tables=[_view(table, launches, found) for table in made],
        sweeps=[view for table in made for view in sweeps.views(table, found, math.log1p(run.plan.margin))],
        expectations=expectations(run, found),
        behaviours=behaviour.views(run, made, found),
        attributions=[view for table in made for view in attribution.views(run, table, found)],
        absences=[_absence(entry, found) for entry in missing(found)],
        again=again(run, found, answered, by_hand),
        folder=run.folder or f"results/{run.id}",
    )


def _view(table: Table, launches: Sequence[Launch], found: Lookup) -> TableView:
    estimates = [value.estimate for row in table.rows for value in row.values if value.estimate]
    rounds = table.rounds
    times, shared = grid.fold(grid.times(table))
    return TableView(
        scenario=table.scenario,
        table=table,
        grid=times,
        shared=shared,
        unit=grid.table_unit(table).symbol,
        rounds=rounds,
        fewer=any(estimate.rounds < rounds for estimate in estimates),
        marked=grid.marked(table),
        comparisons=comparisons(table),
        cells=cells(table, found),
        timeline=timeline(table, launches, found),
    )


def _measured(scenario: Scenario, found: Lookup) -> Measured:
    members = [cell for cell in found.cells if cell.scenario == scenario.name]
    devices = dict.fromkeys(cell.device.value for cell in members)
    return Measured(
        scenario=scenario,
        devices=list(devices),
        cells=len(members),
        numbers=sum(cell in found.series for cell in members),
        observed=sum(cell in found.observed for cell in members),
    )


def _absence(entry: Missing, found: Lookup) -> Absence:
    boxes, left = cover(entry.cells, found.cells)
    return Absence(entry, [_box(box) for box in boxes], left)


def _box(box: Box) -> str:
    """`keras_step, tf2.15, api keras`: the environment first, then what else is restricted."""
    environments = box.values.get(ENVIRONMENT, ())
    axes = [f"{axis} {'/'.join(values)}" for axis, values in box.values.items() if axis != ENVIRONMENT]
    count = f" ({box.count} cells)" if box.count > 1 else ""
    return ", ".join([box.scenario, *(["/".join(environments)] if environments else []), *axes]) + count
