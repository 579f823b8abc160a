"""A scenario that observes and times nothing, and runs of it."""

from collections.abc import Sequence
from typing import Any

from harness.model.environment import Device, Environment
from harness.model.launch import Launch
from harness.model.run import Run, Stop, StopReason
from harness.model.scenario import Cell, Expectation
from tests.factories import launch, run, scenario

EXPECT = [
    Expectation("traces", [1, 2], {"experiment": "retracing"}, ()),
    Expectation("raises", "TypeError", {"experiment": "assignment"}, ("tensorflow>=2",)),
]
OBSERVER = scenario(
    "behaviour",
    title="How functions behave",
    axes={"experiment": ["retracing", "assignment"]},
    default={},
    compare=[],
    expect=EXPECT,
)
#: The environments of `example`, all that tests.factories has.
NAMES = ["tf1.14", "tf2.0", "tf2.1"]


def observer(environment: str, experiment: str = "retracing") -> Cell:
    return Cell("behaviour", environment, Device.CPU, {"experiment": experiment})


def example(traces: Sequence[Any] = ([1, 2], [1, 2], [1, 3]), **changes: Any) -> tuple[Run, list[Launch]]:
    """Two experiments in three environments; nothing is timed."""
    observed = {observer(name): {"traces": value, "kind": "graph"} for name, value in zip(NAMES, traces, strict=True)}
    observed |= {observer(name, "assignment"): {"raises": "TypeError"} for name in NAMES}
    planned = run(observed, scenarios=[OBSERVER], **changes)
    stops = {group.name: Stop(StopReason.OBSERVED, 0) for group in planned.plan.groups}
    planned = run(observed, scenarios=[OBSERVER], stops=stops, **changes)
    return planned, [launch(member, (), 0, observations=values) for member, values in observed.items()]


def many(kinds: Sequence[Any], name: str = "kind") -> tuple[Run, list[Launch]]:
    """One experiment in as many environments, each with what it observed under that name."""
    environments = [Environment(f"e{n}", f"2.{n}.0", "3.8", "") for n in range(len(kinds))]
    observed = {observer(environment.name): {name: kind} for environment, kind in zip(environments, kinds, strict=True)}
    pins = {environment.name: {"tensorflow": environment.tensorflow} for environment in environments}
    planned = run(observed, scenarios=[OBSERVER], environments=environments, pins=pins)
    return planned, [launch(member, (), 0, observations=values) for member, values in observed.items()]
