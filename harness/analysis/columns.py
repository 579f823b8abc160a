"""A table's columns: what a scenario's header sets side by side, and nothing known of any one scenario."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.model.environment import unmet
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Cell, Comparison, Scenario


@dataclass(frozen=True)
class Side:
    """Which cell of a row: its environment, and its values of the compared axes."""

    environment: str
    axes: Mapping[str, str]


@dataclass(frozen=True)
class ScenarioColumn:
    """`side` alone: its time per step. With `other`: time(other) / time(side), above 1 when `side` is faster.

    `comparison` is the header's entry that a ratio comes from.
    """

    side: Side
    other: Side | None = None
    comparison: Comparison | None = None


def columns(run: Run, scenario: Scenario, cells: Sequence[Cell]) -> list[ScenarioColumn]:
    """The times, then the ratios in the header's order, for those of the scenario's `cells` that the run has."""
    sides = _sides(run, scenario, cells)
    ratios = [column for entry in scenario.compare for column in _ratios(run, scenario, entry, sides)]
    return [ScenarioColumn(side) for side in sides] + ratios


def _sides(run: Run, scenario: Scenario, cells: Iterable[Cell]) -> list[Side]:
    """Environment × values of the compared axes, as far as they occur, in the order of the run and of the header."""
    compared = scenario.compared_axes
    occurring = {(cell.environment, *(cell.axes[axis] for axis in compared)) for cell in cells}
    environments = [environment.name for environment in run.environments]

    def place(values: tuple[str, ...]) -> list[int]:
        known = [environments, *(list(scenario.axes[axis]) for axis in compared)]
        # what run.json does not list comes last
        return [
            names.index(value) if value in names else len(names) for names, value in zip(known, values, strict=True)
        ]

    return [
        Side(environment, dict(zip(compared, values, strict=True)))
        for environment, *values in sorted(occurring, key=lambda item: (place(item), item))
    ]


def _ratios(run: Run, scenario: Scenario, entry: Comparison, sides: Sequence[Side]) -> list[ScenarioColumn]:
    if entry.along != ENVIRONMENT:
        return _along_axis(scenario, entry, sides)
    if not entry.pick:
        return _along_environment(run, entry, sides)
    return _picked(run, entry, sides)


def _along_axis(scenario: Scenario, entry: Comparison, sides: Sequence[Side]) -> list[ScenarioColumn]:
    """`plus` against each other value (or `against` alone), all else equal, environment by environment."""
    others = [entry.against] if entry.against else [v for v in scenario.axes[entry.along] if v != entry.plus]
    candidates = [
        ScenarioColumn(side, Side(side.environment, {**side.axes, entry.along: other}), entry)
        for other in others
        for side in sides
        if side.axes[entry.along] == entry.plus
    ]
    return [column for column in candidates if column.other in sides]


def _along_environment(run: Run, entry: Comparison, sides: Sequence[Side]) -> list[ScenarioColumn]:
    """Each environment against the run's reference, within each combination of the compared axes."""
    candidates = [
        ScenarioColumn(side, Side(run.reference, side.axes), entry)
        for side in sides
        if side.environment != run.reference
    ]
    return [column for column in candidates if column.other in sides]


def _picked(run: Run, entry: Comparison, sides: Sequence[Side]) -> list[ScenarioColumn]:
    """Each environment against the reference, each with the axis values that the first fitting pick gives it.

    Compared axes that no pick names must be equal on both sides.
    """
    chosen = {side.environment: _pick(run, entry, side.environment) for side in sides}
    fitting = [side for side in sides if _fits(side, chosen[side.environment])]
    named = {axis for pick in entry.pick for axis in pick.axes}
    return [
        ScenarioColumn(side, other, entry)
        for side in fitting
        for other in fitting
        if side.environment != run.reference == other.environment
        and all(side.axes[axis] == other.axes[axis] for axis in side.axes if axis not in named)
    ]


def _fits(side: Side, chosen: Mapping[str, str] | None) -> bool:
    return chosen is not None and all(side.axes[axis] == value for axis, value in chosen.items())


def _pick(run: Run, entry: Comparison, environment: str) -> Mapping[str, str] | None:
    installed = pins(run, environment)
    return next((pick.axes for pick in entry.pick if not unmet(pick.requires, installed)), None)


def pins(run: Run, environment: str) -> Mapping[str, str]:
    """The environment's packages; where none were recorded, those that its line of the catalogue names."""
    if run.pins.get(environment):
        return run.pins[environment]
    known = next((known for known in run.environments if known.name == environment), None)
    return {name: getattr(known, name) for name in ("tensorflow", "keras") if known and getattr(known, name)}
