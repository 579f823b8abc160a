"""What a report of profiles says, as text in tables; Markdown and HTML only lay it out. Nothing here is escaped yet."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis import flames
from harness.analysis.columns import columns
from harness.analysis.flames import Frame
from harness.analysis.profiles import Filed, Move, Taken, filed, matching, moves, top
from harness.model.cell import Cell
from harness.model.launch import Launch, Status
from harness.model.profile import Part, Profile
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import format, names
from harness.report.grid import Grid

#: Functions that a table names, and those whose shares moved most.
FUNCTIONS, MOVES = 12, 16

#: What is narrower than this share of a picture is not drawn.
LEAST = 0.004

Profiled = Sequence[tuple[Launch, Mapping[Part, Profile]]]


@dataclass(frozen=True, slots=True)
class PartView:
    """One profile: how many calls it is of, how long they took, which functions took most, and its picture.

    `own` and `cumulative` are the same columns in two orders; `command` opens the raw profile.
    """

    part: Part
    calls: int
    steps: int
    seconds: str
    own: Grid
    cumulative: Grid
    frames: Sequence[Frame]
    command: str


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell's profiles, and the document's own classes of its functions where there are both parts.

    `patterns` are globs of the names that count as data handling.
    """

    name: str
    parts: Sequence[PartView]
    filed: Grid | None
    misfiled: Sequence[Filed]
    patterns: Sequence[str]


@dataclass(frozen=True, slots=True)
class PairView:
    """Two cells side by side: the functions whose shares of later calls moved most, by cumulative and by own time."""

    name: str
    side: str
    other: str
    cumulative: Grid
    own: Grid


@dataclass(frozen=True, slots=True)
class Absence:
    """A cell without a profile: how its launch ended, and what to do; or why it was not launched."""

    cell: str
    status: str
    why: str
    advice: str


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """Everything that the report says, in its order. `command` profiles again, `report` makes this report again.

    `patterns` are the globs of data handling of all its scenarios; `calls` are profiled after the first.
    """

    run: Run
    title: str
    patterns: Sequence[str]
    calls: int
    cpus: Sequence[int]
    summary: Grid
    cells: Sequence[CellView]
    pairs: Sequence[PairView]
    absences: Sequence[Absence]
    command: str
    report: str


def build(run: Run, profiled: Profiled) -> ProfileDocument:
    """The report's content, from the launches and what each one profiled."""
    scenarios = {scenario.name: scenario for scenario in run.scenarios}
    label = _labels(run, scenarios)
    found = {launch.cell: parts for launch, parts in profiled if launch.status is Status.OK and parts}
    ordered = [cell for cell in run.plan.cells if cell in found]
    launches = {launch.cell: launch for launch, _ in profiled}
    folder = run.folder or f"results/{run.id}"
    return ProfileDocument(
        run=run,
        title=" and ".join(dict.fromkeys(scenarios[cell.scenario].title for cell in run.plan.cells)) or "No scenario",
        patterns=list(dict.fromkeys(each for cell in ordered for each in scenarios[cell.scenario].data_handling)),
        calls=run.plan.profile_calls or 0,
        cpus=run.plan.limits.cpus or (),
        summary=_summary(ordered, found, scenarios, label),
        cells=[_cell(label(cell), scenarios[cell.scenario], found[cell], launches[cell], folder) for cell in ordered],
        pairs=_pairs(run, found, scenarios, label),
        absences=[
            *(_lost(launch, label) for launch, parts in profiled if launch.cell not in found),
            *(
                Absence(label(entry.cell), Status.NOT_AVAILABLE.value, entry.reason, entry.advice)
                for entry in run.plan.unavailable
            ),
        ],
        command=shlex.join(run.command),
        report=shlex.join(["harness", "report", folder]),
    )


def _labels(run: Run, scenarios: Mapping[str, Scenario]) -> Callable[[Cell], str]:
    """Names cells by their environment and the axes in which the run's cells of that scenario differ."""
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    members = [*run.plan.cells, *(entry.cell for entry in run.plan.unavailable)]
    for cell in members:
        for axis, value in cell.axes.items():
            values[cell.scenario][axis].add(value)

    def label(cell: Cell) -> str:
        scenario = scenarios[cell.scenario]
        told = [
            names.label(scenario, axis, value)
            for axis, value in cell.axes.items()
            if len(values[cell.scenario][axis]) > 1 or axis in scenario.compared_axes
        ]
        first = [cell.scenario] if len(scenarios) > 1 else []
        return " ".join([*first, cell.environment, *told])

    return label


def _summary(
    cells: Sequence[Cell],
    found: Mapping[Cell, Mapping[Part, Profile]],
    scenarios: Mapping[str, Scenario],
    label: Callable[[Cell], str],
) -> Grid:
    headings = ["first call, ms", "later call, ms", "of that the profiler, %", "of that data handling, %"]
    rows = []
    for cell in cells:
        first, steady = found[cell].get(Part.FIRST_CALL), found[cell].get(Part.STEADY)
        patterns = scenarios[cell.scenario].data_handling
        rows.append(
            (
                [label(cell)],
                [
                    _milliseconds(first.seconds) if first else "",
                    _milliseconds(steady.seconds / steady.calls) if steady else "",
                    _overhead(steady) if steady else "",
                    _percent(matching(steady, patterns)) if steady and patterns else "",
                ],
            )
        )
    return Grid(["cell"], headings, rows)


