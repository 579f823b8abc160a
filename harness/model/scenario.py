"""Scenarios, as described by the headers of their files; their cells, which are measured; and suites of cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any

from harness.model.defaults import CLAIM_PRECISION
from harness.model.environment import Device
from harness.model.issues import Issue

#: The axis name that headers use for the environments themselves.
ENVIRONMENT = "environment"

#: The axis of a scenario generated from two versions of one scenario (harness/catalog/versions.py), and its values.
SIDE, BEFORE_AND_AFTER = "side", ("base", "head")

#: The axis of scenarios in a merged run of several machines. No header can declare it.
MACHINE = "on machine"

#: The axis with the number of CPU cores of a launch. harness pins launches, so scenarios need no code for it.
CPUS = "cpus"

#: The axis of a run on the CPU and on a GPU (--device cpu,gpu). Its value repeats the `device` of a cell. No header can
#: declare it.
DEVICE = "device"

#: The folders of a project's scenarios, relative to its top: its own scenarios, and scenarios for upstream issues.
FOLDERS = (PurePosixPath("scenarios"), PurePosixPath("scenarios/upstream"))

#: The suite of a run that names neither a suite nor a scenario.
DEFAULT_SUITE = "headline"

#: Quantities of comparisons and claims other than phases: the time per step, the highest memory use of the process, the
#: additional memory after each call, and the observation with that name.
STEP, PEAK, GROWTH, TRACES = "step", "peak memory", "memory growth", "traces"

#: Percentiles of the time of single steps, with their shares. A launch has one value of each.
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

#: Prefix for the names of numbers that a plain script prints, in its own units. They are observations.
PRINTED = "printed: "

#: Phases of a plain script other than its imports: the whole script, if steps of it are timed, and the script without
#: TensorFlow's import. They are parts of the timed work.
WHOLE, OWN = "whole script", "own work"

#: The kit's observations of a plain script: the printed output, the numbers in it and their units, and pairs of seconds
#: and bytes of memory, if a launch was still running near its time limit.
OUTPUT, NUMBERS, NUMBER_UNITS, RESIDENT = "output", "printed", "printed units", "resident memory"

Axes = Mapping[str, str]

#: Values that have no meaning without the name of their axis.
BARE = {"on", "off", "keep", "default"}


def has_values(when: Axes, axes: Axes) -> bool:
    """Return whether `axes` has every value of `when`."""
    return all(axes.get(name) == value for name, value in when.items())


@dataclass(frozen=True, slots=True)
class Need:
    """A condition of cells: with the axis values `when`, they need the PEP 508 requirements `requires`.

    Otherwise the cells are not available. If `devices` isn't empty, they also need one of these devices. `reason` is a
    sentence, and `advice` names an alternative.
    """

    requires: Sequence[str] = ()
    when: Axes = field(default_factory=dict)
    reason: str = ""
    advice: str = ""
    devices: Sequence[Device] = ()


@dataclass(frozen=True, slots=True)
class Pick:
    """Environments that satisfy `requires` enter a comparison with these axis values."""

    requires: Sequence[str]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of cells in a table.

    Along an axis, the value `plus` is compared with `against`, or with every other value if `against` is empty. Along
    `environment`, each environment is compared with the run's baseline, and `pick` chooses axis values by environment.
    With `percent`, the report also shows each difference in percent, as the source does: positive if `plus`, or the
    environment, is faster. `of` is the compared quantity: STEP, a percentile, PEAK, GROWTH, TRACES, a PRINTED number,
    or a phase.
    """

    name: str
    along: str
    plus: str = ""
    against: str = ""
    pick: Sequence[Pick] = ()
    percent: bool = False
    of: str = STEP


