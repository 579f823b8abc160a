"""Which environments run on a machine's GPUs, known before any image is built."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.model.gpu import Card, GpuHost
from harness.model.gpu_code import Fit, Way, judge
from harness.model.run import Unavailable

_BEST_FIRST = list(Way)


def split_by_gpu(
    cells: Sequence[Cell], environments: Mapping[str, Environment], cards: Sequence[Card], host: GpuHost
) -> tuple[list[Cell], list[Unavailable]]:
    """The cells that can run on these cards, and those that cannot, with the reason and the environment to use instead.

    `environments` by name are the catalogue's and those of the cells; `cards` are the ones that every launch is given.
    Cells of the CPU can run. Where nothing is known of the machine's GPUs, nothing is judged.
    """
    unavailable: dict[str, tuple[str, str]] = {}
    for name in dict.fromkeys(cell.environment for cell in cells if cell.device is Device.GPU):
        found = fit(environments[name], cards, host)
        if found.is_impossible:
            unavailable[name] = found.reason, advice(found, environments[name], environments.values(), cards, host)

    def is_runnable(cell: Cell) -> bool:
        return cell.device is not Device.GPU or cell.environment not in unavailable

    return (
        [cell for cell in cells if is_runnable(cell)],
        [Unavailable(cell, *unavailable[cell.environment]) for cell in cells if not is_runnable(cell)],
    )


def fit(environment: Environment, cards: Sequence[Card], host: GpuHost) -> Fit:
    """How it runs where every launch is given all of these cards: as on the one that it runs worst on."""
    fits = [] if host.absent else [judge(environment, card.capability, host.cuda, host.driver) for card in cards]
    return max(fits, key=lambda each: _BEST_FIRST.index(each.way), default=Fit(Way.NATIVE))


def advice(
    found: Fit, environment: Environment, catalog: Iterable[Environment], cards: Sequence[Card], host: GpuHost
) -> str:
    """What to do about an environment that cannot run: its own advice, and the environment to use instead."""
    other = instead(environment, catalog, cards, host)
    if other is None:
        return found.advice or "No environment of the catalogue runs on this GPU: measure on the CPU, or on another."
    way = "" if fit(other, cards, host).way is Way.NATIVE else f" ({Way.COMPILED.value})"
    which = f"{other.name}{way}."
    return f"{found.advice} Or use {which}" if found.advice else f"Use {which}"


def instead(
    environment: Environment, catalog: Iterable[Environment], cards: Sequence[Card], host: GpuHost
) -> Environment | None:
    """The environment to use in place of one that cannot run, None where none runs.

    One that runs natively comes before one that is compiled, the same major version of TensorFlow before another, and
    then the nearest release, of two as near the newer one.
    """
    from packaging.version import Version

    def release(each: Environment) -> tuple[int, int]:
        version = Version(each.tensorflow)
        return version.major, version.minor

    major, minor = release(environment)

    def rank(each: Environment) -> tuple[int, bool, int, int, str]:
        its_major, its_minor = release(each)
        way = _BEST_FIRST.index(fit(each, cards, host).way)
        # a later major version begins where the earlier one ended
        far = abs(its_minor - minor) if its_major == major else (its_minor if its_major > major else -its_minor)
        return way, its_major != major, far, -its_minor, each.name

    able = [each for each in catalog if each.gpu_code and not fit(each, cards, host).is_impossible]
    return min(able, key=rank, default=None)


def rows(
    chosen: Iterable[Environment], catalog: Mapping[str, Environment], cards: Sequence[Card], host: GpuHost
) -> list[dict[str, Any]]:
    """How each environment with GPU code runs on the cards: its name, the way, the reason and what to do."""
    found = []
    for environment in chosen:
        if Device.GPU not in environment.devices:
            continue
        how = fit(environment, cards, host)
        told = advice(how, environment, catalog.values(), cards, host) if how.is_impossible else how.advice
        found.append({"name": environment.name, "way": how.way.value, "reason": how.reason, "advice": told})
    return found
