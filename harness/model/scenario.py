"""Scenarios as described by the headers of their files, cells (the combinations that are measured), and suites."""

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

#: The axis of the programs in a file with several programs. Its values are the numbers of their first lines.
PROGRAM = "program"

#: The axis of a scenario that was generated from two versions of one scenario (harness/scenarios/versions.py), and the
#: axis's values.
SIDE, BEFORE_AND_AFTER = "side", ("base", "head")

#: The axis of scenarios in a merged run of several machines. No header can declare it.
MACHINE = "on machine"

#: The axis with the number of CPU cores of a launch. harness pins launches, so scenarios need no code for it.
CPUS = "cpus"

#: The axis of a run on the CPU and on a GPU (--device cpu,gpu). Its value is the `device` of the cell. No header can
#: declare it.
DEVICE = "device"

#: The folders of a project's scenarios, relative to its top: its own scenarios, and scenarios for upstream issues.
FOLDERS = (PurePosixPath("scenarios"), PurePosixPath("scenarios/upstream"))

#: The suite that is measured if neither a suite nor a scenario is requested.
DEFAULT_SUITE = "headline"
#: The suite that is measured on GPUs that can't run two environments of the default suite.
GPU_SUITE = "gpu"

#: Quantities of comparisons and claims other than phases: the time per step, the peak memory of the process, the memory
#: that each call retains, and the number of traces (an observation with this name).
STEP, PEAK, GROWTH, TRACES = "step", "peak memory", "memory growth", "traces"

#: Percentiles of the time of single steps, with their shares. A launch has one value of each.
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

#: The prefix for the names of numbers that a plain script prints. These numbers are observations in the script's units.
PRINTED = "printed: "

#: Phases of a plain script other than its imports. WHOLE: the whole script, if its steps are timed. OWN: the script
#: without TensorFlow's import. Both are parts of the timed work.
WHOLE, OWN = "whole script", "own work"

#: The kit's observations of a plain script: the printed output, the numbers in the output, their units, and for each
#: number the name and the values of the setting in front of it. For a launch that was still running near its time
#: limit, RESIDENT has pairs of seconds and bytes of memory.
OUTPUT, NUMBERS, NUMBER_UNITS, NUMBER_LABELS = "output", "printed", "printed units", "printed labels"
RESIDENT = "resident memory"

Axes = Mapping[str, str]

#: Axis values that texts show together with the name of their axis, because they have no meaning without it.
BARE = {"on", "off", "keep", "default"}


def has_values(when: Axes, axes: Axes) -> bool:
    """Return whether `axes` contains all axis values of `when`."""
    return all(axes.get(name) == value for name, value in when.items())


@dataclass(frozen=True, slots=True)
class Need:
    """A condition for cells with the axis values `when`: their environment must satisfy `requires` (PEP 508).

    If `devices` isn't empty, the cells also need one of these devices. Cells that don't meet the condition are not
    available. `reason` explains why, and `advice` suggests an alternative.
    """

    requires: Sequence[str] = ()
    when: Axes = field(default_factory=dict)
    reason: str = ""
    advice: str = ""
    devices: Sequence[Device] = ()


@dataclass(frozen=True, slots=True)
class Pick:
    """The axis values with which environments that satisfy `requires` are compared."""

    requires: Sequence[str]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of cells in a table.

    Along an axis, the value `plus` is compared with `against`, or with every other value if `against` is empty. Along
    `environment`, each environment is compared with the run's baseline, and `pick` selects axis values for each
    environment. `of` is the compared quantity: STEP, a percentile, PEAK, GROWTH, TRACES, a PRINTED number, or a phase.
    """

    name: str
    along: str
    plus: str = ""
    against: str = ""
    pick: Sequence[Pick] = ()
    of: str = STEP


@dataclass(frozen=True, slots=True)
class Sweep:
    """A numeric axis. The unit of its values may be empty."""

    unit: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A statement in the source: in cells with the axis values `when`, the observation has this JSON `value`.

    The statement applies to environments that satisfy `requires` (PEP 508 requirements).
    """

    observation: str
    value: Any
    when: Axes = field(default_factory=dict)
    requires: Sequence[str] = ()


#: The values of `program` in a claim, in words.
PROGRAMS = {"same": "the reported program", "similar": "a similar program", "guessed": "a guessed program"}


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """A side of a claim: axis values, and an environment (a name, or requirements as for `-e`)."""

    environment: str
    axes: Axes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an upstream issue: the quantity `of` is higher for `worse` than for `better`.

    Exactly one of three fields has the lowest and the highest claimed value:

    - `ratio`: value(worse) / value(better).
    - `seconds`: the time that `worse` takes. Such a claim has no `better`.
    - `bytes`: the bytes that each call of `worse` leaks. Such a claim has no `better`.

    `reported` is the claim in plain words. `when` contains axis values of both sides. `hardware` is the reporter's
    hardware, and `version` the reporter's release of TensorFlow or Keras. `program` says how the scenario relates to
    the reporter's program. `fixed` is the release with the fix, according to a source. `visible` contains the devices
    on which the issue is visible.
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
    version: str = ""
    program: str = ""
    fixed: str = ""
    visible: Sequence[Device] = tuple(Device)

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest claimed value: a ratio, seconds or bytes."""
        return self.ratio or self.seconds or self.bytes or (1.0, 1.0)

    @property
    def fixed_release(self) -> tuple[int, ...]:
        """The release with the fix as numbers: (2, 3)."""
        from packaging.version import Version

        return Version(self.fixed).release

    @property
    def origin(self) -> str:
        """The reporter's hardware, version and program: `Colab CPU; 2.0.0-alpha0; measured with a similar program`."""
        program = PROGRAMS.get(self.program, "")
        return "; ".join(filter(None, [self.hardware, self.version, f"measured with {program}" if program else ""]))

    def needed(self, margin: float) -> float:
        """Return the largest half width of an interval, on the log scale, with which the claim can be decided.

        It is half of the distance from `margin` (a share) to the lowest claimed value, within CLAIM_PRECISION. So an
        interval around 1 doesn't reach the claim, and an interval around the claim doesn't reach the margin. This
        doesn't apply to memory growth, whose intervals are in bytes.
        """
        least, most = map(math.log1p, CLAIM_PRECISION)
        if self.ratio is None:
            return most
        return min(most, max(least, (math.log(self.ratio[0]) - math.log1p(margin)) / 2.0))

    def rename_environments(self, names: Mapping[str, str]) -> "Claim":
        """Return the claim with renamed environments. `names` maps old names to new names."""

        def rename(side: ClaimSide) -> ClaimSide:
            return replace(side, environment=names.get(side.environment, side.environment))

        return replace(self, worse=rename(self.worse), better=self.better and rename(self.better))


