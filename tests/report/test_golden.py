"""Whole reports of small runs, as a reader has them: in Markdown, and in a terminal.

tests/test_examples.py has whole reports of stored runs: with claims, sweeps, and other quantities.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.gpu import UsedGpu
from harness.model.launch import Interleave, Launch
from harness.model.run import Run, StandIn, Stop, StopReason
from harness.model.scenario import OWN, PEAK, PRINTED, STEP, Cell, Comparison
from harness.report import sections
from harness.report.formats import md
from harness.report.terminal import show
from tests.factories import RESOURCES, cell, cells, in_turns, launch, rounds, run, scenario
from tests.observing import example as observed
from tests.report.formats.examples import example

Stored = tuple[Run, Sequence[Launch]]

SECONDS = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def unavailable_and_disturbed() -> Stored:
    # A cell ran out of memory, an environment cannot be had, and a round was repeated
    return example()


def interleaved() -> Stored:
    # Launches that took turns, of which one is slower by itself, and used the core between its turns
    between = {"between_seconds": 10.0, "between_cpu_seconds": 0.4}
    launches = in_turns(SECONDS, within=0.01, alone={cell("tf2.0"): 1.1}, resources=between)
    return run(SECONDS, controlled=True, asked={"interleave": Interleave.TURNS}), launches


def on_a_gpu() -> Stored:
    # A GPU that stands still most of the time, with locked clocks and a release that stands in for another
    old, new = (cell(environment, device=Device.GPU) for environment in ("tf1.14", "tf2.0"))
    card = {"name": "NVIDIA A100", "power_limit_watts": 250.0, "power_limit_default_watts": 400.0}
    profiled = {"profiled_steps": 10.0, "profiled_seconds": 1.0, "profiled_plain_seconds": 1.0}
    profiled |= {"profiled_copy_seconds": 0.02, "profiled_kernels": 4120.0, "profiled_copies": 20.0}
    kernels = {old: {"profiled_kernel_seconds": 0.071}, new: {"profiled_kernel_seconds": 0.9}}
    kernels[new]["profiled_launch_seconds"] = 0.31
    clocks = {"gpu_steady": 1.0, "gpu_sm_clock_mhz": 1408.0, "gpu_energy_joules": 0.5, "gpu_throttled_share": 0.0}
    planned = run(
        [old, new],
        host={"cpu": "Some CPU", "gpus": [card]},
        asked={
            "lock_clocks": "1410",
            "compiled": {"tf2.0": "compiled at first start"},
            "stand_ins": [StandIn("tf2.0", "tf2.9", "A card", "it has no code", pins={"tensorflow": "2.9.0"})],
        },
    )
    launches = [
        replace(launch, resources={**RESOURCES, **clocks, **({} if launch.round else profiled | kernels[launch.cell])})
        for launch in rounds({old: 0.01, new: 0.03}, gpus=[UsedGpu("NVIDIA A100", (8, 0))])
    ]
    return planned, launches


def observations() -> Stored:
    # A scenario that observes and times nothing, in which one statement of its source does not stand
    return observed()


def continued() -> Stored:
    # A run that was looked at, continued, and ended by its precision, by older rules
    planned = run(SECONDS, asked={"precision": 0.02, "rounds": 100}, rules=5)
    stops = {group.name: Stop(StopReason.PRECISION, 5) for group in planned.plan.groups}
    looks = [dict.fromkeys(stops, 2), dict.fromkeys(stops, 4)]
    return replace(planned, looks=looks, stops=stops), rounds(SECONDS)


def unclear_and_unfinished() -> Stored:
    # A budget ended one group, and left out the other; other processes disturbed every round
    seconds = {**SECONDS, cell("tf2.0"): 0.0102}
    planned = run(
        [*seconds, *cells(calls=["predict"])], suite="quick", asked={"budget_seconds": 90.0, "budget_is_wish": True}
    )
    stops = [Stop(StopReason.BUDGET, 3), Stop(StopReason.BUDGET, 0)]
    stops_by_group = {group.name: stop for group, stop in zip(planned.plan.groups, stops, strict=True)}
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    return replace(planned, stops=stops_by_group), rounds(seconds, 3, resources=noisy)


def nothing_compared() -> Stored:
    # A single cell, whose scenario is the user's, with artifacts that were not kept
    one = cell()
    planned = run([one], scripts={"step": 'print("a step")\n'})
    return planned, rounds({one: 0.01}, 3, not_kept=["a: not a regular file", "b: deeper than 8 folders"])


def plain_script() -> Stored:
    # A script whose output, memory and printed number are compared
    sides = [Cell("mine", environment, Device.CPU, {}) for environment in ("tf1.14", "tf2.0")]
    member = (STEP, OWN, PEAK, f"{PRINTED}loss")
    compare = [Comparison(quantity, along="environment", of=quantity) for quantity in member]
    mine = scenario("mine", title="mine.py", axes={}, default={}, compare=compare, script="mine.py")
    launches = [
        launch(
            member,
            factor / 10 * (1 + number / 1e4),
            number,
            phases={"import": 0.05 * factor, OWN: 0.05},
            resources={"max_rss_bytes": 1e9},
            observations={
                f"{PRINTED}loss": 3.0 * factor,
                "output": {"lines": [f"loss {3 * factor}"], "count": 1, "sha256": str(factor)},
            },
        )
        for number in range(1, 6)
        for factor, member in enumerate(sides, 1)
    ]
    return run(sides, scenarios=[mine]), launches


RUNS: Sequence[Callable[[], Stored]] = (
    unavailable_and_disturbed,
    interleaved,
    on_a_gpu,
    observations,
    continued,
    unclear_and_unfinished,
    nothing_compared,
    plain_script,
)


@pytest.mark.parametrize("stored", RUNS, ids=lambda stored: stored.__name__)
def test_a_report_has_these_words(stored, golden):
    results = Results(*stored())
    terminal = io.StringIO()
    show(sections.build(results), Console(file=terminal, width=120))
    lines = "\n".join(line.rstrip() for line in terminal.getvalue().splitlines())
    assert f"{md.render(results)}\n# In a terminal\n\n```\n{lines}\n```\n" == golden
