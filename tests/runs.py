"""Small runs and launches for tests of the store, the runner and the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.backend import BackendFacts
from harness.model.environment import Device, Environment
from harness.model.launch import Launch, Limits, Role, Sample, Sampling, Status
from harness.model.run import Group, Plan, Run
from harness.model.scenario import Cell, Comparison, Scenario

CELLS = [Cell("step", environment, Device.CPU, {"mode": "graph"}) for environment in ("old", "new")]


def launch(**changes: Any) -> Launch:
    """A launch that went well: ten steps of 10 ms."""
    base = Launch(
        group="step cpu",
        round=1,
        attempt=0,
        order=0,
        role=Role.MEASURE,
        cell=CELLS[0],
        status=Status.OK,
        started="2026-11-21T04:10:00.000+00:00",
        phases={"import": 0.5},
        samples=[Sample(0.05, 5), Sample(0.05, 5)],
        calls_per_sample=5,
        observations={"parameters": 162049},
        pins={"tensorflow": "1.14.0"},
        image="sha256:1",
    )
    return replace(base, **changes)


def plan(rounds: int = 2, groups: int = 1) -> Plan:
    """Groups of two cells: one mode of a step in two environments."""
    made = [
        Group(f"step {i}", "step", "cpu", {}, [replace(cell, axes={"mode": str(i)}) for cell in CELLS])
        for i in range(groups)
    ]
    return Plan(
        groups=made, rounds=rounds, seed=7, sampling=Sampling(warmup_seconds=0.5, measure_seconds=1.0), limits=Limits()
    )


def run() -> Run:
    """A run of that plan."""
    return Run(
        id="run",
        started="2026-11-21T04:10:00+00:00",
        command=["harness", "matrix"],
        harness="0.1.0",
        plan=plan(),
        reference="old",
        environments=[Environment(name, "1.14.0", "3.7", "2019-09-01T00:00:00Z") for name in ("old", "new")],
        scenarios=[
            Scenario(
                name="step",
                path=Path("step.py"),
                title="A step",
                source="",
                tags=[],
                axes={"mode": ["graph"]},
                requires_python=">=3.6",
                dependencies=["tensorflow"],
                compare=[Comparison(name="environments", along="environment")],
            )
        ],
        backend=BackendFacts("local"),
        host={"cpu": "a CPU", "cores": 2},
    )
