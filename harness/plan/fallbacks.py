"""Fallbacks for environments of a suite that can't run on this machine, because of its GPUs or a missing interpreter.

A suite lists fallbacks in order of preference, as names or globs. The first one that this machine can run is used. If
a glob matches several environments, environments whose Python interpreter is available come first. Among these, the one
with the most cells is used, and then the oldest release. An environment without the packages that the cells need is
skipped.

On GPUs, environments with machine code for the GPUs come before those that the driver compiles, even if the suite
prefers the latter. A fallback has the same major version of TensorFlow, replaces only one environment, and keeps the
order of releases. Otherwise, the run would answer a question that differs from the suite's question. If no fallback
keeps the order, or if CUDA in the only one that does is older than the GPU, the cells are measured in an environment
that the suite also contains as itself.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from harness.model.backend import Supply
from harness.model.environment import Device, Environment, Requirement, describe_missing_wheel, versions
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.run import StandIn
from harness.model.scenario import ENVIRONMENT, Axes, Cell, Scenario
from harness.plan.availability import split
from harness.plan.gpus import Fit, Support, fit
from harness.plan.selection import resolve

#: The first release with Keras's present training loop (`Model.train_step`), according to TensorFlow's release notes.
_NEW_LOOP_RELEASE = (2, 2, 0)


def find_fallbacks(
    instead: Mapping[str, Sequence[str]],
    cells: Sequence[Cell],
    scenarios: Mapping[str, Scenario],
    catalog: Mapping[str, Environment],
    locked: Callable[[str], Requirement],
    *,
    supply: Callable[[Requirement], Supply] = lambda requirement: Supply.HERE,
    gpus: Sequence[Gpu] = (),
    host: GpuHost = CPU_ALONE,
) -> list[StandIn]:
    """Return the best fallback for each environment of the `cells` that can't run on this machine.

    `instead` contains the suite's fallbacks. `locked` returns an environment of the catalog with its lock for the
    cells' device. `supply` returns whether this machine has the environment's Python interpreter. If the run is on
    GPUs, and nothing is known about them, there are no fallbacks.
    """
    device = cells[0].device if cells else Device.CPU
    if device is Device.GPU and not gpus:
        return []
    search = _FallbackSearch(cells, scenarios, catalog, locked, device, supply, gpus, host)
    environments = {cell.environment for cell in cells}
    roles = [
        search.find_candidates(role, instead[role])
        for role in instead
        if role in environments and not search.can_run(role)
    ]
    if device is Device.CPU:
        by_role = {role.of.name: min(role.ranks.values())[-1] for role in roles if role.ranks}
    else:
        without_fallback = [name for name in environments if search.can_run(name)]
        by_role = _choose_on_gpus(roles, catalog, without_fallback, search.is_older)
    return [
        search.make_stand_in(role, by_role[role.of.name], is_itself_too=by_role[role.of.name] in environments)
        for role in roles
        if role.of.name in by_role
    ]


#: The rank of a fallback, lowest first: its effort on the GPUs, its place in the suite's list, whether its interpreter
#: is available, the number of cells that it can't run, its release, and its name.
_Rank = tuple[int, int, Supply, int, tuple[int, int, int], str]
#: A release of TensorFlow, as in `Environment.release`.
_Release = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The possible fallbacks for the environment `of`, which has a number of `cells`."""

    of: Environment
    cells: int
    ranks: Mapping[str, _Rank]


@dataclass(frozen=True, slots=True)
class _FallbackSearch:
    """The facts on which fallbacks depend; see `find_fallbacks`. `device` is the device of all cells."""

    cells: Sequence[Cell]
    scenarios: Mapping[str, Scenario]
    catalog: Mapping[str, Environment]
    locked: Callable[[str], Requirement]
    device: Device
    supply: Callable[[Requirement], Supply]
    gpus: Sequence[Gpu]
    host: GpuHost

    def can_run(self, name: str) -> bool:
        """Return whether this machine can run an environment of the catalog on the device."""
        if self.device not in self.catalog[name].devices:
            return False
        is_impossible = self.device is Device.GPU and self._fit(name).is_impossible
        return not is_impossible and self.supply(self.locked(name)) is not Supply.NONE

    def is_older(self, name: str) -> bool:
        """Return whether CUDA in an environment's image is older than the GPUs."""
        return self._fit(name).support is Support.OLDER

    def _fit(self, name: str) -> Fit:
        return fit(self.catalog[name], self.gpus, self.host)

    def find_candidates(self, role: str, patterns: Sequence[str]) -> _Candidates:
        """Return the possible fallbacks for the environment `role` among names or globs, in order of preference."""
        own_cells = [cell for cell in self.cells if cell.environment == role]
        runnable = self._list_runnable(role, own_cells) if self.device in self.catalog[role].devices else []
        ranks: dict[str, _Rank] = {}
        for position, pattern in enumerate(patterns):
            for name in filter(self.can_run, resolve([pattern], list(self.catalog), ENVIRONMENT)):
                if runnable_there := self._list_runnable(name, own_cells):
                    lost_cells = sum(cell not in runnable_there for cell in runnable)
                    effort, release = self.supply(self.locked(name)), self.catalog[name].release
                    ranks.setdefault(name, (self._fit(name).effort, position, effort, lost_cells, release, name))
        return _Candidates(self.catalog[role], len(own_cells), ranks)

    def _list_runnable(self, name: str, own_cells: Sequence[Cell]) -> list[tuple[str, Axes]]:
        """Return the cells that can run in the environment `name`, by scenario and axis values."""
        moved_cells = [replace(cell, environment=name) for cell in own_cells]
        runnable, _ = split(moved_cells, self.scenarios, {name: self.locked(name)}, self.catalog)
        return [(cell.scenario, cell.axes) for cell in runnable]

    def make_stand_in(self, role: _Candidates, name: str, *, is_itself_too: bool) -> StandIn:
        """Return the fallback `name` for an environment, with the GPU that can't run this environment, if any."""
        model = next((gpu.name for gpu in self.gpus if fit(role.of, [gpu], self.host).is_impossible), "")
        reason = f"Python {role.of.python} is missing, and uv can't download it"
        if not role.of.has_wheel:
            reason = describe_missing_wheel(role.of)[0]
        return StandIn(
            environment=name,
            role=role.of.name,
            card=model,
            reason=self._fit(role.of.name).reason if model else reason,
            is_itself_too=is_itself_too,
            pins=self.locked(role.of.name).lock.pins if self.device in role.of.devices else versions(role.of),
            caveat="" if self.device is Device.CPU else _describe_caveat(role.of, self.catalog[name]),
        )