def _cell(name: str, scenario: Scenario, parts: Mapping[Part, Profile], launch: Launch, folder: str) -> CellView:
    first, steady = parts.get(Part.FIRST_CALL), parts.get(Part.STEADY)
    classes = filed(first, steady) if first and steady else []
    return CellView(
        name=name,
        parts=[_part(profile, launch, folder) for profile in parts.values()],
        filed=_filed(classes) if classes else None,
        misfiled=[each for each in classes if each.building and each.kind.value != "build"],
        patterns=scenario.data_handling,
    )


def _part(profile: Profile, launch: Launch, folder: str) -> PartView:
    raw = next((name for name in launch.artifacts if name.endswith(f"/{profile.part.file}.pstats")), "")
    return PartView(
        part=profile.part,
        calls=profile.calls,
        steps=profile.steps,
        seconds=_milliseconds(profile.seconds / profile.calls),
        own=_taken(top(profile, FUNCTIONS, own=True), profile),
        cumulative=_taken(top(profile, FUNCTIONS, own=False), profile),
        frames=flames.frames(flames.tree(profile), LEAST),
        command=shlex.join(["python", "-m", "pstats", f"{folder}/{raw}"]) if raw else "",
    )


def _taken(functions: Sequence[Taken], profile: Profile) -> Grid:
    """Calls and seconds of a later profile are per call."""
    headings = ["calls", "own, ms", "own, %", "cumulative, ms", "cumulative, %"]
    rows = [
        (
            [each.name],
            [
                _count(each.calls / profile.calls),
                _milliseconds(each.own / profile.calls),
                _percent(each.own_share),
                _milliseconds(each.cumulative / profile.calls),
                _percent(each.cumulative_share),
            ],
        )
        for each in functions
    ]
    return Grid(["function"], headings, rows)


def _filed(classes: Sequence[Filed]) -> Grid:
    headings = ["functions", "own, ms", "own, %", "of these only in the first call", "their own, ms"]
    rows = [
        (
            [each.kind.value],
            [
                str(each.functions),
                _milliseconds(each.own),
                _percent(each.share),
                str(each.building),
                _milliseconds(each.building_own),
            ],
        )
        for each in classes
    ]
    return Grid(["the document's class"], headings, rows)


def _pairs(
    run: Run,
    found: Mapping[Cell, Mapping[Part, Profile]],
    scenarios: Mapping[str, Scenario],
    label: Callable[[Cell], str],
) -> list[PairView]:
    """Cells of two environments that the header sets side by side, each pair once."""
    seen: set[tuple[Cell, Cell]] = set()
    pairs = []
    for group in run.plan.groups:
        scenario = scenarios[group.scenario]
        for head in columns(run, scenario, group.cells):
            if head.other is None or head.side.environment == head.other.environment:
                continue
            cell, other = (
                replace(group.cells[0], environment=side.environment, axes={**group.cells[0].axes, **side.axes})
                for side in (head.side, head.other)
            )
            one, two = (found.get(each, {}).get(Part.STEADY) for each in (cell, other))
            if one and two and (cell, other) not in seen:
                seen.add((cell, other))
                pairs.append(_pair(label(cell), label(other), one, two))
    return pairs


def _pair(side: str, other: str, one: Profile, two: Profile) -> PairView:
    return PairView(
        name=f"{side} against {other}",
        side=side,
        other=other,
        cumulative=_moves(moves(one, two, MOVES, own=False), side, other),
        own=_moves(moves(one, two, MOVES, own=True), side, other),
    )


def _moves(moved: Sequence[Move], side: str, other: str) -> Grid:
    headings = [f"{side}, %", f"{other}, %", "moved, points", f"{side}, ms a step", f"{other}, ms a step"]
    rows = [
        (
            [each.name],
            [
                _percent(each.share),
                _percent(each.other_share),
                f"{100.0 * each.by:+.1f}",
                _milliseconds(each.seconds),
                _milliseconds(each.other_seconds),
            ],
        )
        for each in moved
    ]
    return Grid(["function"], headings, rows)


def _lost(launch: Launch, label: Callable[[Cell], str]) -> Absence:
    why = launch.error or ("it left no profile" if launch.status is Status.OK else "")
    return Absence(label(launch.cell), launch.status.value, why, launch.advice)


def _milliseconds(seconds: float) -> str:
    return format.number(1e3 * seconds) if seconds else "0"


def _percent(share: float) -> str:
    """A share in percent with one decimal; what is there and less is no zero."""
    return f"{100.0 * share:.1f}" if share >= 0.0005 or not share else "<0.1"


def _overhead(profile: Profile) -> str:
    """By how much longer the calls took under the profiler, of what they took so."""
    if profile.plain_seconds is None or profile.seconds <= 0:
        return ""
    return _percent(max(0.0, 1.0 - profile.plain_seconds / profile.seconds))


def _count(calls: float) -> str:
    return f"{calls:,.0f}" if calls >= 9.95 or calls == round(calls) else f"{calls:.1f}"