@dataclass(frozen=True, slots=True)
class Sweep:
    """A numeric axis, with the unit of its values, which may be empty."""

    unit: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A statement of the source: in cells with the axis values `when`, the observation has this JSON `value`.

    The statement applies to environments that satisfy the PEP 508 requirements `requires`.
    """

    observation: str
    value: Any
    when: Axes = field(default_factory=dict)
    requires: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """A side of a claim: an environment, by name or as requirements for `-e`, and axis values."""

    environment: str
    axes: Axes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an upstream issue: the quantity `of` is higher for `worse` than for `better`.

    Exactly one of three fields has the claimed range, lowest and highest:

    - `ratio`: value(worse) / value(better).
    - `seconds`: the time that `worse` takes. Such a claim has no `better`.
    - `bytes`: the bytes that each call of `worse` leaks. Such a claim has no `better`.

    `reported` is the claim in plain words, `when` has axis values of both sides, `hardware` is the reporter's, `fixed`
    is the release with the fix according to a source, and `visible` are the devices on which the issue is visible.
    """

    issue: Issue
    reported: str
    worse: ClaimSide
    better: ClaimSide | None = None
    ratio: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    bytes: tuple[float, float] | None = None
    of: str = STEP
    when: Axes = field(default_factory=dict)
    hardware: str = ""
    fixed: str = ""
    visible: Sequence[Device] = tuple(Device)

    @property
    def range(self) -> tuple[float, float]:
        """The claimed range: ratio, seconds or bytes."""
        return self.ratio or self.seconds or self.bytes or (1.0, 1.0)

    def needed(self, margin: float) -> float:
        """Return the largest half-width of an interval, on the log scale, that answers the claim; `margin` is a share.

        It depends only on the claim: half of the distance from the margin to the lowest claimed value, within
        CLAIM_PRECISION. So an interval around 1 doesn't reach the claim, and an interval around the claim doesn't reach
        the margin. (For memory growth, it is half of the lowest claimed value, in bytes.)
        """
        least, most = map(math.log1p, CLAIM_PRECISION)
        if self.ratio is None:
            return most
        return min(most, max(least, (math.log(self.ratio[0]) - math.log1p(margin)) / 2.0))


