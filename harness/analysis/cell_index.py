"""An index of all results of a run by cell, built once."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from harness.analysis import work_equivalence
from harness.analysis.control import Control, control, is_beyond, separate_control
from harness.analysis.distribution import Times
from harness.analysis.interference import Contention, find_contention
from harness.analysis.looks import Look, divide_level
from harness.analysis.moderation import Residual, Scatter
from harness.analysis.rounds import (
    Series,
    budget_seconds,
    centre,
    has_mean,
    pilots,
    references,
    seconds_per_round,
    select_counted,
    series,
)
from harness.analysis.trends import Trend, trends
from harness.model.launch import Launch, Status
from harness.model.run import Run, Stop, StopReason, Unavailable
from harness.model.scenario import Cell
from harness.model.texts import format_duration


@dataclass(frozen=True, slots=True)
class Lookup:
    """Every cell of the run, with its data.

    `cells` is an ordered set: first the plan's cells, then the cells that are known to be unavailable. `series`
    contains centres by round, `numbers` the counted launches that have a centre, and `lost` the launches that don't.
    `pilots` contains each cell's pilot. `observed` contains the launches of cells that only make observations (the
    counted launches, otherwise the pilot). `unavailable` contains the reasons that were known before any launch.
    `controls` contains the A/A controls by machine (under the name "" in a run that wasn't merged), and `references`
    contains the cells that all blocks of a round have in common. `groups` contains each cell's group. By group:
    `machines` are the machines that measured it, `scatters` the variances of launches, `contentions` the effects of CPU
    contention (if any), `rounds` the number of counted rounds, `costs` the seconds of one round, `stops` the reasons
    why it ended, and `looks` the share of the level for its verdicts. `trends` contains cells with non-stationary
    steps, `interpreters` the Python version (X.Y) of each environment, and `seen` caches the results of `observations`.
    `budget` is the budget of the run in seconds.
    """

    cells: Mapping[Cell, None]
    series: Mapping[Cell, Series]
    numbers: Mapping[Cell, Sequence[Launch]]
    lost: Mapping[Cell, Sequence[Launch]]
    pilots: Mapping[Cell, Launch]
    observed: Mapping[Cell, Sequence[Launch]]
    unavailable: Mapping[Cell, Unavailable]
    controls: Mapping[str, Control]
    references: Mapping[tuple[str, int], Mapping[int, Sequence[float]]]
    groups: Mapping[Cell, str]
    machines: Mapping[str, str]
    scatters: Mapping[str, Scatter]
    contentions: Mapping[str, Contention]
    rounds: Mapping[str, int]
    costs: Mapping[str, float]
    trends: Mapping[Cell, Trend]
    interpreters: Mapping[str, str]
    stops: Mapping[str, Stop] = field(default_factory=dict)
    budget: float | None = None
    looks: Mapping[str, Look] = field(default_factory=dict)
    seen: dict[Cell, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def cells_of(self, scenario: str) -> list[Cell]:
        """Return the run's cells of a scenario."""
        return [cell for cell in self.cells if cell.scenario == scenario]

    @property
    def control(self) -> Control | None:
        """The A/A control; None if there is none, or if several machines have one each."""
        return next(iter(self.controls.values())) if len(self.controls) == 1 else None

    def machine(self, cell: Cell) -> str:
        """Return the machine that measured the cell; empty if the run isn't merged."""
        return self.machines.get(self.groups.get(cell, ""), "")

    def look(self, cell: Cell) -> Look:
        """Return the share of the significance level that verdicts of the cell's group may use."""
        return self.looks.get(self.groups.get(cell, ""), Look())

    def residual(self, cell: Cell, other: Cell) -> Residual | None:
        """Return the variance that a comparison of two cells of a group can use from the group's launches."""
        scatter = self.scatters.get(self.groups.get(cell, ""))
        return scatter.between(cell, other) if scatter else None

    def contention(self, cell: Cell, other: Cell) -> float:
        """Return the possible error of the log ratio of two cells of a group, if CPU contention was subtracted."""
        own_contention = self.contentions.get(self.groups.get(cell, ""))
        return own_contention.bias(cell, other) if own_contention else 0.0

    def control_of(self, cell: Cell) -> Control | None:
        """Return the A/A control of the machine that measured the cell."""
        return self.controls.get(self.machine(cell))

    def is_lost(self, cell: Cell, margin: float) -> bool:
        """Return whether that control is beyond `margin` (log scale). In that case, no verdict includes the cell."""
        return is_beyond([self.control_of(cell)], margin)

    def weight(self, cell: Cell, other: Cell) -> float:
        """Return the variance of the log ratio of two cells in a round, if a launch has variance 1.

        It is the mean over the rounds that both cells have. A cell may have several launches in a round. If two cells
        were never in the same block, they are compared through the reference (`series`), and the variance of the
        reference's launches is added.
        """
        one, two = _count_blocks(self.numbers[cell]), _count_blocks(self.numbers[other])
        return fmean(
            self._weight(one[number], two[number], self.references.get((self.groups.get(cell, ""), number), {}))
            for number in one.keys() & two.keys()
        )

    @staticmethod
    def _weight(one: Counter[int], two: Counter[int], references: Mapping[int, Sequence[float]]) -> float:
        """Return the weights of one round's launches: by block, relative to the launches of the reference."""
        together = one.keys() & two.keys()
        if together:
            return min(1.0 / one[block] + 1.0 / two[block] for block in together)
        through = (1.0 / len(references[block]) for block in (*one, *two) if block in references)
        return 1.0 / one.total() + 1.0 / two.total() + sum(through)

    def rounds_of(self, cell: Cell) -> int:
        """Return the number of counted rounds of the cell's group."""
        return self.rounds.get(self.groups.get(cell, ""), 0)

    def seconds_for(self, cell: Cell, more: int) -> float:
        """Return the seconds that `more` rounds of the cell's group take.

        Other groups get as many rounds.

        These are the groups of its machine, because a run continues with all of them. Returns 0 if the duration of a
        round is unknown.
        """
        total = self.rounds_of(cell) + more
        beside = (group for group in self.costs if self.machines.get(group, "") == self.machine(cell))
        return math.fsum(self.costs[group] * max(0, total - self.rounds[group]) for group in beside)

    def pythons(self, environment: str, other: str) -> tuple[str, str] | None:
        """Return the Python versions of two environments if they differ, because Python itself changes the speed."""
        one, two = (self.interpreters.get(name, "") for name in (environment, other))
        return (one, two) if one and two and one != two else None

    def describe_budget(self, cell: Cell) -> str:
        """Return that the budget ended the cell's group: `the budget of 20 s ended`. Empty if something else did."""
        stop = self.stops.get(self.groups.get(cell, ""))
        if stop is None or stop.reason is not StopReason.BUDGET:
            return ""
        return f"the budget{f' of {format_duration(self.budget)}' if self.budget else ''} ended"

    def culprit(self, cell: Cell) -> Launch | None:
        """Return the launch that explains why the cell has no result: its last counted one, or its failed pilot."""
        if self.lost.get(cell):
            return self.lost[cell][-1]
        pilot = self.pilots.get(cell)
        return pilot if pilot and pilot.status is not Status.OK else None

    def status(self, cell: Cell) -> Status | None:
        """Return the status that explains why a cell has no result; None if the run doesn't include the cell.

        A planned cell without any launch was interrupted. A cell that only makes observations is ok. An `ok` without a
        timed step or an observation is a failure.
        """
        if cell in self.unavailable:
            return Status.NOT_AVAILABLE
        if culprit := self.culprit(cell):
            return Status.FAILED if culprit.status is Status.OK else culprit.status
        if cell in self.observed:
            return Status.OK
        return Status.INTERRUPTED if cell in self.cells else None


def lookup(run: Run, launches: Sequence[Launch]) -> Lookup:
    """Collect the data of each cell from the stored launches and the plan."""
    unavailable = {entry.cell: entry for entry in run.plan.unavailable}
    numbers: dict[Cell, list[Launch]] = defaultdict(list)
    lost: dict[Cell, list[Launch]] = defaultdict(list)
    observed: dict[Cell, list[Launch]] = defaultdict(list)
    counting = select_counted(run.plan, launches)
    for launch in counting:
        (numbers if has_mean(launch) else observed if launch.only_observed else lost)[launch.cell].append(launch)
    machines = {group.name: group.machine for group in run.plan.groups}
    on: dict[str, list[Launch]] = defaultdict(list)
    for launch in counting:
        on[machines.get(launch.group, "")].append(launch)
    first = pilots(launches)
    scatters = _launch_variances(run, numbers)
    apart = {group: separate_control(scatter, numbers) for group, scatter in scatters.items()}
    for cell, pilot in first.items():
        if pilot.only_observed and cell not in observed:
            observed[cell].append(pilot)
    return Lookup(
        cells=dict.fromkeys([*run.plan.cells, *unavailable]),
        series=series(counting),
        numbers=dict(numbers),
        lost=dict(lost),
        pilots=first,
        observed=dict(observed),
        unavailable=unavailable,
        controls={machine: shown for machine, on_machine in on.items() if (shown := control(on_machine, apart))},
        references=references(counting),
        groups={cell: group.name for group in run.plan.groups for cell in group.cells},
        machines=machines,
        scatters=scatters,
        contentions=_contentions(run, numbers),
        rounds=Counter(group for group, _ in {(one.group, one.round) for one in counting}),
        costs=seconds_per_round(counting),
        trends=trends(numbers, math.log1p(run.plan.margin)),
        interpreters={environment.name: environment.python for environment in run.environments},
        stops=run.stops,
        budget=budget_seconds(run.plan, launches),
        looks=divide_level(run, counting),
    )


def _launch_variances(run: Run, numbers: Mapping[Cell, Sequence[Launch]]) -> dict[str, Scatter]:
    """Return the variances of launches by group.

    Cells that did different work than the first cell are omitted, because nothing is compared with them, and they vary
    differently. If most cells differ from the first cell, all cells are included.
    """
    scatters: dict[str, Scatter] = {}
    for group in run.plan.groups:
        cells = [cell for cell in group.cells if numbers.get(cell)]
        alike = [cell for cell in cells if not work_equivalence.compare(numbers[cells[0]], numbers[cell]).differs]
        cells = alike if 2 * len(alike) > len(cells) else cells
        launches = [launch for cell in cells for launch in numbers[cell]]
        # the launches of a block had the same interference
        of_rounds = [(launch.round, launch.block) for launch in launches]
        within = {cell: scatter for cell in cells if (scatter := _centre_error(numbers[cell]))}
        scatters[group.name] = Scatter(
            [launch.cell for launch in launches], of_rounds, [math.log(centre(launch)) for launch in launches], within
        )
    return scatters


def _contentions(run: Run, numbers: Mapping[Cell, Sequence[Launch]]) -> dict[str, Contention]:
    """Return the effects of CPU contention by group, if there were any."""
    by_group = {
        group.name: [launch for cell in group.cells for launch in numbers.get(cell, ())] for group in run.plan.groups
    }
    return {name: effect for name, launches in by_group.items() if (effect := find_contention(launches))}


def _centre_error(launches: Sequence[Launch]) -> float:
    """Return the standard error of a launch's centre, estimated from its samples; 0 if it can't be estimated."""
    return (Times(launches).within or 0.0) / math.sqrt(fmean(len(launch.samples) or 1 for launch in launches))


def _count_blocks(launches: Sequence[Launch]) -> dict[int, Counter[int]]:
    """Return, by round, the number of launches in each block."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for launch in launches:
        counts[launch.round][launch.block] += 1
    return counts
