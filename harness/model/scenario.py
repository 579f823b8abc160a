"""Scenarios, as the headers of their files describe them; their cells, which get a number; and suites of cells."""

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

#: The axis of a scenario that was made of two versions of one (harness/catalog/versions.py), and its values.
SIDE, BEFORE_AND_AFTER = "side", ("base", "head")

#: The axis that scenarios have in a run that was merged from those of several machines: no header can declare it.
MACHINE = "on machine"

#: The folders of a project's scenarios, below its top: its own, and what upstream issues tell of.
FOLDERS = (PurePosixPath("scenarios"), PurePosixPath("scenarios/upstream"))

#: What a run takes that names no suite and no scenario.
DEFAULT_SUITE = "headline"

#: What comparisons and claims are about, beside the phases of a launch by their names: the time per step, the most
#: memory that the process held, how much more it holds after each call, and the observation of that name.
STEP, PEAK, GROWTH, TRACES = "step", "peak memory", "memory growth", "traces"

#: With what the names of numbers begin that a plain script prints itself, in units of its own: observations of theirs.
PRINTED = "printed: "

#: The phases that a launch of a plain script has beside its imports: all of it where steps of it are timed, and what is
#: left of it without TensorFlow's import. They are parts of what is timed.
WHOLE, OWN = "whole script", "own work"

#: What the kit observes of a plain script beside them: what it printed, and each of those numbers.
OUTPUT, NUMBERS = "output", "printed"

Axes = Mapping[str, str]

#: Values that say nothing without the name of their axis.
BARE = {"on", "off", "keep", "default"}


def matches(when: Axes, axes: Axes) -> bool:
    """Whether `axes` has every value that `when` names."""
    return all(axes.get(name) == value for name, value in when.items())


@dataclass(frozen=True, slots=True)
class Need:
    """Cells with the axis values `when` need the PEP 508 requirements `requires`; elsewhere they are not available.

    Nor are they on another device than `devices`, where some are named. `reason` says why in a sentence, `advice` what
    to take instead.
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
    """Which cells a table sets side by side.

    Along an axis, `plus` is set against `against` (every other value where that is empty), and a percentage is
    positive when `plus` is faster. Along `environment`, each environment is set against the run's reference, and a
    percentage is positive when it is faster than the reference; `pick` then chooses axis values by environment.
    With `percent`, a report tells each difference in percent as well, because the source does. `of` is what is
    compared: the time per step, another of STEP, PEAK, GROWTH and TRACES, a number that is PRINTED, or the name of a
    phase.
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
    """A numeric axis: the unit of its values, empty where they have none."""

    unit: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the source states of an observation: in the cells with the axis values `when` it has this JSON `value`.

    The statement is about environments that satisfy the PEP 508 requirements `requires`.
    """

    observation: str
    value: Any
    when: Axes = field(default_factory=dict)
    requires: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """A side of a claim: an environment, by its name or as requirements that `-e` takes, and values of axes."""

    environment: str
    axes: Axes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """What an upstream issue says: `of` what it tells (a quantity), `worse` was said to take longer than `better`.

    One of three has the claimed range, lowest and highest: `ratio` of the two, as value(worse) / value(better);
    `seconds` that `worse` takes; `bytes` that each call of `worse` keeps. The last two have no `better`. `reported` is
    what the issue says in plain words, `when` axis values of both sides, `hardware` the reporter's, `fixed` the release
    that a source says mends it, `visible` the devices that it is said to be seen on.
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
        """The claimed range, whatever it is of."""
        return self.ratio or self.seconds or self.bytes or (1.0, 1.0)

    def needed(self, margin: float) -> float:
        """How wide half of its interval may be at most, on the log scale, to tell what it can; `margin` is a share.

        Set by the claim alone, before anything is measured: half of the way from the margin to the least that is
        claimed, within CLAIM_PRECISION. So an interval around 1 does not reach the claim, and one around the claim does
        not reach the margin. (Of memory growth it is half of the least that is claimed, in bytes.)
        """
        least, most = map(math.log1p, CLAIM_PRECISION)
        if self.ratio is None:
            return most
        return min(most, max(least, (math.log(self.ratio[0]) - math.log1p(margin)) / 2.0))


