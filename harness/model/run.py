"""Runs: the record of one measurement, with its plan and its machine."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.model.backend import BackendFacts
from harness.model.defaults import MARGIN
from harness.model.environment import Device, Environment
from harness.model.launch import Clock, Interleave, Limits, Role, Sampling
from harness.model.numbers import Count, Cpu, Rounds, Seconds, Share
from harness.model.scenario import MACHINE, PERCENTILES, Cell, Scenario
from harness.model.texts import joined

SCHEMA = 1

#: The version of the rules for verdicts. docs/dev/analysis-notes.md lists the differences of earlier versions. Runs
#: without a version have version 1.
RULES = 11


@dataclass(frozen=True, slots=True)
class Group:
    """Cells that are compared with each other.

    - `name`: unique in a plan.
    - `device`: `cpu` or `gpu`, or both with a comma if cells on both devices are compared.
    - `axes`: the axis values that all cells share.
    - `control`: the baseline cell; None if nothing is compared.
    - `controlled`: every round launches the baseline cell twice, so that the run shows the difference between two
      identical cells. One such group is enough for a run.
    - `piloted`: the pilot round (round 0) launches some of its cells, if the plan has a pilot round.
    - `machine`: in a merged run, the id of the machine that measured the group; otherwise empty.
    - `of`: the compared quantities other than the time per step, such as phases and peak memory.
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
    def times_single_steps(self) -> bool:
        """Whether each sample is a single step, because percentiles are compared."""
        return not PERCENTILES.keys().isdisjoint(self.of)

    @property
    def slots(self) -> list[tuple[Cell, Role]]:
        """The launches of one round: every cell, and the control cell a second time if the group is controlled."""
        measured = [(cell, Role.MEASURE) for cell in self.cells]
        return [*measured, (self.control, Role.CONTROL)] if self.control and self.controlled else measured


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A cell that can't be measured, with the reason and advice. Both are known before any launch."""

    cell: Cell
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A fallback: the run measures `environment` instead of `role`, which the GPU model `card` can't run.

    If `card` is empty, this machine can't create `role`. `reason` is a clause. `is_itself_too`: the suite also contains
    `environment` as itself. `pins` are the packages of `role`, by which headers pick axis values. `caveat` is a
    sentence about what the fallback can't show, or empty.
    """

    environment: str
    role: str
    card: str
    reason: str
    is_itself_too: bool = False
    pins: Mapping[str, str] = field(default_factory=dict)
    caveat: str = ""


def describe_fallbacks(stand_ins: Sequence[StandIn]) -> str:
    """Return a paragraph about the fallback environments and the reasons, or "" if there are none."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for substitute in stand_ins:
        places.setdefault((substitute.card, substitute.reason), {}).setdefault(substitute.environment, []).append(
            substitute.role
        )
    sentences = []
    for (card, reason), replaced in places.items():
        replacements = [f"{name} replaces {joined(roles)}" for name, roles in replaced.items()]
        clause = ", and ".join(filter(None, [", ".join(replacements[:-1]), replacements[-1]]))
        sentences.append(f"{clause}, which {f'the {card}' if card else 'this machine'} cannot run ({reason}).")
    roles_of: dict[str, list[str]] = {}
    for substitute in stand_ins:
        names = [substitute.environment] if substitute.is_itself_too else []
        roles_of[substitute.environment] = [*roles_of.get(substitute.environment, names), substitute.role]
    sentences += [f"So this run does not compare {joined(roles)}." for roles in roles_of.values() if len(roles) > 1]
    sentences += dict.fromkeys(stand_in.caveat for stand_in in stand_ins if stand_in.caveat)
    return " ".join(sentences)


