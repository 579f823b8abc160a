"""What a history holds: the summary of a run, and series of points over many of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model.launch import Status
from harness.model.run import Machine
from harness.model.scenario import STEP

SCHEMA = 1

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Software:
    """What an environment was made of: a hash of its `pins`, which map package to version, and the image that ran."""

    lock: str
    image: str
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """A scenario as it was measured: a hash of its own files, and its title."""

    hash: str
    title: str


@dataclass(frozen=True, slots=True)
class Measurer:
    """A machine that measured a run or a part of it: its identity, and what makes its times what they are.

    `driver` is the GPUs' models and their driver, empty for a run on the CPU.
    """

    machine: Machine
    cpu: str = ""
    cores: int = 0
    system: str = ""
    kernel: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class CellPoint:
    """What a run says of one cell.

    `machine` is the id of the one that measured it. `reference` is the environment and `against` the axes of the cell
    that its group is set against, empty of that cell itself and where there is none. `ratio` is log(time of the cell /
    time of its reference), above 0 where the cell takes longer, the mean over `rounds` of the paired log-ratios, and
    `low` to `high` its 95 % interval; None where there is no such number. `seconds` are a step's, with their interval:
    for drawing only.
    """

    machine: str
    scenario: str
    device: str
    axes: Mapping[str, str]
    environment: str
    status: Status
    reference: str = ""
    against: Mapping[str, str] = field(default_factory=dict)
    quantity: str = STEP
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    seconds: float | None = None
    seconds_low: float | None = None
    seconds_high: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a history keeps of a run.

    `started` is ISO 8601, UTC; `commit` the project's; `reference` the environment that the others are set against;
    `way` says what else makes times incomparable: cores, clock, and how rounds were interleaved. `kit` is a hash of the
    worker's files. `software` is by environment, `scenarios` by name; `merged` are the ids of the runs that it was made
    of, empty where it was measured as one.
    """

    run: str
    started: str
    harness: str
    commit: str
    suite: str
    margin: float
    way: str
    reference: str
    kit: str
    machines: Sequence[Measurer]
    software: Mapping[str, Software]
    scenarios: Mapping[str, Measured]
    points: Sequence[CellPoint] = ()
    merged: Sequence[str] = ()
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What is the same throughout a series: points of different keys are never compared.

    `machine` is an id. `axes` and `against` are sorted (axis, value) pairs; `against` are those of the reference's
    cell. `way` as in `Summary`.
    """

    machine: str
    scenario: str
    device: str
    axes: Pairs
    environment: str
    reference: str
    against: Pairs = ()
    way: str = ""
    quantity: str = STEP

    @property
    def cell(self) -> str:
        """The cell as reports name it: `step tf2.0 cpu call=fit mode=eager`."""
        return " ".join(
            [self.scenario, self.environment, self.device, *(f"{axis}={value}" for axis, value in self.axes)]
        )

    @property
    def versus(self) -> str:
        """The reference, with those of its axes that differ from the cell's: `tf1.14 mode=graph`; empty without one."""
        differing = [f"{axis}={value}" for axis, value in self.against if (axis, value) not in self.axes]
        return " ".join([self.reference, *differing]) if self.reference else ""


class Origin(NamedTuple):
    """What a point was measured with: where it changes, so may the number.

    `lock` and `image` are of the environment that is measured, `reference_lock` is of its reference, `scenario` a hash
    of the scenario's files, `machine` the machine's name when it measured.
    """

    driver: str
    kit: str
    scenario: str
    lock: str
    image: str
    reference_lock: str
    machine: str = ""
    harness: str = ""
    commit: str = ""


class Point(NamedTuple):
    """One run's number in a series: `log_ratio`, `low`, `high` and `seconds` as in `CellPoint`."""

    run: str
    started: str
    log_ratio: float | None
    low: float | None
    high: float | None
    rounds: int
    seconds: float | None
    seconds_low: float | None
    seconds_high: float | None
    status: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one key in the order in which their runs began."""

    key: Key
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Entry:
    """A run of a history: what is known of it beside its points, of which it has `points`."""

    run: str
    started: str
    machines: Sequence[Machine]
    suite: str
    reference: str
    points: int


@dataclass(frozen=True, slots=True)
class Note:
    """Words that someone put to a moment: ISO 8601, a date or an instant in UTC."""

    when: str
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What measuring both sides again said of a change: `confirmed`, or refuted.

    `key` is the series', `since` the run that the change was seen to begin with, `suspects` what differed there.
    `run` is the run that measured both sides, `when` its start; `ratio` is time(after) / time(before) there, from `low`
    to `high`.
    """

    key: Key
    since: str
    suspects: Sequence[str]
    confirmed: bool
    run: str
    when: str
    ratio: float
    low: float
    high: float
