"""Small runs in two environments, `old` and `new`, for tests of the store, the runner and the command line."""

from dataclasses import replace
from typing import Any

from harness.model.environment import Device, Environment
from harness.model.launch import Launch, Limits, Sampling
from harness.model.run import Group, Plan, Run
from harness.model.scenario import Cell, Comparison
from tests import factories

CELLS = [Cell("step", environment, Device.CPU, {"mode": "graph"}) for environment in ("old", "new")]


def launch(**changes: Any) -> Launch:
    """A launch that went well: twenty steps of 10 ms."""
    return replace(factories.launch(CELLS[0], (0.01, 0.01), group="step cpu", calls_per_sample=5), **changes)


def plan(rounds: int = 2, groups: int = 1) -> Plan:
    """Groups of two cells: one mode of a step in two environments."""
    pairs = [
        Group(f"step {i}", "step", "cpu", {}, [replace(cell, axes={"mode": str(i)}) for cell in CELLS])
        for i in range(groups)
    ]
    sampling = Sampling(warmup_seconds=0.5, measure_seconds=1.0)
    return Plan(groups=pairs, rounds=rounds, seed=7, sampling=sampling, limits=Limits())


def run() -> Run:
    compare = [Comparison("environments", along="environment")]
    return factories.run(
        CELLS,
        id="run",
        plan=plan(),
        reference="old",
        environments=[Environment(cell.environment, "1.14.0", "3.7", "2019-09-01T00:00:00Z") for cell in CELLS],
        scenarios=[factories.scenario(axes={"mode": ["graph", *map(str, range(10))]}, default={}, compare=compare)],
    )
