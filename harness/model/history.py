"""The data of a history: the summaries of runs, and time series over many runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from harness.model.launch import Status
from harness.model.numbers import ROUNDS, SAMPLE, Amount, Seconds, Within
from harness.model.run import Machine
from harness.model.scenario import STEP

#: Version 2 stores each point as a list of its values. Version 1, with the names of the values, can be read too.
SCHEMA = 2

Pairs = tuple[tuple[str, str], ...]

#: The largest absolute value of a log ratio: the log of the longest over the shortest possible sample.
_MOST_LOG_RATIO = math.log(SAMPLE.most / SAMPLE.least)

LogRatio = Annotated[float, Within(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)]


@dataclass(frozen=True, slots=True)
class SeriesSoftware:
    """The software of an environment: the image that ran, its `pins` (package to version), and a hash of them (`lock`).

    - `version`: the environment with exact versions, as a value of -e. For a release line, it differs between runs.
    - `commit`: the commit of its TensorFlow, if TensorFlow reports it (`tf.version.GIT_VERSION`).
    """

    lock: str
    image: str
    pins: Mapping[str, str]
    version: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """A measured version of a scenario: a hash of its files (without the kit's files), and its title."""

    hash: str
    title: str


@dataclass(frozen=True, slots=True)
class Measurer:
    """A machine that measured a run or a part of it: its identity, and facts that affect its times.

    `driver` contains the models of the GPUs and their driver. It is empty for a run on the CPU.
    """

    machine: Machine
    cpu: str = ""
    cores: int = 0
    system: str = ""
    kernel: str = ""
    driver: str = ""


class CellPoint(NamedTuple):
    """The result of one cell in one run. In a file, it is a list, which is short and fast to read.

    - `machine`: the id of the machine that measured it.
    - `reference`, `against`: environment and axes of the baseline cell. They are empty for the baseline cell itself,
      and if there is no baseline cell.
    - `ratio`: log(time of the cell / time of its baseline), above 0 if the cell takes longer. It is the mean of the
      paired log ratios over a number of `rounds`. `low` to `high` is the 95 % interval. Without a result, all are None.
    - `seconds`: the time per step, with its interval. It is only used in charts.
    - `reason`: why the cell has no result, if it has none.
    - `calls`: the exact number of calls per step, of Python and C functions (analysis/work_counts.py), if it is known.
    """

    machine: str
    scenario: str
    device: str
    axes: Mapping[str, str]
    environment: str
    status: Status
    reference: str = ""
    against: Mapping[str, str] = {}
    quantity: str = STEP
    ratio: LogRatio | None = None
    low: LogRatio | None = None
    high: LogRatio | None = None
    rounds: Annotated[int, ROUNDS] = 0
    seconds: Seconds | None = None
    seconds_low: Seconds | None = None
    seconds_high: Seconds | None = None
    reason: str = ""
    calls: Amount | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The data that a history stores about a run.

    `started` is ISO 8601, UTC. `commit` is the commit of the project. `reference` is the baseline environment. `way`
    lists other properties of the measurement: cores, clock, and how rounds were interleaved. If they differ, times
    can't be compared. `kit` is a hash of the worker's files. An environment of a release line has the name of the line.
    The keys of `software` are environments, with `NAME:gpu` for the GPU in a run on both devices. The keys of
    `scenarios` are names of scenarios. `merged` contains the ids of the runs that were merged into this one, or is
    empty.
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
    software: Mapping[str, SeriesSoftware]
    scenarios: Mapping[str, MeasuredSeries]
    points: Sequence[CellPoint] = ()
    merged: Sequence[str] = ()
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The key of a time series. Points with different keys are never compared.

    `machine` is an id. `environment` and `reference` are release lines (`tf-nightly`) or names of environments. `axes`
    and `against` are sorted (axis, value) pairs of the cell and of its baseline cell. `way` is as in `Summary`.
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
        """The name of the cell in reports: `step tf2.0 cpu call=fit mode=eager`."""
        return " ".join(
            [self.scenario, self.environment, self.device, *(f"{axis}={value}" for axis, value in self.axes)]
        )

    @property
    def versus(self) -> str:
        """The baseline, with the axis values that differ from the cell's: `tf1.14 mode=graph`; or empty."""
        differing_values = [f"{axis}={value}" for axis, value in self.against if (axis, value) not in self.axes]
        return " ".join([self.reference, *differing_values]) if self.reference else ""


class Origin(NamedTuple):
    """The software and the machine of a point. If one of these fields changes, the result may change too.

    `lock`, `image` and `version` (the exact versions, as a value of -e) describe the measured environment.
    `reference_lock` and `reference_version` describe its baseline. `scenario` is a hash of the scenario's files,
    and `machine` is the machine's name at the time of the run.
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
    version: str = ""
    reference_version: str = ""


class SeriesPoint(NamedTuple):
    """The result of one run in a series. `log_ratio` is `ratio` of `CellPoint`, and other fields have its names."""

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
    reason: str = ""
    calls: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one key, in the order in which their runs started."""

    key: Key
    points: Sequence[SeriesPoint]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A run in a history. `points` is the number of its points."""

    run: str
    started: str
    machines: Sequence[Machine]
    suite: str
    reference: str
    points: int


@dataclass(frozen=True, slots=True)
class Note:
    """A user's note about a point in time. `when` is a date or an instant in UTC, in ISO 8601."""

    when: str
    text: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of measuring both sides of a change again: the change is `confirmed`, or refuted.

    - `key`: the series. `since`: the first run with the change. `suspects`: the other changes in that run.
    - `run`: the run that measured both sides. `when`: the start of that run.
    - `ratio`: time(after) / time(before) in that run, with the interval from `low` to `high`.
    - `work`: how the exact counts of calls per step changed, and in which functions, if they are known.
    - `command`: the command that repeats the comparison. It is empty in some decisions of earlier harness versions.

    If the series is a release line:

    - `versions`: the measured versions before and after the change, as values of -e.
    - `pair`: the last version without the change and the first version with it, as found by a search. `probability`
      is the probability that the pair is correct. Without a search, they are empty.
    - `commits`: the commits of `pair` or of `versions` as text, and the URL of the commits between them.
    - `profile`: the run that profiled both versions. `functions`: the functions whose own time changed most, each with
      its seconds per step before and after.
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
    versions: Sequence[str] = field(default_factory=list)
    pair: Sequence[str] = field(default_factory=list)
    probability: float | None = None
    commits: Sequence[str] = field(default_factory=list)
    profile: str = ""
    functions: Sequence[tuple[str, float, float]] = field(default_factory=list)
    command: Sequence[str] = field(default_factory=list)
    work: str = ""

    @property
    def sides(self) -> Sequence[str]:
        """The closest known versions before and after the change, as values of -e; empty without a release line."""
        return self.pair or self.versions
