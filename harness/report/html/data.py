"""The data for the page's scripts as JSON: every cell with its launches and samples, and the charts."""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from harness.analysis.cells import Computed, cell_name
from harness.analysis.distribution import step_seconds
from harness.analysis.interference import describe_interference
from harness.analysis.results import Results
from harness.analysis.rounds import compute_mean, has_mean
from harness.model.launch import Launch, Role
from harness.model.scenario import ENVIRONMENT, Cell
from harness.report import blocks, format
from harness.report.blocks import Section, Table, Where
from harness.report.charts.layout import PAGE_CONFIG, Specification
from harness.report.charts.vega import Picture
from harness.report.escape import escape_terminal

#: The largest number of samples per launch in a page. If a launch has more samples, they are thinned evenly.
SAMPLES = 200

#: The significant digits of a cell's median sample.
DIGITS = 5

#: The fields that tooltips of points show, each with its title and format. `{measure}` in a title is replaced by the
#: name of the measured quantity.
TOOLTIP_FIELDS: Sequence[tuple[str, str, str]] = (
    ("name", "of", ""),
    ("environment", "of", ""),
    ("series", "series", ""),
    ("verdict", "verdict", ""),
    ("size", "size", ",.6~g"),
    ("ratio", "{measure} ratio", ".3~f"),
    ("time", "{measure}", ".4~g"),
)


@dataclass(frozen=True, slots=True)
class ScenarioData:
    """A scenario and the unit of its times. `factor` is the number of units per second."""

    name: str
    title: str
    unit: str
    factor: float


@dataclass(frozen=True, slots=True)
class ToldData:
    """A table with one row per cell: the title of its section, and its headings."""

    title: str
    headings: Sequence[str]


class LaunchData(NamedTuple):
    """One launch, as an array instead of an object, because a page has thousands of launches.

    - `counted`: the launch is part of the cell's result
    - `started`: seconds after the run's first launch, or None if unknown
    - `centre`: the mean in seconds per step
    - `samples`: seconds per step, divided by 10**`exponent` of the cell; `of`: the number of samples before thinning
    """

    round: int
    attempt: int
    order: int
    role: str
    status: str
    counted: bool
    started: float | None
    disturbed: str
    error: str
    centre: float | None
    of: int
    samples: Sequence[int]


@dataclass(frozen=True, slots=True)
class CellData:
    """One cell.

    - `scenario`, `absence`: indexes in the lists of the page; `absence` is -1 if no result is missing
    - `seconds`: seconds per step, with the interval from `low` to `high`
    - `time`, `interval`: these numbers as text in the unit of the page; `number`: as text in the unit of the scenario
    - `told`: its rows in tables, each with the index of its table in the list of the page
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
    """A reason why cells or some of their launches have no result, with the advice."""

    status: str
    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class PageData:
    """All data of a page. `columns` are names of the values that distinguish cells. `unit` is the unit of `time`.

    `began` is the start of the first launch in seconds since 1970 (None if unknown). `folder` is the folder of the run.
    `charts` maps names to Vega-Lite specifications, which share `config`.
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
    """Return the page's data; `sections` are the sections of the page."""
    tables = _list_cell_rows(sections)
    encoder = _CellEncoder(results, [table for _, table in tables])
    scenarios = [(scenario, encoder.get_unit(scenario.name)) for scenario in results.run.scenarios]
    return PageData(
        folder=escape_terminal(results.run.shown_folder),
        began=encoder.run_start,
        unit=encoder.unit.symbol,
        columns=_find_columns(results.found.cells),
        scenarios=[
            ScenarioData(escape_terminal(scenario.name), escape_terminal(scenario.title), unit.symbol, unit.factor)
            for scenario, unit in scenarios
        ],
        tables=[
            ToldData(
                escape_terminal(section.title),
                [escape_terminal(head.text) for head in table.heads if not head.is_label],
            )
            for section, table in tables
        ],
        absences=[
            AbsenceData(absence.status.value, escape_terminal(absence.reason), escape_terminal(absence.advice))
            for absence in results.missing
        ],
        cells=Computed(encoder.encode, list(results.found.cells)),
        config=PAGE_CONFIG,
        charts={picture.name: make_chart(picture) for picture in blocks.find_pictures(sections)},
    )


