"""The phases of a cell's launches, and what they used: each with its spread over launches."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.shape import Quantity, quantile
from harness.model.launch import Launch

#: The phases in the order in which a launch goes through them; others follow as they were met.
BEFORE = ("container start", "interpreter start", "import", "device", "first fill", "build", "first call")
TIMED = ("warm up", "steady state")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, p10 and p90 over launches, of `launches` of them."""

    median: float
    low: float
    high: float
    launches: int


@dataclass(frozen=True, slots=True)
class Resource:
    """What a launch used: its name, what it is of, how much one launch tells of (None: nothing), what that means."""

    name: str
    quantity: Quantity
    of: Callable[[Launch], float | None]
    legend: str = ""


def _cores(launch: Launch) -> float | None:
    cpu, wall = (launch.resources.get(name) for name in ("steady_cpu_seconds", "steady_seconds"))
    return cpu / wall if cpu is not None and wall else None


#: What is told of a cell's launches. One more is one more line here: tables, page and JSON have it then.
RESOURCES = (
    Resource(
        "cores in the steady state",
        Quantity.NUMBER,
        _cores,
        "Cores: CPU seconds over wall seconds while steps were timed.",
    ),
    Resource(
        "CPU of the launch",
        Quantity.SECONDS,
        lambda launch: launch.resources.get("cpu_seconds"),
        "CPU seconds and peak memory are those of the whole launch, the import included.",
    ),
    Resource("peak memory", Quantity.BYTES, lambda launch: launch.resources.get("max_rss_bytes")),
)


@dataclass(frozen=True, slots=True)
class Used:
    """A cell's phases and resources. What no launch told is not there.

    `phases` are seconds by name, without the timed ones; `cold` is their sum, launch by launch: from the request to the
    end of the first call. `resources` are the RESOURCES by name.
    """

    phases: Mapping[str, Spread]
    cold: Spread | None
    resources: Mapping[str, Spread]


def used(launches: Sequence[Launch]) -> Used:
    """What one cell's launches that gave a number went through and used."""
    names = in_order(name for launch in launches for name in launch.phases if name not in TIMED)
    phases = {name: spread([launch.phases[name] for launch in launches if name in launch.phases]) for name in names}
    resources = {
        each.name: spread([value for launch in launches if (value := each.of(launch)) is not None])
        for each in RESOURCES
    }
    return Used(
        phases={name: each for name, each in phases.items() if each},
        cold=spread([_cold(launch) for launch in launches if launch.phases]),
        resources={name: each for name, each in resources.items() if each},
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Each phase once: the known ones as launches go through them, then the others as they were met."""
    met = dict.fromkeys(names)
    return [*(name for name in BEFORE if name in met), *(name for name in met if name not in BEFORE)]


def spread(values: Sequence[float]) -> Spread | None:
    """Median, p10 and p90 of values; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(statistics.median(ordered), quantile(ordered, 0.1), quantile(ordered, 0.9), len(ordered))


def _cold(launch: Launch) -> float:
    return sum(seconds for name, seconds in launch.phases.items() if name not in TIMED)
