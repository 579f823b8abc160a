"""What the page's scripts are given, as JSON: every cell with its launches and their samples, and the charts."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.lookup import Lookup
from harness.analysis.tables import Value
from harness.model.cell import Cell
from harness.model.launch import Launch
from harness.model.scenario import ENVIRONMENT
from harness.report import format, grid
from harness.report.charts.picture import Picture
from harness.report.document import Document, TableView
from harness.report.escape import plain
from harness.report.format import Unit
from harness.report.formats.content import cell_name
from harness.report.html import charts
from harness.report.html.launches import LaunchData, after, exponent, instant, launch_data, rounded


@dataclass(frozen=True, slots=True)
class ScenarioData:
    """A scenario: the unit of its times (so many of them make a second), and what is told of each of its cells.

    `told` are the headings of its tables of one line a cell, table by table: phases, shape, resources.
    """

    name: str
    title: str
    unit: str
    factor: float
    told: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class CellData:
    """One cell. `scenario` and `absence` are places in the page's lists, `absence` -1 where nothing is missing.

    `seconds` per step, with the interval from `low` to `high`, are also there as text, in the page's unit (`time`,
    `interval`) and in the scenario's (`number`). `told` belong to the scenario's.
    """

    name: str
    scenario: int
    environment: str
    device: str
    axes: Mapping[str, str]
    group: str
    status: str
    absence: int
    seconds: float | None
    low: float | None
    high: float | None
    time: str
    interval: str
    number: str
    rounds: int
    marks: str
    told: Sequence[Sequence[str]]
    exponent: int
    launches: Sequence[LaunchData]


@dataclass(frozen=True, slots=True)
class AbsenceData:
    """Why cells have no number, or not from all of their launches, and what to do."""

    status: str
    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class PageData:
    """All of it. `columns` are what the cells differ in, by name; `unit` is that of the cells' `time`.

    `began` is when the run's first launch did, in seconds since 1970 (None: not known); `folder` is the run's.
    `config` is what all `charts`, Vega-Lite by name, share.
    """

    folder: str
    began: float | None
    unit: str
    columns: Sequence[str]
    scenarios: Sequence[ScenarioData]
    absences: Sequence[AbsenceData]
    cells: Sequence[CellData]
    config: Mapping[str, Any]
    charts: Mapping[str, Mapping[str, Any]]


def build(document: Document, pictures: Sequence[Picture], launches: Sequence[Launch], found: Lookup) -> PageData:
    """The page's data; `found` is what is known of the document's cells."""
    starts = {id(launch): instant(launch.started) for launch in launches}
    began = min((start for start in starts.values() if start is not None), default=None)
    values, views = _values(document), {view.scenario.name: view for view in document.tables}
    units = {name: grid.table_unit(view.table) for name, view in views.items()}
    unit = format.unit([value.estimate.value for value in values.values() if value.estimate])
    absences = {cell: place for place, absence in enumerate(document.absences) for cell in absence.cause.cells}
    names = {scenario.name: place for place, scenario in enumerate(document.run.scenarios)}
    told = {cell: lines for view in document.tables for cell, lines in _told(view).items()}
    of_cell: dict[Cell, list[Launch]] = defaultdict(list)
    for launch in launches:
        of_cell[launch.cell].append(launch)

    def data(cell: Cell) -> CellData:
        own = sorted(of_cell[cell], key=lambda launch: starts[id(launch)] or 0.0)
        counted = {id(launch) for launch in found.numbers.get(cell, ())}
        value = values.get(cell)
        power = exponent(own)
        status = "ok" if value and value.estimate else found.status(cell)
        return CellData(
            name=plain(cell_name(cell)),
            scenario=names.get(cell.scenario, 0),
            environment=plain(cell.environment),
            device=cell.device.value,
            axes={plain(axis): plain(text) for axis, text in cell.axes.items()},
            group=plain(found.groups.get(cell, "")),
            status=str(status or ""),
            absence=absences.get(cell, -1),
            **_number(value, unit, units.get(cell.scenario, unit)),
            told=told.get(cell, ()),
            exponent=power,
            launches=[
                launch_data(launch, id(launch) in counted, after(began, starts[id(launch)]), power) for launch in own
            ],
        )

    return PageData(
        folder=plain(document.folder),
        began=began,
        unit=unit.symbol,
        columns=_columns(found.cells),
        scenarios=[
            ScenarioData(
                name=plain(scenario.name),
                title=plain(scenario.title),
                unit=units.get(scenario.name, unit).symbol,
                factor=units.get(scenario.name, unit).factor,
                told=_headings(views.get(scenario.name)),
            )
            for scenario in document.run.scenarios
        ],
        absences=[
            AbsenceData(absence.cause.status.value, plain(absence.cause.reason), plain(absence.cause.advice))
            for absence in document.absences
        ],
        cells=[data(cell) for cell in found.cells],
        config=charts.config(),
        charts={picture.name: charts.specification(picture) for picture in pictures},
    )


def dumps(data: PageData) -> str:
    """The data as JSON that may stand in a script element: there is no `<` in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_fields)
    return text.replace("<", "\\u003c")


