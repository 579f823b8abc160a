"""Runs: one invocation of the matrix, what was asked and on what machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.model.backend import BackendFacts
from harness.model.defaults import MARGIN
from harness.model.environment import Environment
from harness.model.launch import Clock, Interleave, Limits, Role, Sampling
from harness.model.numbers import Count, Rounds, Seconds, Share
from harness.model.scenario import MACHINE, Cell, Scenario
from harness.model.texts import joined

SCHEMA = 1

#: The version of the rules of docs/explanation/how-it-measures.md, by which verdicts are made. Runs that do not say
#: theirs have the first: four rounds, no residual as a prior, nothing subtracted from the time. By the second, CPU
#: contention was subtracted only if ticks showed it. By the third, the residual was of all cells but one that scattered
#: unlike the others. By the fourth, a comparison learned from its own two cells however they scattered, intervals did
#: not allow for a wrong correction of CPU contention, and a clock that falls in every launch was taken for a trend.
RULES = 5


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that will be compared with one another.

    `name` is unique in a plan; `axes` are the values that all of its cells share. `control` is the cell that the others
    are compared with; None if nothing is compared, or if nothing depends on the A/A control. If the group is
    `controlled`, every round launches that cell twice, so that the run shows what it calls a difference between two
    identical cells: one such group is enough for a run. `piloted`: round 0 launches some of it, if the plan's does.
    `machine` is the id of the machine that measured it, in a run that was merged from several machines' runs; otherwise
    empty. `of` is what its scenario compares of launches beside what they time: phases, peak memory.
    """

    name: str
    scenario: str
    device: str
    axes: Mapping[str, str]
    cells: Sequence[Cell]
    control: Cell | None = None
    piloted: bool = True
    machine: str = ""
    of: Sequence[str] = ()
    controlled: bool = True

    @property
    def slots(self) -> list[tuple[Cell, Role]]:
        """What one round launches: every cell, and the control once more."""
        measured = [(cell, Role.MEASURE) for cell in self.cells]
        return [*measured, (self.control, Role.CONTROL)] if self.control and self.controlled else measured


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A cell that cannot be measured, known before any launch, with the reason and what to do."""

    cell: Cell
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class StandIn:
    """The run measures `environment` in place of `role`, which the GPU model `card` cannot run; `reason` is a clause.

    `is_itself_too`: the run has `environment` in its own place as well. `pins` are the packages of `role`, by which
    headers pick axis values. `passed_over` are those before it in the suite's list that this machine cannot have, with
    the reason, a sentence.
    """

    environment: str
    role: str
    card: str
    reason: str
    is_itself_too: bool = False
    pins: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, str] = field(default_factory=dict)


def stood_in(stand_ins: Sequence[StandIn]) -> str:
    """Which environments stand in for which, and why, in a paragraph; empty without any."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for each in stand_ins:
        places.setdefault((each.card, each.reason), {}).setdefault(each.environment, []).append(each.role)
    told = []
    for (card, reason), of in places.items():
        (first, roles), *others = of.items()
        taken = [f"{first} stands in for {joined(roles)}", *(f"{name} for {joined(them)}" for name, them in others)]
        places_taken = ", and ".join(filter(None, [", ".join(taken[:-1]), taken[-1]]))
        told.append(f"{places_taken}, which the {card} does not run ({reason}).")
    passed = {name: (each, why) for each in stand_ins for name, why in each.passed_over.items()}
    told += [
        f"{name} would stand in for {each.role} before {each.environment}, and is not available here: {why}"
        for name, (each, why) in passed.items()
    ]
    roles_of: dict[str, list[str]] = {}
    for each in stand_ins:
        own = [each.environment] if each.is_itself_too else []
        roles_of[each.environment] = [*roles_of.get(each.environment, own), each.role]
    told += [
        f"So no releases are compared in place of {joined(roles)}." for roles in roles_of.values() if len(roles) > 1
    ]
    return " ".join(told)