class StopReason(StrEnum):
    """The reason why a group got no further rounds."""

    ROUNDS = "rounds"
    PRECISION = "precision"
    BUDGET = "budget"
    OBSERVED = "observed"
    NO_NUMBERS = "no numbers"
    INTERRUPTED = "interrupted"

    @property
    def is_final(self) -> bool:
        """Whether the group gets no further rounds, even if the run is resumed."""
        return self in (StopReason.PRECISION, StopReason.OBSERVED, StopReason.NO_NUMBERS)


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason why a group ended, and its number of rounds."""

    reason: StopReason
    rounds: Rounds


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a plan: part `number` (from 1) of `of` parts. The other parts run elsewhere.

    `plan` is the digest of the whole plan (harness/plan/shards.py), which is the same in all shards. `elsewhere` maps
    the groups of other shards to the numbers of their shards.
    """

    number: int
    of: int
    plan: str = ""
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: groups of cells in order, the number of rounds, and the seed that orders each round.

    - `rounds`: the largest number of measured rounds.
    - `precision`: 0.02 for ± 2 %. A group ends as soon as each of its comparisons has this precision or a clear
      verdict.
    - `budget_seconds`: the time after which all groups end. Groups advance equally, or one after the other
      (runner/schedule.py; for claims, runner/budget.py).
    - `budget_is_wish`: every group gets the rounds that a verdict needs, even if that takes longer than the budget.
      True for the budget of a suite.
    - `margin`: 0.03 for 3 %. Two cells with a smaller difference count as the same.
    - `profile_calls`: nothing is measured (`rounds` is 0). Every cell has one launch, which profiles its first call and
      this number of later calls.
    - `interleave`, `clock`: how the cells of a round are measured, and which time is measured.
    - `stand_ins`: the fallbacks for environments of a suite.
    - `compiled`: a short description for each environment that the GPUs don't run natively. Either the driver compiles
      its GPU code, or it is tried although it probably can't run.
    - `lock_clocks`: the locked clock of the GPUs: MHz, or BASE_CLOCK; empty if the run doesn't lock clocks.
    - `piloted`: the plan has a pilot round (round 0). A small run with fixed lengths may omit it.
    - `claims`: the issues, such as T#40261, whose claims are the only ones that the run measures. Without a
      `precision`, a group ends when the outcomes of these claims are clear (analysis/looks.py).
    - `shard`: the part of a larger plan; None for a whole plan.
    - `settled`: groups with fewer rounds, each with its number: those that `--resume --unsettled` doesn't continue,
      and those that vary little in the history.
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
    settled: Mapping[str, Rounds] = field(default_factory=dict)

    @property
    def devices(self) -> list[Device]:
        """The devices of all cells, including unavailable cells. The first device is the baseline."""
        names = [name for group in self.groups for name in group.device.split(",")]
        return [Device(name) for name in dict.fromkeys([*names, *(entry.cell.device for entry in self.unavailable)])]

    @property
    def ends_early(self) -> bool:
        """Whether a group ends before `rounds` rounds if its intervals are narrow enough."""
        return self.precision is not None or bool(self.claims)

    @property
    def is_spent_by_group(self) -> bool:
        """Whether the budget is spent on one group after the other, rather than round by round on all groups."""
        return bool(self.claims) and self.budget_seconds is not None

    @property
    def single_steps(self) -> list[str]:
        """The names of the groups whose samples are single steps."""
        return [group.name for group in self.groups if group.times_single_steps]

    @property
    def compiled_code(self) -> str:
        """A description of the environments that the GPUs don't run natively; empty if there are none."""
        names: dict[str, list[str]] = {}
        for name, way in self.compiled.items():
            names.setdefault(way, []).append(name)
        return "; ".join(f"{joined(members)}: {way}" for way, members in names.items())

    @property
    def cells(self) -> list[Cell]:
        """Every cell that will be launched, group by group."""
        return [cell for group in self.groups for cell in group.cells]

    def slots(self, group: Group, number: int) -> list[tuple[Cell, Role]]:
        """Return the cells and roles that round `number` of the group launches; 0 is the pilot round.

        Two pilots of the control cell show how much launches of one cell differ. This helps to determine how long
        launches warm up and measure. If these lengths are fixed, or if launches are interleaved, there is no second
        pilot. A settled group has no further rounds.
        """
        if number > self.settled.get(group.name, number):
            return []
        if number or not (self.piloted and group.piloted):
            return group.slots if number else []
        both = self.sampling.is_open and not self.in_turns(group)
        return [(cell, Role.PILOT) for cell, role in group.slots if role is Role.MEASURE or both]

    def needs_pilot(
        self, cell: Cell, group_name: str, started_environments: Collection[str], timed_scopes: Collection[str]
    ) -> bool:
        """Return whether a pilot of the cell is useful.

        If the lengths of warm-up and measurement are fixed, pilots have only two purposes: they read each environment
        from disk once (`started_environments` have had a launch), and show whether a scenario times anything
        (`timed_scopes` have had a pilot with times; see `get_pilot_scope`).
        """
        is_known = cell.environment in started_environments and self.get_pilot_scope(cell, group_name) in timed_scopes
        return self.sampling.is_open or not is_known

    def get_pilot_scope(self, cell: Cell, group_name: str) -> str:
        """Return what one pilot with times is enough for, if lengths are fixed: the cell's scenario.

        If the budget is strict, it is the group, because the duration of its launches must be known.
        """
        is_strict = self.budget_seconds is not None and not self.budget_is_wish
        return group_name if is_strict else cell.scenario

    def in_turns(self, group: Group) -> bool:
        """Return whether the launches of a round of the group are interleaved.

        Percentiles need hundreds of single steps without breaks, because the first steps after a switch to another
        process are slower. So groups with percentiles aren't interleaved.
        """
        return self.interleave is Interleave.TURNS and len(group.slots) > 1 and not group.times_single_steps

    def launches(self, number: int) -> int:
        """Return the largest number of launches in round `number` of all groups; 0 is the pilot round."""
        return sum(len(self.slots(group, number)) for group in self.groups)

    @property
    def all_launches(self) -> int:
        """The largest number of launches in the pilot round and all other rounds, without repetitions."""
        settled_rounds = {group.name: self.settled.get(group.name, self.rounds) for group in self.groups}
        return self.launches(0) + sum(settled_rounds[group.name] * len(group.slots) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that measured: a random id that is stored on the machine, and the name that a user gave it."""

    id: str
    name: str = ""

    @property
    def shown(self) -> str:
        """The machine's name, or its id if it has no name."""
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One machine of a merged run: its identity, backend and limits, as in the runs on that machine.

    `label` is the machine's name in the merged run: the value of the axis MACHINE in its cells. `runs` are the ids of
    the runs on the machine.
    """

    machine: Machine
    label: str
    host: Mapping[str, Any]
    backend: BackendFacts
    limits: Limits = field(default_factory=Limits)
    runs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """run.json: everything that a report needs besides the launches.

    - `started`: ISO 8601, UTC. `command`: the command line.
    - `folder`: the run's folder, relative to the folder in which the command was started.
    - `reference`: the baseline environment.
    - `host`: facts about the machine, for readers.
    - `images`: the id of the image, or the hash of the lock, for each environment. If the run has an environment on
      both devices, `NAME` is the environment on the CPU, and `NAME:gpu` is the environment on the GPU. `pins` has the
      same keys.
    - `sources`: for each scenario, a hash of its files and of the kit's files. A run can't be resumed if a scenario
      has changed.
    - `own`, `kit`: hashes of each scenario's own files, and of the kit's files; empty in older runs.
    - `scripts`: the text of each scenario from outside the project, so that others can repeat the run.
    - `stops`: the reason why each group ended.
    - `rules`: the version of the rules for verdicts (RULES).
    - `machine`: None in older runs, and if the machine can't store an id.
    - `slots`: the number of worker slots that measured groups at the same time.
    - `slot_cpus`: all CPUs of the run's slot; empty without slots, in merged runs and in older runs.
    - `looks`: for each time the run was continued beyond its plan, the rounds that each group then had; oldest first.

    A run that was merged from the runs of several machines has `machines`. Its scenarios and cells have the axis
    MACHINE, its groups have the id of their machine, `host` is empty, and `backend` is the first machine's backend.
    `merged` contains the ids of the merged runs. `absent` maps each missing shard, such as 3/5, to its groups.
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
    slot_cpus: Sequence[Cpu] = ()
    looks: Sequence[Mapping[str, Rounds]] = field(default_factory=list)
    schema: int = SCHEMA

    def of_machine(self, facts: MachineFacts) -> "Run":
        """Return the part of a merged run that one machine measured, as a run."""
        groups = [group for group in self.plan.groups if group.machine == facts.machine.id]
        names = {group.name for group in groups}
        unavailable = [absence for absence in self.plan.unavailable if absence.cell.axes.get(MACHINE) == facts.label]
        return replace(
            self,
            plan=replace(self.plan, groups=groups, unavailable=unavailable, limits=facts.limits),
            scenarios=[scenario.on_machine(facts.label) for scenario in self.scenarios],
            stops={name: stop for name, stop in self.stops.items() if name in names},
            host=facts.host,
            backend=facts.backend,
            machine=facts.machine,
            machines=(),
        )

    @property
    def unfinished(self) -> list[str]:
        """The names of the groups that were interrupted or haven't ended."""
        stops = [(group.name, self.stops.get(group.name)) for group in self.plan.groups]
        return [name for name, stop in stops if stop is None or stop.reason is StopReason.INTERRUPTED]

    @property
    def shown_folder(self) -> str:
        """The run's folder, for use in commands. If it wasn't recorded, it is `results/` and the run's id."""
        return self.folder or f"results/{self.id}"
