"""Two runs side by side, as text: a line a cell, what moved them all, and what differs between the runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.analysis.conditions import Difference, Part, differences, machines
from harness.analysis.lookup import Lookup
from harness.analysis.runs import Change, Changes, Lone, compare
from harness.analysis.verdicts import Verdict
from harness.model.cell import Cell
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import facts, format, names
from harness.report.comparisons import Tally, tally
from harness.report.course import Resolution, resolution
from harness.report.format import Unit

#: So many packages of an environment are named; the others are counted.
PACKAGES = 8

# as they are listed: what somebody looks for first
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.DIFFERENT_WORK, Verdict.UNCLEAR, None, Verdict.SAME)

# what a measurement's facts are called beside those of the machine
_OF_A_LAUNCH = {"cpus": "CPUs of a launch", "gpus": "GPUs of a launch", "memory_bytes": "memory of a launch"}


@dataclass(frozen=True, slots=True)
class Line:
    """One cell: its name, its times in both runs, and the percentages, empty where there are none."""

    name: str
    first: str
    second: str
    gain: str
    beside: str
    change: Change


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that differs, by its label, with both values as text."""

    name: str
    label: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Told:
    """What differs of some `subjects`: of environments with the same differences, all of them. `left` are not named."""

    part: Part
    subjects: Sequence[str]
    facts: Sequence[Fact]
    left: int


@dataclass(frozen=True, slots=True)
class Absent:
    """Cells with a number in one run only, for one reason: the other's status, empty where it was not asked for."""

    status: str
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is said of two runs, A and B.

    `machines` are the facts by which they are of different ones; `resolutions` are what each run's control shows, at
    this `margin`; `shift` is the percentage of `changes.shift`. `mixed`: the software of some cells is the same, and
    that of others is not.
    """

    first: Run
    second: Run
    margin: float
    machines: Sequence[Fact]
    resolutions: Sequence[Resolution | None]
    changes: Changes
    shift: str
    unit: str
    lines: Sequence[Line]
    tally: Tally
    judged: int
    mixed: bool
    only_first: Sequence[Absent]
    only_second: Sequence[Absent]
    differences: Sequence[Told]


def build(first: Run, second: Run, found: tuple[Lookup, Lookup], margin: float) -> View:
    """What is said of two runs; `found` is what there is of each run's cells, `margin` a share."""
    changes = compare(first, second, found, margin)
    unit = format.unit([each.first.value for each in changes.cells])
    lines = [_line(each, name, unit) for each, name in zip(changes.cells, _names(first, changes), strict=True)]
    return View(
        first=first,
        second=second,
        margin=margin,
        machines=[fact(each) for each in machines(first, second)],
        resolutions=[
            resolution(replace(run, plan=replace(run.plan, margin=margin)), known)
            for run, known in zip((first, second), found, strict=True)
        ],
        changes=changes,
        shift=format.gain(changes.shift.change.ratio) if changes.shift else "",
        unit=unit.symbol,
        lines=sorted(lines, key=lambda line: _ORDER.index(line.change.change.verdict)),
        tally=tally(each.change.verdict for each in changes.cells),
        judged=sum(each.judged for each in changes.cells),
        mixed=len({each.same_software for each in changes.cells}) > 1,
        only_first=_absent(changes.only_first),
        only_second=_absent(changes.only_second),
        differences=_told(differences(first, second, (each.cell for each in changes.cells))),
    )


def _line(each: Change, name: str, unit: Unit) -> Line:
    different = each.change.verdict is Verdict.DIFFERENT_WORK
    return Line(
        name=name,
        first=format.time(each.first, unit),
        second=format.time(each.second, unit),
        gain="" if different else format.gain(each.change.ratio),
        beside=format.gain(each.beside.ratio) if each.beside else "",
        change=each,
    )


def _names(run: Run, changes: Changes) -> list[str]:
    """Of each cell the environment, and what else tells it apart from the others."""
    scenarios = {scenario.name: scenario for scenario in run.scenarios}
    cells = [each.cell for each in changes.cells]
    several = len({cell.scenario for cell in cells}) > 1
    devices = len({cell.device for cell in cells}) > 1
    varying = {name: _varying([cell for cell in cells if cell.scenario == name]) for name in scenarios}
    return [
        ", ".join(
            [
                *([cell.scenario] if several else []),
                cell.environment,
                *([cell.device.value] if devices else []),
                *_labels(scenarios.get(cell.scenario), cell, varying.get(cell.scenario, ())),
            ]
        )
        for cell in cells
    ]


def _varying(cells: Sequence[Cell]) -> list[str]:
    axes = dict.fromkeys(axis for cell in cells for axis in cell.axes)
    return [axis for axis in axes if len({cell.axes.get(axis) for cell in cells}) > 1]


def _labels(scenario: Scenario | None, cell: Cell, axes: Sequence[str]) -> list[str]:
    if scenario is None:
        return list(cell.axes.values())
    return [names.label(scenario, axis, cell.axes[axis]) for axis in axes if axis in cell.axes]


def _absent(lone: Sequence[Lone]) -> list[Absent]:
    by_status: dict[str, list[str]] = {}
    for each in lone:
        by_status.setdefault(each.status.value if each.status else "", []).append(str(each.cell))
    return [Absent(status, cells) for status, cells in by_status.items()]


def _told(found: Sequence[Difference]) -> list[Told]:
    """Part by part; environments and scenarios with the same differences in one."""
    by_subject: dict[tuple[Part, str], list[Fact]] = {}
    for each in found:
        by_subject.setdefault((each.part, each.subject), []).append(fact(each))
    alike: dict[tuple[Part, tuple[Fact, ...]], list[str]] = {}
    for (part, subject), known in by_subject.items():
        alike.setdefault((part, tuple(known)), []).append(subject)
    return [
        Told(part, [subject for subject in subjects if subject], list(known[:PACKAGES]), max(0, len(known) - PACKAGES))
        for (part, known), subjects in alike.items()
    ]


def fact(each: Difference) -> Fact:
    """One difference in words; that it differs is all there is to say of a hash."""
    label = _OF_A_LAUNCH.get(each.name) if each.part is Part.MEASUREMENT else None
    hashes = each.name in {"image", "source"}
    first, second = ("" if hashes else _text(each.name, value) for value in (each.first, each.second))
    return Fact(each.name, label or facts.pairs({each.name: "x"})[0][0], first, second)


def _text(name: str, value: object) -> str:
    return next((text for _, text in facts.pairs({name: value})), "none")
