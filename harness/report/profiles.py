"""The report of profiles: which functions take the time in the first call and in later calls of each cell."""

import itertools
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from harness.analysis.columns import columns as compared_columns
from harness.analysis.profiles import (
    WRAPPER_SHARE,
    FunctionChange,
    FunctionTime,
    count_calls,
    find_moves,
    find_top,
    list_frames,
    sum_matching,
    sum_own_seconds,
    tree,
)
from harness.model.launch import Launch, Status
from harness.model.profile import Part, Profile
from harness.model.run import Run, describe_fallbacks
from harness.model.scenario import STEP, Cell
from harness.model.texts import counted, format_plain
from harness.report import flamegraphs, names
from harness.report.blocks import (
    FILES,
    Block,
    Bold,
    Code,
    Column,
    Drawing,
    Folded,
    Heading,
    Items,
    Section,
    Table,
    Text,
    Where,
    tabulate,
)
from harness.report.flamegraphs import format_milliseconds
from harness.report.sections import run_info, timeline

#: The largest number of functions in a table of functions, and in a table of changed shares.
FUNCTIONS, MOVES = 12, 16

#: The smallest width of a function that is drawn, as a share of its flame graph's width.
MIN_WIDTH = 0.002

#: If there are more cells than this, all tables are folded.
MAX_UNFOLDED_CELLS = 4

Profiles = Mapping[Part, Profile]
Profiled = Sequence[tuple[Launch, Profiles]]


