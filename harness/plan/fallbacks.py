"""Fallbacks for environments of a suite that this machine can't run: its GPUs, or its lack of a Python interpreter.

A suite lists fallbacks in order of preference. A name is used if this machine can run it. Among the matches of a glob,
environments with machine code for the GPUs come before those that the driver compiles, and then those whose interpreter
is here. Then the one that keeps most of the cells is used, and then the oldest release. An environment without the
packages that the cells need is skipped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.model.backend import Supply
from harness.model.environment import Device, Environment, Requirement, versions
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.run import StandIn
from harness.model.scenario import ENVIRONMENT, Axes, Cell, Scenario
from harness.plan.availability import split
from harness.plan.gpus import Support, fit
from harness.plan.selection import resolve


def stand_ins(
    instead: Mapping[str, Sequence[str]],
    cells: Sequence[Cell],
    scenarios: Mapping[str, Scenario],
    catalog: Mapping[str, Environment],
    locked: Callable[[str], Requirement],
    *,
    supply: Callable[[Requirement], Supply] = lambda requirement: Supply.HERE,
    cards: Sequence[Gpu] = (),
    host: GpuHost = CPU_ALONE,
    absent: Mapping[str, str] | None = None,
) -> list[StandIn]:
    """Return the first usable fallback of each environment of the `cells` that can't run on this machine.

    `instead` is from the suite. `locked` returns an environment of the catalogue with its lock for the cells' device,
    and `supply` whether this machine has the environment's interpreter. `absent` maps environments that this machine
    can't get to the reason, and they are skipped. If nothing is known about the GPUs of a run on GPUs, the result is
    empty.
    """
    present = {cell.environment for cell in cells}
    device = cells[0].device if cells else Device.CPU
    if device is Device.GPU and not cards:
        return []

    def fits(name: str) -> bool:
        return device is Device.CPU or not fit(catalog[name], cards, host).is_impossible

    def runs(name: str) -> bool:
        return device in catalog[name].devices and fits(name) and supply(locked(name)) is not Supply.NONE

    def kept(name: str, own_cells: Sequence[Cell]) -> list[tuple[str, Axes]]:
        """Return the cells that have the packages that they need in an environment."""
        moved = [replace(cell, environment=name) for cell in own_cells]
        able, _ = split(moved, scenarios, {name: locked(name)}, catalog)
        return [(cell.scenario, cell.axes) for cell in able]

    def chosen(role: str) -> tuple[Environment, Mapping[str, str]] | None:
        own_cells = [cell for cell in cells if cell.environment == role]
        own = kept(role, own_cells) if device in catalog[role].devices else []
        passed: dict[str, str] = {}
        for pattern in instead[role]:
            ranks = []
            for name in filter(runs, resolve([pattern], list(catalog), ENVIRONMENT)):
                if absent and name in absent:
                    passed[name] = absent[name]
                    continue
                able = kept(name, own_cells)
                lost = sum(cell not in able for cell in own)
                if able:
                    is_compiled, effort = _is_compiled(catalog[name], cards, host), supply(locked(name))
                    ranks.append((is_compiled, effort, lost, catalog[name].release, name))
            if ranks:
                return catalog[min(ranks)[-1]], passed
        return None

    def judged(role: str) -> tuple[str, str]:
        """Return the GPU that can't run an environment, if it is one, and the reason."""
        unfit = next((card.name for card in cards if fit(catalog[role], [card], host).is_impossible), "")
        return (unfit, fit(catalog[role], cards, host).reason) if unfit else ("", _no_python(catalog[role]))

    roles = [role for role in instead if role in present and not runs(role)]
    by_role = {role: taken for role in roles if (taken := chosen(role))}
    return [
        StandIn(
            environment=substitute.name,
            role=role,
            card=judged(role)[0],
            reason=judged(role)[1],
            is_itself_too=substitute.name in present,
            pins=locked(role).lock.pins if device in catalog[role].devices else versions(catalog[role]),
            passed_over=passed,
        )
        for role, (substitute, passed) in by_role.items()
    ]


def in_place(names: Sequence[str], taken: Sequence[StandIn]) -> list[str]:
    """Return the environments, with fallbacks instead of the replaced ones, without duplicates."""
    places = {stand_in.role: stand_in.environment for stand_in in taken}
    return list(dict.fromkeys(places.get(name, name) for name in names))


def cells_in_place(cells: Sequence[Cell], taken: Sequence[StandIn]) -> list[Cell]:
    """Return the cells in the fallbacks of their environments, without duplicates."""
    places = {stand_in.role: stand_in.environment for stand_in in taken}
    moved = (replace(cell, environment=places.get(cell.environment, cell.environment)) for cell in cells)
    return list(dict.fromkeys(moved))


def _no_python(environment: Environment) -> str:
    """Return why an environment without an interpreter can't be made, as a clause."""
    return f"Python {environment.python} is missing, and uv has no download of it"


def _is_compiled(environment: Environment, cards: Sequence[Gpu], host: GpuHost) -> bool:
    return fit(environment, cards, host).support is Support.COMPILED