def numbered(view: TableView) -> list[Cell]:
    """The table's cells with a number, in the order of its tables of one line a cell."""
    return [
        view.table.cell(row, head.side)
        for row in view.table.rows
        for head, value in zip(view.table.columns, row.values, strict=True)
        if value.shape
    ]


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _values(document: Document) -> dict[Cell, Value]:
    """Each cell's value in its table."""
    return {
        view.table.cell(row, head.side): value
        for view in document.tables
        for row in view.table.rows
        for head, value in zip(view.table.columns, row.values, strict=True)
        if head.other is None
    }


def _columns(cells: Mapping[Cell, None]) -> list[str]:
    """What cells differ in, by name, the axes last."""
    parts: dict[str, Callable[[Cell], str]] = {
        "scenario": lambda cell: cell.scenario,
        "device": lambda cell: cell.device.value,
        ENVIRONMENT: lambda cell: cell.environment,
    }
    axes: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        for axis, value in cell.axes.items():
            axes[axis].add(value)
    return [
        *(name for name, part in parts.items() if len({part(cell) for cell in cells}) > 1),
        *(plain(axis) for axis, values in axes.items() if len(values) > 1),
    ]


def _told(view: TableView) -> dict[Cell, list[Sequence[str]]]:
    """Of each cell its line in each of the tables of one line a cell."""
    grids = (view.cells.phases, view.cells.shape, view.cells.resources)
    return {
        cell: [[plain(text) for text in each.rows[place][1]] if each else [] for each in grids]
        for place, cell in enumerate(numbered(view))
    }


def _headings(view: TableView | None) -> list[Sequence[str]]:
    grids = (view.cells.phases, view.cells.shape, view.cells.resources) if view else (None, None, None)
    return [[plain(heading) for heading in each.headings] if each else [] for each in grids]


def _number(value: Value | None, unit: Unit, own: Unit) -> dict[str, Any]:
    """What a cell's data say of its number, in the page's unit and in its scenario's own."""
    estimate = value.estimate if value else None
    if estimate is None or value is None:
        lacking = dict.fromkeys(("seconds", "low", "high"))
        return {**lacking, "time": "", "interval": "", "number": "", "rounds": 0, "marks": ""}
    ends = estimate.interval
    return {
        "seconds": rounded(estimate.value),
        "low": rounded(ends.low) if ends else None,
        "high": rounded(ends.high) if ends else None,
        "time": format.number(estimate.value * unit.factor),
        "interval": " to ".join(format.number(end * unit.factor) for end in (ends.low, ends.high)) if ends else "",
        "number": f"{format.time(estimate, own)} {own.symbol}",
        "rounds": estimate.rounds,
        "marks": " ".join(grid.marks(value)),
    }