@dataclass(frozen=True)
class Scenario:
    """One scenario file, as described by its header.

    - `axes`: each axis with its values, in order. `default`: the only value of an axis unless others are selected.
    - `environ`: the axes that are environment variables rather than arguments. An empty value unsets the variable.
    - `sweeps`: the axes of increasing numbers. In `axes` and in cells, these numbers are text.
    - `settings`: the axes that the kit or harness applies (harness/model/settings.py).
    - `data_handling`: globs of functions, by module and name, that a profile counts as data handling.
    - `uses_keras`: the file mentions Keras.
    - `claims`: claims of upstream issues.
    - `files`: files in the same folder that go into each launch.
    - `script`: the name of the plain script or notebook that the scenario runs, or empty.
    """

    name: str
    path: Path
    title: str
    source: str
    tags: Sequence[str]
    axes: Mapping[str, Sequence[str]]
    requires_python: str
    dependencies: Sequence[str]
    default: Axes = field(default_factory=dict)
    environ: Sequence[str] = ()
    exclude: Sequence[Axes] = ()
    needs: Sequence[Need] = ()
    compare: Sequence[Comparison] = ()
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    expect: Sequence[Expectation] = ()
    data_handling: Sequence[str] = ()
    settings: Sequence[str] = ()
    uses_keras: bool = False
    claims: Sequence[Claim] = ()
    files: Sequence[str] = ()
    script: str = ""

    @cached_property
    def compared_axes(self) -> tuple[str, ...]:
        """Compared axes in the header's order, including the axes of claims. They are the columns of a table."""
        along = {comparison.along for comparison in self.compare}
        picked = {axis for comparison in self.compare for pick in comparison.pick for axis in pick.axes}
        claimed = {
            axis
            for claim in self.claims
            if claim.better
            for axis, value in claim.worse.axes.items()
            if claim.better.axes.get(axis) != value
        }
        return tuple(axis for axis in self.axes if axis in along | picked | claimed)

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Compared quantities other than the time per step, in the header's order."""
        return tuple(dict.fromkeys(entry.of for entry in self.compare if entry.of != STEP))

    @cached_property
    def row_axes(self) -> tuple[str, ...]:
        """Axes that aren't compared. They name a group, and a row of a table."""
        return tuple(axis for axis in self.axes if axis not in self.compared_axes)

    def claimed(self, claim: Claim, device: Device, environment: str = "") -> "tuple[Cell, Cell | None]":
        """Return the cells of a claim: worse, and better (None if the claim has no such side).

        An `environment` replaces the environment of the worse side. It also replaces the one of the better side if both
        sides have the same.
        """
        worse, better = claim.worse, claim.better
        worse_environment = environment or worse.environment
        held = worse_environment if better is None or better.environment == worse.environment else better.environment

        def cell(where: str, side: ClaimSide) -> Cell:
            axes = self.claimed_axes(claim, side)
            return Cell(self.name, where, device, {**axes, DEVICE: device.value} if DEVICE in axes else axes)

        return cell(worse_environment, worse), cell(held, better) if better else None

    def claimed_axes(self, claim: Claim, side: ClaimSide) -> dict[str, str]:
        """Return the axis values of a claim's side, in the header's order: stated, default, or first value."""
        named = {**self.default, **claim.when, **side.axes}
        return {axis: named.get(axis, next(iter(values), "")) for axis, values in self.axes.items()}

    def combinations(self, values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """Return all combinations of `values` (axis to chosen values), in the header's order, without excluded ones."""
        chosen = [values[axis] for axis in self.axes]
        combinations = (dict(zip(self.axes, combination, strict=True)) for combination in product(*chosen))
        return [axes for axes in combinations if not any(has_values(excluded, axes) for excluded in self.exclude)]


@dataclass(frozen=True)
class Cell:
    """Scenario × one value per axis × environment × device. An axis DEVICE determines the device."""

    scenario: str
    environment: str
    device: Device
    axes: Mapping[str, str]

    def __post_init__(self) -> None:
        if DEVICE in self.axes:
            object.__setattr__(self, "device", Device(self.axes[DEVICE]))

    @cached_property
    def key(self) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
        """Hashable identity of the cell, which doesn't depend on the order of the axes.

        A cell is the same in a run on one device and in a run on both.
        """
        axes = sorted(pair for pair in self.axes.items() if pair[0] != DEVICE)
        return (self.scenario, self.environment, self.device.value, tuple(axes))

    @property
    def anywhere(self) -> "Cell":
        """The cell without the axes of its run alone: MACHINE, and DEVICE, which repeats `device`."""
        if MACHINE not in self.axes and DEVICE not in self.axes:
            return self
        return replace(self, axes={axis: value for axis, value in self.axes.items() if axis not in (MACHINE, DEVICE)})

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Cell) and self.key == other.key)

    def __str__(self) -> str:
        values = (f"{axis}={value}" if value in BARE or axis == CPUS else value for axis, value in self.axes.items())
        return " ".join([self.scenario, self.environment, *values])


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Cells of one scenario: the chosen values of each named axis, and all values (or the default) of the others.

    `environments` are names or globs. If it is empty, the cells run in all environments of the run.
    """

    scenario: str
    axes: Mapping[str, Sequence[str]]
    environments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """The cells of `--suite NAME`: the union of its parts, in its environments.

    `rounds`, `budget`, `warmup` and `measure` are defaults for the options with these names, in the options' format.
    Without a default, they are None or empty. `instead` maps an environment to names and globs of its substitutes for a
    GPU that can't run it, in order of preference.
    """

    name: str
    title: str
    environments: Sequence[str]
    parts: Sequence[SuitePart]
    rounds: int | None = None
    budget: str = ""
    warmup: str = ""
    measure: str = ""
    instead: Mapping[str, Sequence[str]] = field(default_factory=dict)
