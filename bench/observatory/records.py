"""The files of the observatory: nightly series (series.json) and confirmed steps (steps.json), checked when read."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from bench.observatory.wheels import find_day
from harness.model.errors import DamagedError

FOLDER = Path(__file__).parent
SERIES, STEPS, COUNTS, LAUNCHES, MACHINES = (
    FOLDER / name for name in ("series.json", "steps.json", "counts.json", "launches.tar.xz", "machines")
)

#: The state of a step that still exists in the newest wheel. Other states begin with FIXED.
PRESENT, FIXED = "present", "fixed in "

T = TypeVar("T")


class _Record:
    """A record that refuses unknown names in its file."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class NightlyPoint(_Record):
    """A nightly run: the wheel of a day, and the ratio of its time to the time with the baseline.

    Without an interval (in a run with one round), `low` and `high` are None.
    """

    day: str
    wheel: str
    ratio: float
    low: float | None
    high: float | None
    seconds: float
    baseline_seconds: float
    run: str


@dataclass(frozen=True, slots=True)
class NightlySeries(_Record):
    """The nightly runs of one cell on one machine, sorted by day."""

    scenario: str
    axes: dict[str, str]
    line: str
    baseline: str
    machine: str
    points: list[NightlyPoint]

    @property
    def name(self) -> str:
        """The cell and the line, such as `train_on_batch network=lstm, tf2.21+keras-nightly`."""
        return name_series(self.scenario, self.axes, self.line)


@dataclass(frozen=True, slots=True)
class ChangedFunction(_Record):
    """A function whose exact number of calls per step changed."""

    name: str
    file: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Reverted(_Record):
    """The time with the old code put back into the wheel after the step ÷ the time with the wheel before it."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ConfirmedStep(_Record):
    """A change between two successive wheels, confirmed side by side."""

    series: str
    scenario: str
    axes: dict[str, str]
    line: str
    before: str
    after: str
    ratio: float
    low: float
    high: float
    posterior: float
    day: str
    measured: str
    machine: str
    functions: list[ChangedFunction]
    files: list[str]
    commits: str
    cause: str
    reverted: Reverted | None
    issue: str
    state: str
    command: str
    report: str

    @property
    def anchor(self) -> str:
        """The anchor of the step on the pages. It stays the same while the wheels do."""
        return (
            "-".join([self.scenario, *self.axes.values(), self.after])
            .replace(" ", "-")
            .replace("(", "")
            .replace(")", "")
        )

    @property
    def is_present(self) -> bool:
        """Whether the newest measured wheel still has the step."""
        return self.state == PRESENT

    @property
    def is_slow(self) -> bool:
        """Whether the newest measured wheel is slower because of the step."""
        return self.is_present and self.ratio > 1.0

    @property
    def title(self) -> str:
        """A sentence with the cell, the ratio and the wheel."""
        return f"{name_cell(self.scenario, self.axes)} takes {self.ratio:.3g} times as long since {self.after}"

    @property
    def comparison(self) -> str:
        """The command that compares the two wheels, for a bundle."""
        axes = [word for axis, value in self.axes.items() for word in ("-a", f"{axis}={value}")]
        wheels = f"{self.line}=={self.before},{self.line}=={self.after}"
        return shlex.join(["harness", "matrix", "-s", self.scenario, *axes, "-e", wheels])


def name_cell(scenario: str, axes: dict[str, str]) -> str:
    """Return the name of a cell, such as `train_on_batch network=lstm`."""
    return " ".join([scenario, *(f"{axis}={value}" for axis, value in axes.items())])


def name_series(scenario: str, axes: dict[str, str], line: str) -> str:
    """Return the name of a series."""
    return f"{name_cell(scenario, axes)}, {line}"


def read_series(path: Path = SERIES) -> list[NightlySeries]:
    """Return the nightly series. Raises DamagedError for an invalid file."""
    series = _read(list[NightlySeries], path)
    for place, one in enumerate(series):
        days = [point.day for point in one.points]
        if days != sorted(days):
            raise DamagedError(path, f"{place}.points: the days of {one.name} aren't sorted")
        for point in one.points:
            _check_day(path, f"{one.name}, {point.run}", point.day)
            _check_interval(path, f"{one.name}, {point.run}", point.ratio, point.low, point.high)
    return series


def read_steps(path: Path = STEPS) -> list[ConfirmedStep]:
    """Return the confirmed steps, the newest first. Raises DamagedError for an invalid file."""
    steps = _read(list[ConfirmedStep], path)
    for step in steps:
        _check_day(path, f"day of {step.anchor}", step.day)
        _check_day(path, f"measured of {step.anchor}", step.measured)
        _check_interval(path, step.anchor, step.ratio, step.low, step.high)
        if step.state != PRESENT and not step.state.startswith(FIXED):
            raise DamagedError(path, f"state of {step.anchor}: {step.state!r} is neither 'present' nor 'fixed in …'")
        if not 0.0 <= step.posterior <= 1.0:
            raise DamagedError(path, f"posterior of {step.anchor}: {step.posterior} isn't a probability")
    anchors = [step.anchor for step in steps]
    if repeated := sorted({anchor for anchor in anchors if anchors.count(anchor) > 1}):
        raise DamagedError(path, f"it has the step {repeated[0]} twice")
    return sorted(steps, key=lambda step: step.day, reverse=True)


def read_counts(path: Path = COUNTS) -> list[NightlySeries]:
    """Return the numbers of calls per step as series: `ratio` is the number ÷ the number with the first wheel.

    `seconds` of a point is the number of calls, which is the same on each machine. Empty if there is no file.
    """
    document = json.loads(path.read_text()) if path.exists() else {"series": {}}
    series = []
    for name, text in document["series"].items():
        place, _, axes = text.partition("?")
        wheels = [(each["wheel"], each["calls"][name]) for each in document["wheels"] if each["calls"][name]]
        first = wheels[0][1]
        points = [
            NightlyPoint(find_day(wheel), wheel, round(calls / first, 4), None, None, calls, first, "")
            for wheel, calls in wheels
        ]
        series.append(NightlySeries(Path(place).stem, json.loads(axes), document["line"], wheels[0][0], "", points))
    return series


def write_series(series: Sequence[NightlySeries], path: Path = SERIES) -> None:
    """Write the nightly series, with a line for each point, so that a diff shows the new points."""
    texts = []
    for one in sorted(series, key=lambda one: (one.name, one.machine)):
        document = asdict(one)
        points = ",\n  ".join(json.dumps(point) for point in document.pop("points"))
        texts.append(f'{json.dumps(document)[:-1]}, "points": [\n  {points}\n]}}')
    path.write_text("[" + ",\n".join(texts) + "]\n")


def _read(kind: type[T], path: Path) -> T:
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DamagedError(path, f"{place}: {first['msg']}") from None


def _check_day(path: Path, place: str, day: str) -> None:
    try:
        date.fromisoformat(day)
    except ValueError:
        raise DamagedError(path, f"{place}: {day!r} isn't a date") from None


def _check_interval(path: Path, place: str, ratio: float, low: float | None, high: float | None) -> None:
    if ratio <= 0.0 or not (low or ratio) <= ratio <= (high or ratio):
        raise DamagedError(path, f"{place}: {ratio} isn't a ratio in its interval, {low} to {high}")
