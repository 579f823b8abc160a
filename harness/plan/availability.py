"""Which cells can run, known before any image is built, and what to use instead of the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from harness.model.environment import Device, Environment, Requirement, installed, normalise, unmet
from harness.model.gpu import CPU_ALONE, Card, GpuHost
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Need, Scenario, matches
from harness.plan import settings
from harness.plan.gpus import Fit, Support, fit

#: Why a cell cannot run, in a clause, and what to do, in a sentence or empty.
Reason = tuple[str, str]


def split(
    cells: Sequence[Cell],
    scenarios: Mapping[str, Scenario],
    requirements: Mapping[str, Requirement],
    environments: Mapping[str, Environment],
    *,
    cards: Sequence[Card] = (),
    host: GpuHost = CPU_ALONE,
) -> tuple[list[Cell], list[Unavailable]]:
    """The cells that can run, and those that cannot, with the reason and what to do.

    A cell needs work that is done on its device, an image for it, GPU code that runs on the cards, the packages that
    its scenario asks for, and what its settings need; the cells are told in this order of the reasons. `environments`
    by name are the catalogue's and those of the cells; `requirements` by environment are those that exist for the
    cells' device. `cards` are the ones that every launch is given; without any, or where `host` knows nothing of the
    machine's GPUs, nothing is judged by them.
    """

    def work(cell: Cell) -> Reason | None:
        return _no_work(cell, scenarios[cell.scenario])

    def device(cell: Cell) -> Reason | None:
        return _no_device(environments[cell.environment], cell.device, environments.values())

    @cache
    def on_gpu(name: str) -> Reason | None:
        found = on_cards(environments[name], environments.values(), cards, host)
        return (found.reason, found.advice) if found.is_impossible else None

    def gpu(cell: Cell) -> Reason | None:
        return on_gpu(cell.environment) if cell.device is Device.GPU else None

    def packages(cell: Cell) -> Reason | None:
        return _no_packages(cell, scenarios[cell.scenario], requirements[cell.environment])

    def setting(cell: Cell) -> Reason | None:
        return settings.refusal(cell, scenarios[cell.scenario], environments[cell.environment], cards)

    able, unable = list(cells), []
    for check in (work, device, gpu, packages, setting):
        judged = [(cell, check(cell)) for cell in able]
        able = [cell for cell, reason in judged if reason is None]
        unable += [Unavailable(cell, *reason) for cell, reason in judged if reason is not None]
    return able, unable


def _no_work(cell: Cell, scenario: Scenario) -> Reason | None:
    for need in scenario.needs:
        if need.devices and cell.device not in need.devices and matches(need.when, cell.axes):
            where = " or ".join(need.devices)
            options = "Leave out --gpu and --gpus." if cell.device is Device.GPU else "Give --gpu."
            return need.reason or f"its work is done on {where}", need.advice or options
    return None


def _no_packages(cell: Cell, scenario: Scenario, requirement: Requirement) -> Reason | None:
    from packaging.requirements import Requirement as Wanted
    from packaging.specifiers import SpecifierSet

    pins, environment = requirement.lock.pins, requirement.environment
    if not SpecifierSet(scenario.requires_python).contains(environment.python):
        return (
            f"{scenario.name} needs Python {scenario.requires_python}, {environment.name} has {environment.python}",
            "Choose an environment of another Python.",
        )
    for need in (Need(requires=scenario.dependencies), *scenario.needs):
        missing = unmet(need.requires, pins) if matches(need.when, cell.axes) else []
        if environment.gpu_image:  # what its image has besides is in no lock: the launch shows it
            missing = [each for each in missing if installed(normalise(Wanted(each).name), pins)]
        if missing:
            wanted = " and ".join(missing)
            return need.reason or f"needs {wanted}", need.advice or f"Choose an environment with {wanted}."
    return None


def _no_device(environment: Environment, device: Device, catalog: Iterable[Environment]) -> Reason | None:
    if device in environment.devices:
        return None
    reason = f"the catalogue lists no GPU code for {environment.name}"
    if environment.gpu_image:
        reason = f"{environment.name} is NVIDIA's image {environment.gpu_image}, which is made for GPUs"
    other = nearest_with(device, environment, catalog)
    return reason, f"Use {other.name}." if other else ""


def nearest_with(device: Device, to: Environment, catalog: Iterable[Environment]) -> Environment | None:
    """The environment of the nearest release that has the device, of two as near the older one; None without any."""
    own = to.release

    def distance(each: Environment) -> list[int]:
        return [abs(one - other) for one, other in zip(each.release, own, strict=True)]

    able = [each for each in catalog if device in each.devices]
    return min(able, key=lambda each: (distance(each), each.release), default=None)


def on_cards(environment: Environment, catalog: Iterable[Environment], cards: Sequence[Card], host: GpuHost) -> Fit:
    """How an environment runs on the cards; where it cannot, the advice names one that does."""
    found = fit(environment, cards, host)
    if not found.is_impossible:
        return found
    other = nearest_on(cards, host, environment, catalog)
    if other is None:
        nowhere = "No environment of the catalogue runs on this GPU: measure on the CPU, or on another."
        return replace(found, advice=found.advice or nowhere)
    compiled = "" if fit(other, cards, host).is_native else f" ({Support.COMPILED.value})"
    which = f"{other.name}{compiled}."
    return replace(found, advice=f"{found.advice} Or use {which}" if found.advice else f"Use {which}")


def nearest_on(
    cards: Sequence[Card], host: GpuHost, to: Environment, catalog: Iterable[Environment]
) -> Environment | None:
    """The environment to use on these cards in place of one that cannot run there, None where none runs.

    One that runs natively, if only in most of its kernels, comes before one that is compiled, the same major version of
    TensorFlow before another, and then the nearest release, of two as near the newer one.
    """
    major, minor, _ = to.release

    def rank(each: Environment) -> tuple[bool, bool, int, int, str]:
        its_major, its_minor, _ = each.release
        # a later major version begins where the earlier one ended
        far = abs(its_minor - minor) if its_major == major else (its_minor if its_major > major else -its_minor)
        return not fit(each, cards, host).is_native, its_major != major, far, -its_minor, each.name

    able = [each for each in catalog if each.gpu_code and not fit(each, cards, host).is_impossible]
    return min(able, key=rank, default=None)


def names_on(cards: Sequence[Card], host: GpuHost, catalog: Iterable[Environment]) -> list[str]:
    """The environments that run on the cards, those that the driver compiles at the first start last, and told so."""
    fits = [(each.name, fit(each, cards, host)) for each in catalog if Device.GPU in each.devices]
    able = sorted(
        ((name, found) for name, found in fits if not found.is_impossible), key=lambda each: not each[1].is_native
    )
    return [name if found.is_native else f"{name} ({found.support})" for name, found in able]


def compiled(environments: Iterable[Environment], cards: Sequence[Card], host: GpuHost) -> dict[str, str]:
    """How each environment runs on the cards of whose GPU code the driver compiles some or all, by name."""
    fits = {each.name: fit(each, cards, host) for each in environments}
    return {
        name: found.support.value for name, found in fits.items() if found.support in {Support.PARTLY, Support.COMPILED}
    }


def gpu_rows(
    chosen: Iterable[Environment], catalog: Mapping[str, Environment], cards: Sequence[Card], host: GpuHost
) -> list[dict[str, Any]]:
    """How each environment with GPU code runs on the cards: its name, the way, the reason and what to do."""
    with_gpu = [environment for environment in chosen if Device.GPU in environment.devices]
    fits = [(each, on_cards(each, catalog.values(), cards, host)) for each in with_gpu]
    return [
        {"name": environment.name, "way": found.support.value, "reason": found.reason, "advice": found.advice}
        for environment, found in fits
    ]
