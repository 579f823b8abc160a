"""Fallbacks for environments of a suite that the GPUs can't run.

A suite lists fallbacks in order of preference. A name is used if the GPUs can run it. Among the matches of a glob,
environments with machine code for the GPUs come before those that the driver compiles. Then the one that keeps most of
the cells is used, and then the oldest release. An environment without the packages that the cells need is skipped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.model.environment import Device, Environment, Requirement, versions
from harness.model.gpu import Gpu, GpuHost
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
    cards: Sequence[Gpu],
    host: GpuHost,
    absent: Mapping[str, str] | None = None,
) -> list[StandIn]:
    """Return the first usable fallback of each environment of the `cells` that can't run on the GPUs.

    `instead` is from the suite. `locked` returns an environment of the catalogue with its GPU lock. `absent` maps
    environments that this machine can't get to the reason, and they are skipped. If nothing is known about the GPUs,
    the result is empty.
    """
    present = {cell.environment for cell in cells}

    def runs(name: str) -> bool:
        return Device.GPU in catalog[name].devices and not fit(catalog[name], cards, host).is_impossible

    def kept(name: str, own_cells: Sequence[Cell]) -> list[tuple[str, Axes]]:
        """Return the cells that have the packages that they need in an environment."""
        moved = [replace(cell, environment=name) for cell in own_cells]
        able, _ = split(moved, scenarios, {name: locked(name)}, catalog)
        return [(cell.scenario, cell.axes) for cell in able]

    def chosen(role: str) -> tuple[Environment, Mapping[str, str]] | None:
        own_cells = [cell for cell in cells if cell.environment == role]
        own = kept(role, own_cells) if Device.GPU in catalog[role].devices else []
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
                    ranks.append((_is_compiled(catalog[name], cards, host), lost, catalog[name].release, name))
            if ranks:
                return catalog[min(ranks)[-1]], passed
        return None

    roles = [role for role in instead if role in present and cards and not runs(role)]
    by_role = {role: taken for role in roles if (taken := chosen(role))}
    return [
        StandIn(
            environment=substitute.name,
            role=role,
            card=next(card.name for card in cards if fit(catalog[role], [card], host).is_impossible),
            reason=fit(catalog[role], cards, host).reason,
            is_itself_too=substitute.name in present,
            pins=locked(role).lock.pins if Device.GPU in catalog[role].devices else versions(catalog[role]),
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


def _is_compiled(environment: Environment, cards: Sequence[Gpu], host: GpuHost) -> bool:
    return fit(environment, cards, host).support is Support.COMPILED
