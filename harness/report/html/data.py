"""What the page's scripts are given, as JSON: every cell with its launches and their samples, and the charts."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.cells import cell_name
from harness.analysis.results import Results
from harness.analysis.tables import Value
from harness.model.launch import Launch
from harness.model.scenario import ENVIRONMENT, Cell
from harness.report import blocks, format
from harness.report.blocks import Section, Table, Where
from harness.report.escape import plain
from harness.report.format import Unit
from harness.report.html import charts
from harness.report.html.launches import LaunchData, after, exponent, instant, launch_data, rounded


@dataclass(frozen=True, slots=True)
class ScenarioData:
    """A scenario: the unit of its times (so many of them make a second)."""

    name: str
    title: str
    unit: str
    factor: float


@dataclass(frozen=True, slots=True)
class ToldData:
    """What a table of one line a cell tells: the title of its section, and its headings."""

    title: str
    headings: Sequence[str]


@dataclass(frozen=True, slots=True)
class CellData:
    """One cell. `scenario` and `absence` are places in the page's lists, `absence` -1 where nothing is missing.

    `seconds` per step, with the interval from `low` to `high`, are also there as text, in the page's unit (`time`,
    `interval`) and in the scenario's (`number`). `told` are its lines, each after the place of its table in the page's
    list.
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
    told: Sequence[tuple[int, Sequence[str]]]
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
    tables: Sequence[ToldData]
    absences: Sequence[AbsenceData]
    cells: Sequence[CellData]
    config: Mapping[str, Any]
    charts: Mapping[str, Mapping[str, Any]]


def build(results: Results, sections: Sequence[Section]) -> PageData:
    """The page's data; `sections` are those that it shows."""
    run, found = results.run, results.found
    starts = {id(launch): instant(launch.started) for launch in results.launches}
    began = min((start for start in starts.values() if start is not None), default=None)
    values = {cell: value for table in results.tables for cell, value in table.cells().items()}
    units = {table.scenario.name: format.unit_of(table) for table in results.tables}
    unit = format.unit([value.estimate.value for value in values.values() if value.estimate])
    absences = {cell: place for place, absence in enumerate(results.missing) for cell in absence.cells}
    scenarios = {scenario.name: place for place, scenario in enumerate(run.scenarios)}
    tables = _of_cells(sections)
    told = _told([table for _, table in tables])
    of_cell: dict[Cell, list[Launch]] = defaultdict(list)
    for launch in results.launches:
        of_cell[launch.cell].append(launch)

    def data(cell: Cell) -> CellData:
        own = sorted(of_cell[cell], key=lambda launch: starts[id(launch)] or 0.0)
        counted = {id(launch) for launch in found.numbers.get(cell, ())}
        value = values.get(cell)
        power = exponent(own)
        status = "ok" if value and value.estimate else found.status(cell)
        return CellData(
            name=plain(cell_name(cell)),
            scenario=scenarios.get(cell.scenario, 0),
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
        folder=plain(results.run.shown_folder),
        began=began,
        unit=unit.symbol,
        columns=_columns(found.cells),
        scenarios=[
            ScenarioData(
                name=plain(scenario.name),
                title=plain(scenario.title),
                unit=units.get(scenario.name, unit).symbol,
                factor=units.get(scenario.name, unit).factor,
            )
            for scenario in run.scenarios
        ],
        tables=[
            ToldData(plain(section.title), [plain(head.text) for head in table.heads if not head.is_label])
            for section, table in tables
        ],
        absences=[
            AbsenceData(absence.status.value, plain(absence.reason), plain(absence.advice))
            for absence in results.missing
        ],
        cells=[data(cell) for cell in found.cells],
        config=charts.PAGE_CONFIG,
        charts={picture.name: charts.specification(picture) for picture in blocks.pictures(sections)},
    )


def dumps(data: PageData) -> str:
    """The data as JSON that may stand in a script element: there is no `<` in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_fields)
    return text.replace("<", "\\u003c")


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


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


def _of_cells(sections: Sequence[Section]) -> list[tuple[Section, Table]]:
    """The tables with a line a cell, each with its section."""
    return [
        (section, block.shown(Where.PAGE))
        for section in sections
        for block in blocks.within(section.blocks)
        if isinstance(block, Table) and any(line.cell for line in block.lines)
    ]


def _told(tables: Sequence[Table]) -> Mapping[Cell, Sequence[tuple[int, Sequence[str]]]]:
    """Of each cell its lines, without their labels, each after the place of its table."""
    found: dict[Cell, list[tuple[int, Sequence[str]]]] = defaultdict(list)
    for place, table in enumerate(tables):
        for line in table.lines:
            if line.cell:
                texts = [
                    plain(entry.text)
                    for entry, head in zip(line.entries, table.heads, strict=True)
                    if not head.is_label
                ]
                found[line.cell].append((place, texts))
    return found


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
        "marks": " ".join(format.marks(value)),
    }
