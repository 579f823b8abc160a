"""An index of all results of a run by cell."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from harness.analysis import work_equivalence
from harness.analysis.control import Control, find_control, is_beyond, separate_control
from harness.analysis.distribution import Times
from harness.analysis.interference import Contention, find_contention
from harness.analysis.looks import Look, divide_level
from harness.analysis.moderation import LaunchVariances, Residual
from harness.analysis.rounds import (
    References,
    Series,
    budget_seconds,
    compute_mean,
    has_mean,
    pilots,
    references,
    seconds_per_round,
    select_counted,
    series,
)
from harness.analysis.trends import Trend, find_trends
from harness.model.launch import Launch, Status
from harness.model.run import Run, Stop, StopReason, Unavailable
from harness.model.scenario import Cell
from harness.model.texts import format_duration


@dataclass(frozen=True, slots=True)
class Lookup:
    """All cells of the run, with their data.

    `cells` is an ordered set: first the plan's cells, then the cells that are known to be unavailable.

    By cell: `series` contains launch means by round. `numbers` contains the launches that count and have a result, and
    `lost` those that count and have none. `pilots` contains the pilot. `observed` contains the launches of a cell that
    only makes observations: those that count, or the pilot if there are none. `unavailable` contains the reason that
    was known before any launch. `groups` contains the group. `trends` contains the cells with non-stationary steps.
    `seen` caches the results of `observations`.

    By group: `machines` contains the machine that measured it, `variances` the variances of launches, `contentions` the
    effects of CPU contention (if any), `rounds` the number of counted rounds, `costs` the seconds of one round, `stops`
    the reason why it ended, and `looks` the share of the level for its verdicts.

    `controls` contains the A/A control of each machine (under the name "" in a run that wasn't merged). `references`
    contains the control cell's results in rounds with several blocks (`rounds.references`). `interpreters` contains the
    Python version (X.Y) of each environment. `budget` is the budget of the run in seconds.
    """

    cells: Mapping[Cell, None]
    series: Mapping[Cell, Series]
    numbers: Mapping[Cell, Sequence[Launch]]
    lost: Mapping[Cell, Sequence[Launch]]
    pilots: Mapping[Cell, Launch]
    observed: Mapping[Cell, Sequence[Launch]]
    unavailable: Mapping[Cell, Unavailable]
    controls: Mapping[str, Control]
    references: References
    groups: Mapping[Cell, str]
    machines: Mapping[str, str]
    variances: Mapping[str, LaunchVariances]
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
        """The A/A control; None if there is none, or if several machines have their own."""
        return next(iter(self.controls.values())) if len(self.controls) == 1 else None

    def machine(self, cell: Cell) -> str:
        """Return the machine that measured the cell; empty if the run isn't merged."""
        return self.machines.get(self.groups.get(cell, ""), "")

    def look(self, cell: Cell) -> Look:
        """Return the share of the significance level that verdicts of the cell's group may use."""
        return self.looks.get(self.groups.get(cell, ""), Look())

    def residual(self, cell: Cell, other: Cell) -> Residual | None:
        """Return the residual variance of the group's launches that a comparison of two of its cells can use."""
        group_variances = self.variances.get(self.groups.get(cell, ""))
        return group_variances.between(cell, other) if group_variances else None

    def contention(self, cell: Cell, other: Cell) -> float:
        """Return the possible error of the log ratio of two cells of a group, if CPU contention was subtracted."""
        own_contention = self.contentions.get(self.groups.get(cell, ""))
        return own_contention.bias(cell, other) if own_contention else 0.0

    def losses(self, cell: Cell) -> Series:
        """Return the cell's loss from CPU contention in each round; empty if nothing was subtracted in its group."""
        own_contention = self.contentions.get(self.groups.get(cell, ""))
        return own_contention.losses.get(cell, {}) if own_contention else {}

    def control_of(self, cell: Cell) -> Control | None:
        """Return the A/A control of the machine that measured the cell."""
        return self.controls.get(self.machine(cell))

    def is_lost(self, cell: Cell, margin: float) -> bool:
        """Return whether the cell's A/A control is beyond `margin` (log scale), so that verdicts are withheld."""
        return is_beyond([self.control_of(cell)], margin)

    def weight(self, cell: Cell, other: Cell) -> float:
        """Return the variance of the log ratio of two cells in a round, if the variance of a launch is 1.

        The result is the mean over the rounds that both cells have. A cell may have several launches in a round. If two
        cells aren't in the same block, they are compared through the control cell (`rounds.series`), which adds the
        variance of the control cell's launches.
        """
        blocks, other_blocks = _count_blocks(self.numbers[cell]), _count_blocks(self.numbers[other])
        return fmean(
            self._compute_round_weight(
                blocks[number], other_blocks[number], self.references.get((self.groups.get(cell, ""), number), {})
            )
            for number in blocks.keys() & other_blocks.keys()
        )

    @staticmethod
    def _compute_round_weight(
        blocks: Counter[int], other_blocks: Counter[int], references: Mapping[int, Sequence[float]]
    ) -> float:
        """Return the variance in one round. The arguments count each cell's launches by block."""
        shared_blocks = blocks.keys() & other_blocks.keys()
        if shared_blocks:
            return min(1.0 / blocks[block] + 1.0 / other_blocks[block] for block in shared_blocks)
        control_variances = (1.0 / len(references[block]) for block in (*blocks, *other_blocks) if block in references)
        return 1.0 / blocks.total() + 1.0 / other_blocks.total() + sum(control_variances)

    def rounds_of(self, cell: Cell) -> int:
        """Return the number of counted rounds of the cell's group."""
        return self.rounds.get(self.groups.get(cell, ""), 0)

    def has_ended(self, cell: Cell) -> bool:
        """Return whether the cell's group gets no further rounds, even if the run is resumed."""
        stop = self.stops.get(self.groups.get(cell, ""))
        return stop is not None and stop.reason.is_final

    def seconds_until(self, groups: Iterable[str], rounds: int) -> float:
        """Return how long it takes, in seconds, until these groups have this number of rounds; 0 if it is unknown."""
        return math.fsum(self.costs.get(group, 0.0) * max(0, rounds - self.rounds.get(group, 0)) for group in groups)

    def pythons(self, environment: str, other: str) -> tuple[str, str] | None:
        """Return the Python versions of two environments if they differ. Python itself changes the speed."""
        version, other_version = (self.interpreters.get(name, "") for name in (environment, other))
        return (version, other_version) if version and other_version and version != other_version else None

    def describe_budget(self, cell: Cell) -> str:
        """Return the reason `the budget of 20 s ended` if the budget ended the cell's group; otherwise empty."""
        stop = self.stops.get(self.groups.get(cell, ""))
        if stop is None or stop.reason is not StopReason.BUDGET:
            return ""
        return f"the budget{f' of {format_duration(self.budget)}' if self.budget else ''} ended"

    def culprit(self, cell: Cell) -> Launch | None:
        """Return the launch that explains why the cell has no result: its last counted launch, or its failed pilot."""
        if self.lost.get(cell):
            return self.lost[cell][-1]
        pilot = self.pilots.get(cell)
        return pilot if pilot and pilot.status is not Status.OK else None

    def status(self, cell: Cell) -> Status | None:
        """Return the status that explains why a cell has no result; None if the run doesn't include the cell.

        A planned cell without any launch is `interrupted`. A cell that only makes observations is `ok`. A launch that
        ended ok without a timed step or an observation is `failed`.
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
    lost_launches: dict[Cell, list[Launch]] = defaultdict(list)
    observed: dict[Cell, list[Launch]] = defaultdict(list)
    counted = select_counted(run.plan, launches)
    for launch in counted:
        (numbers if has_mean(launch) else observed if launch.only_observed else lost_launches)[launch.cell].append(
            launch
        )
    machines = {group.name: group.machine for group in run.plan.groups}
    by_machine: dict[str, list[Launch]] = defaultdict(list)
    for launch in counted:
        by_machine[machines.get(launch.group, "")].append(launch)
    first_launches = pilots(launches)
    variances = _launch_variances(run, numbers)
    control_variances = {
        group: separate_control(group_variances, numbers) for group, group_variances in variances.items()
    }
    for cell, pilot in first_launches.items():
        if pilot.only_observed and cell not in observed:
            observed[cell].append(pilot)
    return Lookup(
        cells=dict.fromkeys([*run.plan.cells, *unavailable]),
        series=series(counted),
        numbers=dict(numbers),
        lost=dict(lost_launches),
        pilots=first_launches,
        observed=dict(observed),
        unavailable=unavailable,
        controls={
            machine: group_control
            for machine, on_machine in by_machine.items()
            if (group_control := find_control(on_machine, control_variances))
        },
        references=references(counted),
        groups={cell: group.name for group in run.plan.groups for cell in group.cells},
        machines=machines,
        variances=variances,
        contentions=_find_contentions(run, numbers),
        rounds=Counter(group for group, _ in {(launch.group, launch.round) for launch in counted}),
        costs=seconds_per_round(counted),
        trends=find_trends(numbers, math.log1p(run.plan.margin)),
        interpreters={environment.name: environment.python for environment in run.environments},
        stops=run.stops,
        budget=budget_seconds(run.plan, launches),
        looks=divide_level(run, counted),
    )


def _launch_variances(run: Run, numbers: Mapping[Cell, Sequence[Launch]]) -> dict[str, LaunchVariances]:
    """Return the variances of launches by group.

    Cells that did different work from the first cell are omitted, because they aren't compared and may vary more or
    less. If at least half of the cells did different work, all cells are included.
    """
    variances: dict[str, LaunchVariances] = {}
    for group in run.plan.groups:
        cells = [cell for cell in group.cells if numbers.get(cell)]
        same_work = [cell for cell in cells if not work_equivalence.compare(numbers[cells[0]], numbers[cell]).differs]
        cells = same_work if 2 * len(same_work) > len(cells) else cells
        launches = [launch for cell in cells for launch in numbers[cell]]
        # interference is the same for all launches of a block
        rounds = [(launch.round, launch.block) for launch in launches]
        errors = {cell: error for cell in cells if (error := _estimate_mean_error(numbers[cell]))}
        variances[group.name] = LaunchVariances(
            [launch.cell for launch in launches],
            rounds,
            [math.log(compute_mean(launch)) for launch in launches],
            errors,
        )
    return variances


def _find_contentions(run: Run, numbers: Mapping[Cell, Sequence[Launch]]) -> dict[str, Contention]:
    """Return the effects of CPU contention by group, if there were any."""
    by_group = {
        group.name: [launch for cell in group.cells for launch in numbers.get(cell, ())] for group in run.plan.groups
    }
    return {name: effect for name, launches in by_group.items() if (effect := find_contention(launches))}


def _estimate_mean_error(launches: Sequence[Launch]) -> float:
    """Return the standard error of a launch mean, estimated from the launch's samples; 0 if it can't be estimated."""
    return (Times(launches).within or 0.0) / math.sqrt(fmean(len(launch.samples) or 1 for launch in launches))


def _count_blocks(launches: Sequence[Launch]) -> dict[int, Counter[int]]:
    """Return, by round, the number of launches in each block."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for launch in launches:
        counts[launch.round][launch.block] += 1
    return counts