def _is_near(role: Environment, fallback: Environment, runnable: Collection[_Release]) -> bool:
    """Return whether a fallback has the same major version, and no `runnable` release is between the two."""
    oldest, newest = sorted([role.release, fallback.release])
    return role.release[0] == fallback.release[0] and not any(oldest < release < newest for release in runnable)


def _choose_on_gpus(
    roles: Sequence[_Candidates],
    catalog: Mapping[str, Environment],
    without_fallback: Sequence[str],
    is_older: Callable[[str], bool],
) -> dict[str, str]:
    """Return the fallback for each environment on GPUs: they lose the fewest cells and keep the order of releases.

    `without_fallback` contains the environments of the run that need no fallback. `is_older` returns whether CUDA in an
    environment's image is older than the GPUs.
    """
    runnable = {catalog[name].release for name in without_fallback}
    by_name = {role.of.name: role for role in roles}

    possible = {
        name: [catalog[fallback] for fallback in role.ranks if _is_near(role.of, catalog[fallback], runnable)]
        for name, role in by_name.items()
    }

    def cost(chosen: Mapping[str, str]) -> tuple[int, int, int, list[list[_Rank]]]:
        lost_cells = sum(role.cells for name, role in by_name.items() if name not in chosen)
        # on GPUs that are newer than its CUDA, cuDNN failed, so an environment of the run is better
        older_count = sum(map(is_older, chosen.values()))
        shared_count = sum(fallback in without_fallback for fallback in chosen.values())
        ranks = [[role.ranks[chosen[name]]] if name in chosen else [] for name, role in by_name.items()]
        return lost_cells, older_count, shared_count, ranks

    # the number of combinations is exponential, so the best fallbacks of the newer environments are computed once for
    # each release that the fallback of an older environment can have
    @cache
    def choose(open_roles: frozenset[str], last_release: _Release) -> dict[str, str]:
        """Return the best fallbacks of the environments `open_roles`, if the last chosen fallback has this release."""
        options: list[dict[str, str]] = [{}]
        oldest = min((by_name[name].of.release for name in open_roles), default=last_release)
        for name in open_roles:
            if by_name[name].of.release == oldest:
                remaining = open_roles - {name}
                options.append(choose(remaining, last_release))
                for fallback in possible[name]:
                    # several fallbacks have the same release only if an environment of the run has it
                    may_repeat = last_release == fallback.release and last_release in runnable
                    if last_release < fallback.release or may_repeat:
                        options.append({name: fallback.name, **choose(remaining, fallback.release)})
        return min(options, key=cost)

    return choose(frozenset(by_name), (0, 0, 0))


def replace_environments(names: Sequence[str], taken: Sequence[StandIn]) -> list[str]:
    """Return the environments without duplicates, with their fallbacks if they have one."""
    fallbacks = {stand_in.role: stand_in.environment for stand_in in taken}
    return list(dict.fromkeys(fallbacks.get(name, name) for name in names))


def replace_cells(cells: Sequence[Cell], taken: Sequence[StandIn]) -> list[Cell]:
    """Return the cells without duplicates, each in the fallback of its environment if there is one."""
    fallbacks = {stand_in.role: stand_in.environment for stand_in in taken}
    moved_cells = (replace(cell, environment=fallbacks.get(cell.environment, cell.environment)) for cell in cells)
    return list(dict.fromkeys(moved_cells))


def _describe_caveat(role: Environment, fallback: Environment) -> str:
    """Return a sentence about what the fallback can't show, or an empty text."""
    if role.release[0] == 2 and role.release < _NEW_LOOP_RELEASE <= fallback.release:
        return (
            f"Keras's training loop changed in TensorFlow 2.2, so this run doesn't show how fast {role.name} trains. "
            "To see this, use the CPU (without --gpu), or a GPU up to compute capability 7.5, such as T4 or V100."
        )
    return ""