@dataclass(frozen=True)
class Scenario:
    """One scenario file, as described by its header.

    - `axes`: each axis with its values, in order. `default`: the value of an axis that is used unless others are
      selected.
    - `environ`: the axes that are environment variables rather than arguments. An empty value unsets the variable.
    - `sweeps`: the axes whose values are increasing numbers. In `axes` and in cells, these numbers are text.
    - `settings`: the axes that the kit or harness applies (harness/model/settings.py).
    - `data_handling`: globs of functions, by module and name, that a profile counts as data handling.
    - `uses_keras`: whether the file mentions Keras.
    - `claims`: the claims of upstream issues that the scenario checks.
    - `files`: other files in the same folder that each launch gets.
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
        """The compared axes in the header's order, including those of claims. Their values are columns of a table."""
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
        """The compared quantities other than the time per step, in the header's order."""
        return tuple(dict.fromkeys(entry.of for entry in self.compare if entry.of != STEP))

    @cached_property
    def row_axes(self) -> tuple[str, ...]:
        """The axes that aren't compared. Each combination of their values is a group, and a row of a table."""
        return tuple(axis for axis in self.axes if axis not in self.compared_axes)

    def claimed(self, claim: Claim, device: Device, environment: str = "") -> "tuple[Cell, Cell | None]":
        """Return the cells of both sides of a claim: worse, and better (None if the claim has no better side).

        An `environment` replaces the environment of the worse side. If both sides have the same environment, it also
        replaces the environment of the better side.
        """

        def make_cell(side: ClaimSide) -> Cell:
            replacement = environment if side.environment == claim.worse.environment else ""
            axes = self.claimed_axes(claim, side)
            axes |= {DEVICE: device.value} if DEVICE in axes else {}
            return Cell(self.name, replacement or side.environment, device, axes)

        return make_cell(claim.worse), make_cell(claim.better) if claim.better else None

    def on_machine(self, label: str) -> "Scenario":
        """Return the scenario of a merged run with the cells of one machine only."""
        return replace(self, axes={**self.axes, MACHINE: [label]})

    def claimed_axes(self, claim: Claim, side: ClaimSide) -> dict[str, str]:
        """Return all axis values of a claim's side: the stated value, the default, or otherwise the first value."""
        stated = {**self.default, **claim.when, **side.axes}
        return {axis: stated.get(axis, next(iter(values), "")) for axis, values in self.axes.items()}

    def combinations(self, values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """Return all combinations of the values of each axis, in the header's order, without excluded combinations."""
        chosen = [values[axis] for axis in self.axes]
        combinations = (dict(zip(self.axes, combination, strict=True)) for combination in product(*chosen))
        return [axes for axes in combinations if not any(has_values(excluded, axes) for excluded in self.exclude)]


@dataclass(frozen=True)
class Cell:
    """One combination to measure: a scenario, an environment, a device, and a value of each axis.

    If the cell has the axis DEVICE, its value determines the device.
    """

    scenario: str
    environment: str
    device: Device
    axes: Mapping[str, str]

    def __post_init__(self) -> None:
        if DEVICE in self.axes:
            object.__setattr__(self, "device", Device(self.axes[DEVICE]))

    @cached_property
    def key(self) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
        """A hashable identity of the cell, which doesn't depend on the order of the axes.

        It is the same in a run on one device and in a run on both devices.
        """
        axes = sorted(pair for pair in self.axes.items() if pair[0] != DEVICE)
        return (self.scenario, self.environment, self.device.value, tuple(axes))

    @property
    def anywhere(self) -> "Cell":
        """The cell without the axes that only depend on the kind of run: MACHINE and DEVICE."""
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
    """Cells of one scenario, with the selected values of `axes`. Other axes have their default, or all values.

    `environments` contains names or globs. If it is empty, the cells run in all environments of the run.
    """

    scenario: str
    axes: Mapping[str, Sequence[str]]
    environments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """The cells of `--suite NAME`: the union of its parts, in its environments.

    `rounds`, `budget`, `warmup` and `measure` are defaults for the options with these names, in the options' format.
    Without a default, they are None or empty. `instead` maps an environment to names and globs of its fallbacks for a
    machine that can't run it, in order of preference.
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
