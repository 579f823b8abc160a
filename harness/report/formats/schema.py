"""What `--format json` holds. These dataclasses are its schema, docs/schema/report.v1.schema.json.

Times are seconds. Every cell has a name that identifies it, by which comparisons, answers and reasons refer to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.phases import Spread
from harness.analysis.shape import Shape
from harness.analysis.statistics import Interval

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was asked, and where it ran.

    `folder` is where the run lies, as seen from where `command` was typed. `margin` is the share below which two cells
    count as the same. `cpus` are the CPUs that launches were pinned to; null: all. `stops` tells by group why it ended.
    """

    id: str
    folder: str
    started: str
    command: Sequence[str]
    harness: str
    commit: str
    suite: str
    reference: str
    rounds: int
    seed: int
    margin: float
    precision: float | None
    budget_seconds: float | None
    cpus: Sequence[int] | None
    host: Mapping[str, Any]
    backend: Mapping[str, Any]
    stops: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FindingFacts:
    """One row of an answer: cell `subject` takes `ratio` times as long as cell `base`; `verdict` is of the subject."""

    subject: str
    base: str
    ratio: float
    interval: Interval | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What one column of a table answers, in the report's sentence and as numbers, the lowest ratio first.

    `comparison` is the name that the scenario's header gives it, `along` the axis (or `environment`) that differs.
    """

    text: str
    scenario: str
    comparison: str
    along: str
    findings: Sequence[FindingFacts]


@dataclass(frozen=True, slots=True)
class ControlFacts:
    """The A/A control: how many times as long the second launch of a cell takes as its first, over `groups` groups.

    `lost`: some differences beyond the margin get no verdict; `beyond`: none gets one.
    """

    ratio: float
    interval: Interval | None
    percent: float
    groups: int
    lost: bool
    beyond: bool


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """An environment with its packages; `image` is an image's id or a lock's hash, empty where none was made."""

    name: str
    title: str
    tensorflow: str
    keras: str
    python: str
    image: str
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """A scenario, and the values that its axes can take."""

    name: str
    title: str
    source: str
    axes: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """A launch that counts and gave a number. `disturbed` says how it was, empty where it was not."""

    round: int
    attempt: int
    order: int
    role: str
    started: str
    seconds_per_step: float
    steps: int
    samples: int
    disturbed: str


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One cell: its number with a 95 % interval, and its launches; or its status alone.

    `observations` are what its launches saw that is no time: by name, each value once.

    `phases` are those before the first step, `to_first_step` is their sum; both, `cores` (CPU seconds over wall seconds
    while steps were timed), `cpu_seconds` and `max_rss_bytes` (of the whole launch) are median, p10 and p90 over
    launches. `undone` says how the steps that a launch took and those that the framework counted differ.
    """

    name: str
    scenario: str
    environment: str
    device: str
    axes: Mapping[str, str]
    group: str
    status: str
    seconds_per_step: float | None
    interval: Interval | None
    rounds: int
    launches: Sequence[LaunchFacts]
    shape: Shape | None
    phases: Mapping[str, Spread]
    to_first_step: Spread | None
    cores: Spread | None
    cpu_seconds: Spread | None
    max_rss_bytes: Spread | None
    undone: str
    observations: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class SettlingFacts:
    """What would settle an unclear verdict: so many more rounds, which take about so many seconds."""

    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ComparisonFacts:
    """`cell` against `other`.

    `ratio` is time(other) / time(cell), above 1 where `cell` is faster; its interval is `level` wide. `percent` is
    (longer / shorter - 1) × 100, positive where `cell` is faster, and means nothing where the work differs. `verdict`
    is of `cell`: faster, same, slower, unclear or different work; where it is null, `withheld` says why. `settling` is
    null of an unclear one that no number of rounds settles. `work`: same, not checked or different, with `work_reason`.
    `pythons` are the two interpreters' versions where they differ. `remarks` are the report's own words on all this.
    """

    comparison: str
    along: str
    what: str
    cell: str
    other: str
    rounds: int
    ratio: float
    interval: Interval | None
    level: float
    percent: float
    percent_interval: Interval | None
    verdict: str | None
    withheld: str | None
    settling: SettlingFacts | None
    work: str
    work_reason: str
    pythons: Sequence[str] | None
    remarks: str


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """An axis, or `environment`, taken from its value `base` to `level`."""

    axis: str
    level: str
    base: str