@dataclass(frozen=True)
class Scenario:
    """One scenario file, as its header describes it.

    `axes` maps each axis to its values in order; `default` maps an axis to the one value it takes unless it is
    selected; `environ` names those axes that become process variables rather than arguments (an empty value: unset).
    `sweeps` are those axes whose values are numbers, in increasing order; in `axes` and in cells they are texts.
    `data_handling` are globs of the functions that a profile counts as such, by module and name. `settings` names those
    axes that the kit applies (harness/model/settings.py), `uses_keras` says whether the file names Keras anywhere.
    `claims` are what upstream issues say.
    `files` lie beside the scenario's and go in with it; `script` is the plain script or notebook that it runs, by its
    name, empty where it is none of these.
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
        """The axes, in the header's order, along which cells are compared, a claim's sides too: a table's columns."""
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
        """What its comparisons are about beside the time per step, in the header's order."""
        return tuple(dict.fromkeys(entry.of for entry in self.compare if entry.of != STEP))

    @cached_property
    def row_axes(self) -> tuple[str, ...]:
        """The other axes: they name a group, and a table's row."""
        return tuple(axis for axis in self.axes if axis not in self.compared_axes)

    def claimed(self, claim: Claim, device: Device, environment: str = "") -> "tuple[Cell, Cell | None]":
        """The cells of a claim, the worse one first; no better one where it has no such side.

        With an `environment`, that is in place of the worse side's, and of the better one's where both have the same.
        """
        worse, better = claim.worse, claim.better
        there = environment or worse.environment
        held = there if better is None or better.environment == worse.environment else better.environment

        def cell(where: str, side: ClaimSide) -> Cell:
            return Cell(self.name, where, device, self.claimed_axes(claim, side))

        return cell(there, worse), cell(held, better) if better else None

    def claimed_axes(self, claim: Claim, side: ClaimSide) -> dict[str, str]:
        """Every axis's value on a side of a claim, in the header's order: named, else its default, else its first."""
        named = {**self.default, **claim.when, **side.axes}
        return {axis: named.get(axis, next(iter(values), "")) for axis, values in self.axes.items()}

    def combinations(self, values: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """Every combination of `values` (axis to chosen values) in the header's order, less what `exclude` names."""
        chosen = [values[axis] for axis in self.axes]
        combinations = (dict(zip(self.axes, combination, strict=True)) for combination in product(*chosen))
        return [axes for axes in combinations if not any(matches(excluded, axes) for excluded in self.exclude)]


@dataclass(frozen=True)
class Cell:
    """Scenario × one value per axis × environment × device."""

    scenario: str
    environment: str
    device: Device
    axes: Mapping[str, str]

    @cached_property
    def key(self) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
        """What identifies the cell; hashable, and the same however the axes are ordered."""
        return (self.scenario, self.environment, self.device.value, tuple(sorted(self.axes.items())))

    @property
    def anywhere(self) -> "Cell":
        """The cell as it is asked for on any machine, without the one that measured it in a merged run."""
        if MACHINE not in self.axes:
            return self
        return replace(self, axes={axis: value for axis, value in self.axes.items() if axis != MACHINE})

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Cell) and self.key == other.key)

    def __str__(self) -> str:
        told = (f"{axis}={value}" if value in BARE else value for axis, value in self.axes.items())
        return " ".join([self.scenario, self.environment, *told])


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Cells of one scenario: for each axis named the values chosen, every value (or the default) of the others.

    `environments` are names or globs of those that these cells are measured in; empty: all that the run has.
    """

    scenario: str
    axes: Mapping[str, Sequence[str]]
    environments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """What `--suite NAME` runs: the union of its parts, in the environments it names.

    `rounds`, `budget`, `warmup` and `measure`, as the options of these names take them, are what these options are
    unless they are typed; None and empty where the suite says nothing. `instead` maps an environment to names and globs
    of those that stand in for it, in order, where a GPU cannot run it.
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