class _CellEncoder:
    """Returns the data of cells, and has what they share: the unit of times, and the start of the first launch."""

    def __init__(self, results: Results, tables: Sequence[Table]) -> None:
        self._lookup, self._clock = results.found, results.run.plan.clock
        self._values = {cell: value for table in results.tables for cell, value in table.cells().items()}
        self._units = {table.scenario.name: format.unit_of(table) for table in results.tables}
        self._absences = {cell: index for index, absence in enumerate(results.missing) for cell in absence.cells}
        self._scenarios = {scenario.name: index for index, scenario in enumerate(results.run.scenarios)}
        self._rows = _collect_rows(tables)
        self._launches: dict[Cell, list[Launch]] = defaultdict(list)
        for launch in sorted(results.launches, key=lambda launch: _parse_time(launch.started) or 0.0):
            self._launches[launch.cell].append(launch)
        estimates = [value.estimate.value for value in self._values.values() if value.estimate]
        self.unit = format.unit(estimates, self._clock)
        starts = (_parse_time(launch.started) for launch in results.launches)
        self.run_start = min((start for start in starts if start is not None), default=None)

    def get_unit(self, scenario: str) -> format.Unit:
        """Return the unit of a scenario's times, or the unit of the page if the scenario has none."""
        return self._units.get(scenario, self.unit)

    def encode(self, cell: Cell) -> CellData:
        """Return the data of one cell."""
        value, unit = self._values.get(cell), self.get_unit(cell.scenario)
        rates = [list(filter(math.isfinite, step_seconds(launch))) for launch in self._launches[cell]]
        exponent = _choose_exponent(rates)
        counted = {id(launch) for launch in self._lookup.numbers.get(cell, ())}
        estimate = value.estimate if value else None
        interval = estimate.interval if estimate else None
        return CellData(
            name=escape_terminal(cell_name(cell)),
            scenario=self._scenarios.get(cell.scenario, 0),
            environment=escape_terminal(cell.environment),
            device=cell.device.value,
            axes={escape_terminal(axis): escape_terminal(text) for axis, text in cell.axes.items()},
            group=escape_terminal(self._lookup.groups.get(cell, "")),
            status="ok" if estimate else str(self._lookup.status(cell) or ""),
            absence=self._absences.get(cell, -1),
            seconds=_round_seconds(estimate.value) if estimate else None,
            low=_round_seconds(interval.low) if interval else None,
            high=_round_seconds(interval.high) if interval else None,
            time=format.number(estimate.value * self.unit.factor) if estimate else "",
            interval=format.format_interval(interval, self.unit.factor),
            number=f"{format.time(estimate, unit)} {unit.symbol}" if estimate else "",
            rounds=estimate.rounds if estimate else 0,
            marks=" ".join(format.marks(value, self._clock)) if value and estimate else "",
            told=self._rows.get(cell, ()),
            exponent=exponent,
            launches=[
                _make_launch(launch, launch_rates, id(launch) in counted, self.run_start, exponent)
                for launch, launch_rates in zip(self._launches[cell], rates, strict=True)
            ],
        )


def dump(data: PageData) -> Iterator[str]:
    """Yield the data as JSON for a script element, in parts. Every `<` is escaped."""
    # encode cell by cell, because the encoder keeps an object for each number until it has finished
    other_fields = {name: value for name, value in _simplify(data).items() if name != "cells"}
    yield f'{_encode(other_fields)[:-1]},"cells":['
    for index, cell in enumerate(data.cells):
        yield f"{',' if index else ''}{_encode(cell)}"
    yield "]}"


def _encode(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_simplify)
    return text.replace("<", "\\u003c")