@dataclass(frozen=True, slots=True)
class EffectFacts:
    """What one change does to the time per step, or two together.

    `factor` is time over time, above 1 where it takes longer, on average over the other axes; its interval is `level`
    wide. Of two changes it is the additional factor, beside / alone: the first one's factor is `alone` where the second
    is not made and `beside` where it is, and both together are `together`; these are null of a single change. `verdict`
    is slower, faster, same or unclear; where it is null, `withheld` says why.
    """

    changes: Sequence[ChangeFacts]
    factor: float
    interval: Interval | None
    level: float
    verdict: str | None
    withheld: str | None
    alone: float | None
    beside: float | None
    together: float | None


@dataclass(frozen=True, slots=True)
class AttributionFacts:
    """What accounts for a scenario's times on one device, in the report's sentences and as effects.

    The effects are of every combination of `axes` (the base of each first), with `held` for the other axes: `cells`
    cells, of `of` that have a number, in the `rounds` rounds that all of them have. `unchecked`: of some it is not
    known whether they did the same work.
    """

    text: str
    scenario: str
    device: str
    axes: Mapping[str, Sequence[str]]
    held: Mapping[str, str]
    cells: int
    of: int
    rounds: int
    unchecked: bool
    effects: Sequence[EffectFacts]


@dataclass(frozen=True, slots=True)
class CrossingFacts:
    """A size from which on `after` takes less time.

    The interval is null of a single round. Where `opens_low` or `opens_high` is set, that end of it is only where the
    sweep ends, and on that side of it nothing is shown.
    """

    at: float
    interval: Interval | None
    opens_low: bool
    opens_high: bool
    after: str


@dataclass(frozen=True, slots=True)
class SweepFacts:
    """One comparison along a numeric axis of a scenario: `subject` against `base`, at `sizes` counted in `unit`.

    `axes` are the values of the other axes that name a row. `subject_ahead` and `base_ahead` are from where to where
    one of them is shown to take less time, `unclear` where neither is; `work_reason` says how they did different work,
    and then nothing is looked for.
    """

    scenario: str
    axis: str
    unit: str
    device: str
    axes: Mapping[str, str]
    comparison: str
    what: str
    subject: str
    base: str
    sizes: Sequence[float]
    rounds: int
    crossings: Sequence[CrossingFacts]
    subject_ahead: Sequence[Interval]
    base_ahead: Sequence[Interval]
    unclear: Sequence[Interval]
    work_reason: str


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What a scenario's source states of an observation, in one cell.

    `standing`: as stated, differs, varies (the launches disagree) or not observed; `observed` are the values that
    launches saw, each once.
    """

    scenario: str
    observation: str
    stated: Any
    cell: str
    standing: str
    observed: Sequence[Any]


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """Cells that gave no number for one reason; `partial`: they have one, and some of their launches gave none."""

    status: str
    reason: str
    advice: str
    stderr: str
    partial: bool
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class DisturbedFacts:
    """One attempt at a round of a group that was disturbed, and how; a repeated one is in no number."""

    group: str
    round: int
    reason: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report says, as data. Keys may be added within a version of `schema`."""

    run: RunFacts
    answers: Sequence[AnswerFacts]
    control: ControlFacts | None
    environments: Sequence[EnvironmentFacts]
    scenarios: Sequence[ScenarioFacts]
    cells: Sequence[CellFacts]
    comparisons: Sequence[ComparisonFacts]
    attributions: Sequence[AttributionFacts]
    sweeps: Sequence[SweepFacts]
    statements: Sequence[StatementFacts]
    missing: Sequence[MissingFacts]
    disturbed: Sequence[DisturbedFacts]
    schema: int = SCHEMA


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of `--format json`, by file name."""
    from pydantic import TypeAdapter

    return {
        f"report.v{SCHEMA}.schema.json": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **TypeAdapter(Report).json_schema(),
            "title": "harness report --format json",
        }
    }