class ProfileReport:
    """The report on the profiles of a run's cells. `sections` returns its contents."""

    def __init__(self, run: Run, profiled: Profiled) -> None:
        self.run = run
        self.profiled = profiled
        self.scenarios = {scenario.name: scenario for scenario in run.scenarios}
        all_cells = [*run.plan.cells, *(entry.cell for entry in run.plan.unavailable)]
        self.names = names.distinguish_cells(all_cells, run.scenarios, compared=True)
        self.found = {launch.cell: parts for launch, parts in profiled if launch.status is Status.OK and parts}
        self.launches = {launch.cell: launch for launch, _ in profiled}
        self.cells = [cell for cell in run.plan.cells if cell in self.found]
        self._pairs = list(self._find_pairs().items())
        self._counterparts: dict[Cell, Cell] = {}
        for (cell, other), part in self._pairs:
            if all(self._get_main_profile(side).part is part for side in (cell, other)):
                self._counterparts.setdefault(cell, other)
                self._counterparts.setdefault(other, cell)

    @property
    def title(self) -> str:
        """The title, such as `Time by function: One training step`."""
        titles = dict.fromkeys(self.scenarios[cell.scenario].title for cell in self.run.plan.cells)
        return f"Time by function: {' and '.join(titles) or 'no scenario'}"

    def name(self, cell: Cell) -> str:
        """Return the name of the cell: its differences from other cells, and its values of the compared axes."""
        return " ".join(self.names[cell])

    def patterns(self, cell: Cell) -> Sequence[str]:
        """Return glob patterns of the functions that count as data handling."""
        return self.scenarios[cell.scenario].data_handling

    def sections(self) -> list[Section]:
        """Return the sections of the report, in order."""
        change_blocks = [block for pair, part in self._pairs for block in self._list_changed_shares(*pair, part)]
        first_cell = next((cell for (cell, _), _ in self._pairs), None)
        flame_blocks = [block for cell in self.cells if cell != first_cell for block in self._list_flame_graphs(cell)]
        all_sections = [
            Section(self.title, "summary", list(self._list_head_blocks())),
            Section("Flame graphs", "flames", flame_blocks),
            Section("Largest changes", "moved", change_blocks),
            Section("Configurations", "cells", [block for cell in self.cells for block in self._describe_cell(cell)]),
            Section("No profile", "absences", list(self._list_missing())),
            Section("Method", "method", list(self._describe_method())),
            Section("Reproduce", "reproduce", list(self._describe_reproduction())),
        ]
        return [section for section in all_sections if section.blocks]

    def _list_head_blocks(self) -> Iterator[Block]:
        fallbacks = describe_fallbacks(self.run.plan.stand_ins)
        if fallbacks:
            yield Text(fallbacks, where=FILES | Where.TERMINAL)
        if self._pairs:
            yield Text([Bold(self._describe_difference(*self._pairs[0]))], where=FILES | Where.TERMINAL)
            cell = self._pairs[0][0][0]
            yield from self._draw_flame_graph(cell, self._get_main_profile(cell))
        yield self._make_calls_table() if self.cells else Text("No cell has a profile.", where=FILES)

    def _describe_difference(self, pair: tuple[Cell, Cell], part: Part) -> str:
        """Return the sentence that names the function with the largest part of the difference between two cells."""
        profiles = [self.found[cell][part] for cell in pair]
        are_sampled = all(profile.stacks for profile in profiles)
        own, other_own = (sum_own_seconds(profile, sampled=are_sampled) for profile in profiles)
        totals = (sum(own.values()), sum(other_own.values()))
        total, other_total = (f"{format_milliseconds(seconds)} ms" for seconds in totals)
        step = "step" if part is Part.STEADY else "first call"
        text = f"A {step} takes {total} in {self.name(pair[0])} and {other_total} in {self.name(pair[1])}."
        if total == other_total:
            return text
        difference = totals[0] - totals[1]
        growth = {name: own.get(name, 0.0) - other_own.get(name, 0.0) for name in {**own, **other_own}}
        top = max(growth, key=lambda name: (math.copysign(growth[name], growth[name] * difference), name))
        part_text = "Most" if abs(growth[top]) > 0.5 * abs(difference) else "The largest part"
        seconds, other_seconds = (f"{format_milliseconds(side.get(top, 0.0))} ms" for side in (own, other_own))
        return f"{text} {part_text} of the difference is in {top}: {seconds} instead of {other_seconds}."

    def _make_calls_table(self) -> Table:
        where = FILES | Where.TERMINAL
        return tabulate("Each cell's calls", self._list_columns(), self.cells, where=where, noun="cell")

    def _list_flame_graphs(self, cell: Cell) -> Iterator[Block]:
        """Yield the flame graph of the cell's later calls, or of its first call if later calls have no profile."""
        profile = self._get_main_profile(cell)
        drawings = list(self._draw_flame_graph(cell, profile))
        title = f"{self.name(cell)}: {_describe_calls(profile)}"
        if drawings and len(self.cells) > MAX_UNFOLDED_CELLS:
            yield Folded(title, drawings, where=Where.PAGE)
        elif drawings:
            yield Heading(title, where=Where.PAGE)
            yield from drawings

    def _get_main_profile(self, cell: Cell) -> Profile:
        return self.found[cell].get(Part.STEADY) or self.found[cell][Part.FIRST_CALL]

    def _describe_method(self) -> Iterator[Block]:
        calls = self.run.plan.profile_calls or 0
        yield Text(
            "Each cell was launched once under cProfile. Such launches have no times. The first call is in one "
            f"profile, and {calls} later calls are in another one. To time the same cells without a profiler, use "
            "harness matrix.",
            where=FILES,
        )
        if self.cells:
            yield Text(self._make_calls_table().legend, True, where=FILES)
            yield Text(_NESTED, True, where=FILES)
        cpu = self.run.host.get("cpu")
        cpu_text = f", on {cpu}" if cpu else ""
        yield Text(
            f"Run {run_info.describe_origin(self.run)}, {timeline.describe_pinning(self.run)}{cpu_text}.",
            True,
            where=FILES,
        )

    def _list_columns(self) -> list[Column[Cell]]:
        patterns = list(dict.fromkeys(glob for cell in self.cells for glob in self.patterns(cell)))
        legend = (
            "Data handling is the time that later calls spend in these functions of the scenario's header, and in all "
            f"functions that these call: {', '.join(patterns)}. Each second counts once."
            if patterns
            else "The scenario's header doesn't list the functions that handle data (tool.harness.profile)."
        )
        return [
            Column("cell", self.name, is_label=True),
            Column(
                "first call, ms", lambda cell: _format_per_call(self.found[cell].get(Part.FIRST_CALL)), is_number=True
            ),
            Column("later call, ms", lambda cell: _format_per_call(self.found[cell].get(Part.STEADY)), is_number=True),
            Column(
                "profiler overhead, %",
                lambda cell: _describe_overhead(self.found[cell].get(Part.STEADY)),
                is_number=True,
            ),
            Column("data handling, %", self._format_data_share, legend=legend, is_number=True),
        ]

    def _format_data_share(self, cell: Cell) -> str:
        profile, patterns = self.found[cell].get(Part.STEADY), self.patterns(cell)
        return _format_percent(sum_matching(profile, patterns)) if profile and patterns else ""

    def _find_pairs(self) -> dict[tuple[Cell, Cell], Part]:
        """Return the compared pairs of cells from two environments, each with a part of the profile that both have."""
        pairs: dict[tuple[Cell, Cell], Part] = {}
        for group in self.run.plan.groups:
            scenario = self.scenarios[group.scenario]
            columns = [
                compared_columns(self.run, scenario, group.cells, quantity) for quantity in (STEP, *scenario.quantities)
            ]
            for column in itertools.chain.from_iterable(columns):
                if column.other and column.side.environment != column.other.environment:
                    first = group.cells[0]
                    cell, other = (
                        replace(first, environment=side.environment, axes={**first.axes, **side.axes})
                        for side in (column.side, column.other)
                    )
                    parts = [part for part in Part if all(part in self.found.get(side, {}) for side in (cell, other))]
                    if parts:
                        pairs[cell, other] = parts[-1]
        return pairs

    def _list_changed_shares(self, cell: Cell, other: Cell, part: Part) -> Iterator[Block]:
        profile, other_profile = (self.found[compared_cell][part] for compared_cell in (cell, other))
        side, other_side = self.name(cell), self.name(other)
        yield Heading(f"{side} vs {other_side}", where=FILES)
        yield Text(
            f"Shares of {'later calls' if part is Part.STEADY else 'the first call'} in {side} minus those in "
            f"{other_side}, largest changes first. Functions are matched by module and name, without packages, "
            "because releases rename them. A function that is missing on one side has the share 0 there. The table by "
            f"cumulative time omits a function that spends {format_plain(100 * WRAPPER_SHARE)} % of its time or more "
            "in a single function that nothing else calls.",
            True,
            where=FILES,
        )
        columns = _list_change_columns(side, other_side)
        yield tabulate("By cumulative time", columns, find_moves(profile, other_profile, MOVES, own=False), where=FILES)
        yield Folded(
            "By own time",
            [tabulate("Own time", columns, find_moves(profile, other_profile, MOVES, own=True))],
            where=FILES,
        )

    def _describe_cell(self, cell: Cell) -> Iterator[Block]:
        yield Heading(self.name(cell), where=FILES)
        for profile in self.found[cell].values():
            yield from self._describe_part(cell, profile)

    def _describe_part(self, cell: Cell, profile: Profile) -> Iterator[Block]:
        prefix = "Build: the" if profile.part is Part.FIRST_CALL else "Train:"
        yield Text([Bold(f"{prefix} {_describe_calls(profile)}")], where=FILES)
        if profile is not self._get_main_profile(cell):
            yield from self._draw_flame_graph(cell, profile)
        for kind in ("own", "cumulative"):
            caption, rows = f"Functions by {kind} time", find_top(profile, FUNCTIONS, own=kind == "own")
            table = tabulate(caption, _list_time_columns(profile), rows, where=FILES)
            is_folded = kind == "cumulative" or len(self.cells) > MAX_UNFOLDED_CELLS
            yield Folded(caption, [table], where=FILES) if is_folded else table
        artifacts = self.launches[cell].artifacts
        stats_file = next((name for name in artifacts if name.endswith(f"/{profile.part.file}.pstats")), "")
        if stats_file:
            yield Code(shlex.join(["python", "-m", "pstats", f"{self.run.shown_folder}/{stats_file}"]), where=FILES)

    def _draw_flame_graph(self, cell: Cell, profile: Profile) -> Iterator[Drawing]:
        """Yield the flame graph, compared with the cell's counterpart if there is one; nothing without samples."""
        patterns, counterpart = self.patterns(cell), self._counterparts.get(cell)
        other_profile = self._get_main_profile(counterpart) if counterpart else None
        base = other_profile if other_profile and other_profile.part is profile.part and other_profile.stacks else None
        root, base_root = tree(profile), tree(base) if base else None
        steps = profile.calls * profile.steps
        weight = steps / (base.calls * base.steps) if base else 1.0
        frames = list_frames(root, MIN_WIDTH, base_root, weight)
        if not frames:
            return
        title = f"{self.name(cell)}, {profile.part.value}: which function called which, and how long each took"
        longest = max(root.seconds, base_root.seconds * weight if base_root else 0.0)
        base_name = self.name(counterpart) if counterpart and base else ""
        svg = flamegraphs.draw(
            frames,
            title,
            lambda name: any(fnmatchcase(name, pattern) for pattern in patterns),
            seconds=root.seconds / steps,
            part=root.seconds / longest,
            base=base_name,
            calls=[count_calls(each) for each in (profile, base) if each],
        )
        caption = _make_caption(profile, self.name(cell), base_name, has_marks=bool(patterns))
        yield Drawing(svg, caption, where=Where.PAGE)

    def _list_missing(self) -> Iterator[Block]:
        missing_cells = [
            (
                launch.cell,
                launch.status,
                launch.error or ("the launch left no profile" if launch.status is Status.OK else ""),
                launch.advice,
            )
            for launch, _ in self.profiled
            if launch.cell not in self.found
        ]
        missing_cells += [
            (entry.cell, Status.NOT_AVAILABLE, entry.reason, entry.advice) for entry in self.run.plan.unavailable
        ]
        items = [
            f"{self.name(cell)}: {status.value}{f': {reason}' if reason else ''}{f' {advice}' if advice else ''}"
            for cell, status, reason, advice in missing_cells
        ]
        if items:
            yield Items(items, where=FILES | Where.TERMINAL)

    def _describe_reproduction(self) -> Iterator[Block]:
        yield Code(shlex.join(self.run.command), where=FILES)
        yield Text("To write this report again from the stored profiles:", where=FILES)
        yield Code(shlex.join(["harness", "report", self.run.shown_folder]), where=FILES)