def _simplify(value: Any) -> Any:
    """Return the fields of a dataclass as a dictionary."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _find_columns(cells: Iterable[Cell]) -> list[str]:
    """Return the names of the values that distinguish cells. Axes come last."""
    values: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        facts = {"scenario": cell.scenario, "device": cell.device.value, ENVIRONMENT: cell.environment, **cell.axes}
        for name, value in facts.items():
            values[name].add(value)
    return [escape_terminal(name) for name, texts in values.items() if len(texts) > 1]


def _list_cell_rows(sections: Sequence[Section]) -> list[tuple[Section, Table]]:
    """Return the tables with one row per cell, each with its section."""
    return [
        (section, block.shown(Where.PAGE))
        for section in sections
        for block in blocks.walk_blocks(section.blocks)
        if isinstance(block, Table) and any(line.cell for line in block.lines)
    ]


def _collect_rows(tables: Sequence[Table]) -> Mapping[Cell, Sequence[tuple[int, Sequence[str]]]]:
    """Return the rows of each cell without their labels, each with the index of its table."""
    rows: dict[Cell, list[tuple[int, Sequence[str]]]] = defaultdict(list)
    for table_index, table in enumerate(tables):
        indexes = [index for index, head in enumerate(table.heads) if not head.is_label]
        for line in table.lines:
            if line.cell:
                rows[line.cell].append((table_index, [escape_terminal(line.entries[index].text) for index in indexes]))
    return rows


def _make_launch(
    launch: Launch, rates: Sequence[float], counted: bool, run_start: float | None, exponent: int
) -> LaunchData:
    step, unit = max(1, math.ceil(len(rates) / SAMPLES)), 10.0**exponent
    start = _parse_time(launch.started)
    return LaunchData(
        round=launch.round,
        attempt=launch.attempt,
        order=launch.order,
        role=launch.role.value,
        status=launch.status.value,
        counted=counted,
        started=None if run_start is None or start is None else round(start - run_start, 1),
        disturbed="" if launch.role is Role.PILOT else describe_interference(launch),
        error=escape_terminal(launch.error),
        centre=_round_seconds(compute_mean(launch)) if has_mean(launch) else None,
        of=len(rates),
        samples=[round(rate / unit) for rate in rates[::step]],
    )


def _choose_exponent(launches: Sequence[Sequence[float]]) -> int:
    """Return the power of ten that divides samples, so that the median keeps DIGITS digits; 0 without samples."""
    positive = [rate for rates in launches for rate in rates if rate > 0.0]
    return math.floor(math.log10(statistics.median_low(positive))) + 1 - DIGITS if positive else 0


def _round_seconds(seconds: float) -> float | None:
    """Round to seven significant digits, because more digits are noise."""
    return float(f"{seconds:.6e}") if math.isfinite(seconds) else None


def _parse_time(text: str) -> float | None:
    """Return a time as seconds since 1970; None if the text isn't a valid time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def make_chart(picture: Picture) -> Specification:
    """Return the picture's specification for the page, without the parts that the page adds itself."""
    omitted_keys = {"$schema", "config", "title", "description"}
    specification = {key: value for key, value in picture.specification.items() if key not in omitted_keys}
    return _add_tooltips(specification, picture.measure)


def _add_tooltips(part: Specification, measure: str) -> Specification:
    """Return the specification with tooltips on all points that have values to show."""
    children: Specification = {
        key: [_add_tooltips(child, measure) for child in part[key]] for key in ("layer", "concat") if key in part
    }
    with_children = part | children
    return _add_tooltip(with_children, measure) if part.get("mark", {}).get("type") == "point" else with_children


def _add_tooltip(unit: Specification, measure: str) -> Specification:
    values: list[dict[str, Any]] = unit["data"]["values"] or [{}]
    tooltip = [
        {
            "field": field,
            "title": title.format(measure=measure),
            **({"type": "quantitative", "format": format} if format else {}),
        }
        for field, title, format in TOOLTIP_FIELDS
        # a scenario without series has one series without a name
        if values[0].get(field, "") != ""
    ]
    return {**unit, "encoding": {**unit["encoding"], "tooltip": tooltip}} if tooltip else unit