class StopReason(StrEnum):
    """Why a group got no more rounds."""

    ROUNDS = "rounds"
    PRECISION = "precision"
    BUDGET = "budget"
    OBSERVED = "observed"
    NO_NUMBERS = "no numbers"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Stop:
    """How a group ended: why, and after how many rounds."""

    reason: StopReason
    rounds: Rounds


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of `of` of a plan (from 1), whose other parts run elsewhere.

    `plan` is the digest of the whole plan (harness/plan/shards.py), the same in each of its shards, and `elsewhere`
    says in which shards its other groups are.
    """

    number: int
    of: int
    plan: str = ""
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do: groups of cells in order, rounds, and the seed that orders each round.

    `rounds` is the most that are measured. With `precision` (0.02: a ratio is known to ± 2 %) a group ends before that
    when each of its comparisons is known as well, or its verdict is settled. `budget_seconds` of launching end all
    groups equally far, or one after the other (runner/schedule.py; of claims, runner/spending.py). If `budget_is_wish`,
    as that of a suite is, every group gets the rounds that a verdict needs, even if they take longer. `margin` (0.03)
    is the difference below which two cells count as the same. With `profile_calls` it is no measurement (`rounds` is
    0): every cell is launched once, and its first call and so many later ones are profiled. `interleave` says how the
    cells of a round are measured, and `clock` what of them. `stand_ins` are the environments that were taken in place
    of a suite's own. `compiled` says, in a few words, how each environment runs of whose GPU code the driver compiles
    some or all. `lock_clocks` is what the clocks of the GPUs are locked to meanwhile: MHz, or BASE_CLOCK; empty where
    the run does not lock them. `piloted`: round 0 is launched; a small run whose lengths are all given may do without.
    `claims` are the issues whose claims alone are measured, such as T#40261: without a `precision`, a group ends when
    it tells of each of them what it can (analysis/sizing.py). `shard`: it is part of a larger plan; None where it is
    all of one.
    """

    groups: Sequence[Group]
    rounds: Rounds
    seed: int
    sampling: Sampling
    limits: Limits
    unavailable: Sequence[Unavailable] = ()
    precision: Share | None = None
    budget_seconds: Seconds | None = None
    margin: Share = MARGIN
    profile_calls: Count | None = None
    interleave: Interleave = Interleave.LAUNCHES
    clock: Clock = Clock.WALL
    stand_ins: Sequence[StandIn] = ()
    compiled: Mapping[str, str] = field(default_factory=dict)
    lock_clocks: str = ""
    piloted: bool = True
    claims: Sequence[str] = ()
    shard: Shard | None = None
    budget_is_wish: bool = False

    @property
    def ends_early(self) -> bool:
        """Whether a group ends before `rounds` where its intervals are narrow enough."""
        return self.precision is not None or bool(self.claims)

    @property
    def is_spent_by_group(self) -> bool:
        """Whether its budget is spent group by group, rather than round by round over all groups."""
        return bool(self.claims) and self.budget_seconds is not None

    @property
    def compiled_code(self) -> str:
        """Which environments run how, of whose GPU code the driver compiles some; empty without any."""
        names: dict[str, list[str]] = {}
        for name, way in self.compiled.items():
            names.setdefault(way, []).append(name)
        return "; ".join(f"{joined(alike)}: {way}" for way, alike in names.items())

    @property
    def cells(self) -> list[Cell]:
        """Every cell that will be launched, group by group."""
        return [cell for group in self.groups for cell in group.cells]

    def slots(self, group: Group, number: int) -> list[tuple[Cell, Role]]:
        """What round `number` of the group launches, and as what; 0 is the pilot.

        Two pilots of the control show what launches of one thing differ by. That sets lengths, and where none is left
        to the pilot, it tells nothing; of the others, too, it then launches only what it must. Nor is it what launches
        that take turns differ by.
        """
        if number or not (self.piloted and group.piloted):
            return group.slots if number else []
        both = self.sampling.is_open and not self.in_turns(group)
        return [(cell, Role.PILOT) for cell, role in group.slots if role is Role.MEASURE or both]

    def in_turns(self, group: Group) -> bool:
        """Whether the launches of a round of the group take turns."""
        return self.interleave is Interleave.TURNS and len(group.slots) > 1

    def launches(self, number: int) -> int:
        """How many launches round `number` of every group has at most; 0 is the pilot."""
        return sum(len(self.slots(group, number)) for group in self.groups)

    @property
    def all_launches(self) -> int:
        """How many launches the pilot and all rounds have at most, where none is done again."""
        return self.launches(0) + self.rounds * self.launches(1)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that measured: a random id that is kept on it, and the name that someone gave it."""

    id: str
    name: str = ""

    @property
    def shown(self) -> str:
        """Its name, or its id where it has none."""
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One machine of a merged run: which it is, its backend, and what launches might use, as the runs there say.

    `label` is what the machine is called among the others, the value of its cells' axis MACHINE; `runs` are the ids of
    those runs.
    """

    machine: Machine
    label: str
    host: Mapping[str, Any]
    backend: BackendFacts
    limits: Limits = field(default_factory=Limits)
    runs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """run.json: everything a report needs beside the launches.

    `started` is ISO 8601, UTC; `command` is what was typed; `reference` is the environment that the others are set
    against; `folder` is the run's folder as seen from where the command was typed; `host` are facts for a reader;
    `images` maps environment to what runs there (an image's id or a lock's hash); `sources` maps scenario to the hash
    of its files and the kit's, so that a changed one is refused on resuming; `own` maps it to the hash of its own files
    alone, and `kit` is that of the kit's, both empty in runs older than these; `scripts` maps scenario to its file's
    text, for those from outside the project alone, so that who has only the report can run it again; `stops` maps group
    to how it ended, once it has; `rules` are those of `RULES` for which it was made; `machine` is None in runs that are
    older than machines' ids, or of one that cannot keep an id. A run that was merged from those of several machines has
    these in `machines`, an axis MACHINE in its scenarios and cells, and groups that say whose numbers they have; its
    `host` is empty, and its `backend` that of the first. `merged` are the ids of the runs that it was made
    of, and `absent` the groups of each shard, such as 3/5, of which there was none. `slots` is in how many parts of its
    machine groups were measured at once. `looks` are the rounds of each group at the times when the run had been
    reported and was then continued beyond its plan, oldest first.
    """

    id: str
    started: str
    command: Sequence[str]
    harness: str
    plan: Plan
    reference: str
    environments: Sequence[Environment]
    scenarios: Sequence[Scenario]
    backend: BackendFacts
    host: Mapping[str, Any]
    folder: str = ""
    commit: str = ""
    suite: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    stops: Mapping[str, Stop] = field(default_factory=dict)
    rules: int = 1
    own: Mapping[str, str] = field(default_factory=dict)
    kit: str = ""
    machine: Machine | None = None
    machines: Sequence[MachineFacts] = field(default_factory=list)
    merged: Sequence[str] = field(default_factory=list)
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    slots: Count = 1
    looks: Sequence[Mapping[str, Rounds]] = field(default_factory=list)
    schema: int = SCHEMA

    def of_machine(self, facts: MachineFacts) -> "Run":
        """What a merged run has of one of its machines, as a run of that alone."""
        groups = [group for group in self.plan.groups if group.machine == facts.machine.id]
        names = {group.name for group in groups}
        unavailable = [each for each in self.plan.unavailable if each.cell.axes.get(MACHINE) == facts.label]
        return replace(
            self,
            plan=replace(self.plan, groups=groups, unavailable=unavailable, limits=facts.limits),
            scenarios=[replace(each, axes={**each.axes, MACHINE: [facts.label]}) for each in self.scenarios],
            stops={name: stop for name, stop in self.stops.items() if name in names},
            host=facts.host,
            backend=facts.backend,
            machine=facts.machine,
            machines=(),
        )

    @property
    def shown_folder(self) -> str:
        """The run's folder as commands name it: where it usually is, if that was not recorded."""
        return self.folder or f"results/{self.id}"