_NESTED = (
    "Cumulative time includes the functions that a function calls, so these shares overlap; only own times add up to "
    "100 %. A share is relative to the time in all functions, without the profiler's own time. cProfile sees only the "
    "calling thread: the work of TensorFlow's other threads appears as waiting in the C function that started it. "
    "The profiler adds a constant cost to each call of a Python function, so Python looks slower than C. “Profiler "
    "overhead” shows how much longer a call took because of it."
)


def _describe_calls(profile: Profile) -> str:
    """Describe the calls of a profile: `first call, 399 ms`, or `50 later calls, 7.75 ms per call`."""
    per_call = format_milliseconds(profile.seconds / profile.calls)
    if profile.part is Part.FIRST_CALL:
        return f"first call, {per_call} ms"
    steps = f" of {profile.steps} steps each" if profile.steps > 1 else ""
    return f"{counted(profile.calls, 'later call')}{steps}, {per_call} ms per call"


def _make_caption(profile: Profile, side: str, base: str, *, has_marks: bool) -> str:
    calls = "" if profile.part is Part.FIRST_CALL else ", without the profiler, in the same number of calls"
    key = " Orange: data handling." if has_marks and not base else ""
    if base:
        key = f" Red: more time than in {base}. Blue: less time. Grey: about the same."
    return (
        f"{side}: each box is a function, below the function that called it; its width is its time.{key} The stack was "
        f"sampled every millisecond{calls}. Time in C belongs to the Python function that called it."
    )


def _list_time_columns(profile: Profile) -> list[Column[FunctionTime]]:
    """Return the columns of a table of functions. For later calls, the numbers are per call."""
    return [
        Column("function", lambda function: function.name, is_label=True),
        Column("calls", lambda function: _format_count(function.calls / profile.calls), is_number=True),
        Column("own, ms", lambda function: format_milliseconds(function.own / profile.calls), is_number=True),
        Column("own, %", lambda function: _format_percent(function.own_share), is_number=True),
        Column(
            "cumulative, ms", lambda function: format_milliseconds(function.cumulative / profile.calls), is_number=True
        ),
        Column("cumulative, %", lambda function: _format_percent(function.cumulative_share), is_number=True),
    ]


def _list_change_columns(side: str, other: str) -> list[Column[FunctionChange]]:
    return [
        Column("function", lambda change: change.name, is_label=True),
        Column(f"{side}, %", lambda change: _format_percent(change.share), is_number=True),
        Column(f"{other}, %", lambda change: _format_percent(change.other_share), is_number=True),
        Column("change, points", lambda change: f"{100.0 * change.by:+.1f}", is_number=True),
        Column(f"{side}, ms per step", lambda change: format_milliseconds(change.seconds), is_number=True),
        Column(f"{other}, ms per step", lambda change: format_milliseconds(change.other_seconds), is_number=True),
    ]


def _format_per_call(profile: Profile | None) -> str:
    """Format the milliseconds per call."""
    return format_milliseconds(profile.seconds / profile.calls) if profile else ""


def _format_percent(share: float) -> str:
    """Return a share as a percentage with one decimal. A positive share is never shown as 0."""
    return f"{100.0 * share:.1f}" if share >= 0.0005 or not share else "<0.1"


def _describe_overhead(profile: Profile | None) -> str:
    """Return the share of the calls' time that the profiler added, in percent; empty if it is unknown."""
    if profile is None or profile.plain_seconds is None or profile.seconds <= 0:
        return ""
    return _format_percent(max(0.0, 1.0 - profile.plain_seconds / profile.seconds))


def _format_count(calls: float) -> str:
    return f"{calls:,.0f}" if calls >= 9.95 or calls == round(calls) else f"{calls:.1f}"
