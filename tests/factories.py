"""Small runs and launches for tests: `scenario()`, `run()`, `launch()`, `rounds()`; every argument has a default."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.backend import BackendFacts
from harness.model.environment import Device, Environment
from harness.model.launch import Launch, Limits, Role, Sample, Sampling, Status
from harness.model.run import RULES, Group, Machine, Plan, Run, Stop, StopReason, Unavailable
from harness.model.scenario import Cell, Comparison, Pick, Scenario

STARTED = "2026-11-21T04:10:00Z"

ENVIRONMENTS = [
    Environment("tf1.14", "1.14.0", "3.7", "2019-09-01T00:00:00Z", keras="2.2.5"),
    Environment("tf2.0", "2.0.0", "3.7", "2019-11-01T00:00:00Z", keras="2.3.1"),
    Environment("tf2.1", "2.1.0", "3.7", "2020-02-01T00:00:00Z", keras="2.3.1"),
]

#: What a launch went through, and what it used, undisturbed by others, in a steady state of one second.
PHASES = {
    "container start": 0.31,
    "interpreter start": 0.042,
    "import": 1.24,
    "device": 0.055,
    "build": 0.12,
    "first call": 0.33,
    "warm up": 0.5,
    "steady state": 1.0,
}
RESOURCES = {
    "cpu_seconds": 3.4,
    "max_rss_bytes": 412 * 1024.0**2,
    "steady_seconds": 1.0,
    "steady_cpu_seconds": 0.99,
    "steady_own_cpus": 1.0,
    "steady_own_cpus_busy_seconds": 1.0,
    "steady_all_cpus": 2.0,
    "steady_all_cpus_busy_seconds": 1.02,
}

COMPARE = [
    Comparison("TF 2 against TF 1", along="environment"),
    Comparison("graph against eager", along="mode", plus="graph", against="eager"),
    Comparison(
        "each release's default mode",
        along="environment",
        pick=[Pick(["tensorflow<2"], {"mode": "graph"}), Pick(["tensorflow>=2"], {"mode": "eager"})],
    ),
]


def scenario(name: str = "step", **changes: Any) -> Scenario:
    """A scenario with the row axes `call` and `dtype` (which has a default) and the compared axis `mode`."""
    fields: dict[str, Any] = {
        "name": name,
        "path": Path(f"{name}.py"),
        "title": "One training step",
        "source": "https://example.org/question/1",
        "tags": [],
        "axes": {"call": ["fit", "train_on_batch"], "dtype": ["float32", "float64"], "mode": ["graph", "eager"]},
        "requires_python": ">=3.6",
        "dependencies": ["tensorflow"],
        "default": {"dtype": "float32"},
        "compare": COMPARE,
    }
    return Scenario(**{**fields, **changes})


def cell(environment: str = "tf1.14", *, of: str = "step", device: Device = Device.CPU, **axes: str) -> Cell:
    """A cell of `scenario()`: `cell("tf2.0", mode="eager")`."""
    return Cell(of, environment, device, {"call": "fit", "dtype": "float32", "mode": "graph", **axes})


def contended(share: float) -> dict[str, float]:
    """What a launch uses that is ready to run all the time, and does not get its only core for this share of it."""
    return {
        "steady_seconds": 10.0,
        "steady_cpu_seconds": 10.0 * (1.0 - share),
        "steady_waited_seconds": 10.0 * share,
        "steady_own_cpus": 1.0,
        "steady_own_cpus_busy_seconds": 10.0,
    }


def cells(
    environments: Sequence[str] = ("tf1.14", "tf2.0"),
    calls: Sequence[str] = ("fit",),
    modes: Sequence[str] = ("graph", "eager"),
) -> list[Cell]:
    """Every combination, group by group."""
    return [cell(e, call=call, mode=mode) for call in calls for e in environments for mode in modes]


def groups(members: Iterable[Cell], compared: Sequence[str] = ("mode",), *, controlled: bool = False) -> list[Group]:
    """The cells in groups that differ in environment and the compared axes only; the first of each is its control."""
    members_by_name: dict[str, list[Cell]] = {}
    for member in members:
        shared = [f"{axis}={value}" for axis, value in member.axes.items() if axis not in compared]
        members_by_name.setdefault(" ".join([member.scenario, member.device.value, *shared]), []).append(member)
    return [
        Group(
            name=name,
            scenario=part[0].scenario,
            device=part[0].device.value,
            axes={axis: value for axis, value in part[0].axes.items() if axis not in compared},
            cells=part,
            control=part[0] if controlled else None,
        )
        for name, part in members_by_name.items()
    ]


def run(
    planned: Iterable[Cell] | None = None,
    *,
    unavailable: Sequence[Unavailable] = (),
    scenarios: Sequence[Scenario] | None = None,
    controlled: bool = False,
    asked: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Run:
    """A run of `planned` (all of `cells()` by default), five rounds, seed 7; `asked` changes its plan."""
    planned = cells() if planned is None else list(planned)
    named = {c.environment for c in planned} | {entry.cell.environment for entry in unavailable}
    fields: dict[str, Any] = {
        "id": "2026-11-21T04-10-00Z-3f2a",
        "started": STARTED,
        "command": ["harness", "matrix", "-s", "step"],
        "harness": "0.1.0",
        "plan": Plan(
            **{
                "groups": groups(planned, controlled=controlled),
                "rounds": 5,
                "seed": 7,
                "sampling": Sampling(warmup_seconds=0.5, measure_seconds=1.0),
                "limits": Limits(cpus=(0,)),
                "unavailable": unavailable,
                **(asked or {}),
            }
        ),
        "reference": "tf1.14",
        "environments": [known for known in ENVIRONMENTS if known.name in named],
        "scenarios": scenarios or [scenario()],
        "backend": BackendFacts("docker", why="An engine answers.", engine="26.1.5"),
        "host": {"cpu": "Some CPU", "cores": 2, "memory_bytes": 8 * 1024**3, "kernel": "Linux 6.1"},
        "commit": "0123abcd",
        "rules": RULES,
        "images": dict.fromkeys(sorted(named), "sha256:" + "ab" * 32),
        "pins": {
            known.name: {"tensorflow": known.tensorflow, "keras": known.keras, "numpy": "1.17.4", "six": "1.13.0"}
            for known in ENVIRONMENTS
            if known.name in named
        },
    }
    return Run(**{**fields, **changes})


def complete(of: Run, rounds: int = 5) -> Run:
    """Return the run, each of whose groups has ended after these rounds."""
    return replace(of, stops={group.name: Stop(StopReason.ROUNDS, rounds) for group in of.plan.groups})


def nightly_run(day: str, **changes: Any) -> Run:
    """Return a complete run of `cells()` by the machine `lab`, which started on a day such as 2026-11-03."""
    started = {"id": f"{day}T04-10-00Z-aaaa", "started": f"{day}T04:10:00+00:00"}
    return complete(run(controlled=True, **{**started, "machine": Machine("m-00000001", "lab"), **changes}))


def launch(
    of: Cell, seconds: float | Sequence[float] = 0.01, number: int = 1, took: float = 0.0, **changes: Any
) -> Launch:
    """A launch of round `number` with samples of 10 steps, each step taking `seconds` (one sample for each)."""
    rates = [seconds] if isinstance(seconds, int | float) else seconds
    fields: dict[str, Any] = {
        "group": groups([of])[0].name,
        "round": number,
        "attempt": 0,
        "order": 0,
        "role": Role.MEASURE if number else Role.PILOT,
        "cell": of,
        "status": Status.OK,
        "started": STARTED,
        "seconds": took,
        "samples": [Sample(rate * 10, 10) for rate in rates],
    }
    return Launch(**{**fields, **changes})


def broken(of: Cell, status: Status, number: int = 0, **changes: Any) -> Launch:
    """A launch that ended as `status`, with no sample; the pilot by default."""
    return launch(of, (), number, status=status, **changes)


def growing(of: Cell, first: float = 0.01, last: float = 0.03, count: int = 5, **changes: Any) -> list[Launch]:
    """Launches of a step that takes longer each time, after a warm-up of 50 steps: 20 samples from `first` to `last`.

    From one launch to the next they differ by a thousandth.
    """
    rates = [first + (last - first) * at / 19 for at in range(20)]
    resources = {"resources": {**RESOURCES, "warmup_steps": 50.0}} | changes
    return [
        launch(of, [rate * (1.0 + number % 3 / 1000) for rate in rates], number, **resources)
        for number in range(1, count + 1)
    ]


def rounds(
    seconds: Mapping[Cell, float],
    count: int = 5,
    spread: float = 0.02,
    seed: int = 1,
    *,
    controls: Mapping[Cell, float] | None = None,
    **changes: Any,
) -> list[Launch]:
    """A pilot and `count` rounds; each centre is its cell's `seconds` times log-normal noise of that spread.

    `controls` are launched once more in every round, taking those seconds. `changes` are every launch's own.
    """
    draw = random.Random(seed)
    roles = {Role.MEASURE: seconds, Role.CONTROL: controls or {}}
    return [
        launch(of, rate * math.exp(draw.gauss(0.0, spread)), number, role=role if number else Role.PILOT, **changes)
        for number in range(count + 1)
        for role, cells_of_role in roles.items()
        for of, rate in cells_of_role.items()
        if number or role is Role.MEASURE
    ]


def in_blocks(
    seconds: Mapping[Cell, float], count: int = 4, *, met: float = 0.3, spread: float = 0.0, seed: int = 1
) -> list[Launch]:
    """`count` rounds of one group in two blocks, without a pilot; what each met scatters by `met`.

    The first cell is the control: twice in the first block, beside the first half of the others, and once in the
    second. Launches scatter by `spread`.
    """
    draw = random.Random(seed)
    control, *others = seconds
    half = len(others) // 2
    first = [(control, Role.MEASURE), (control, Role.CONTROL), *((other, Role.MEASURE) for other in others[:half])]
    second = [(control, Role.CONTROL), *((other, Role.MEASURE) for other in others[half:])]
    launches = []
    for number in range(1, count + 1):
        for block, slots in enumerate([first, second]):
            slower = draw.gauss(0.0, met)
            launches += [
                launch(of, seconds[of] * math.exp(slower + draw.gauss(0.0, spread)), number, role=role, block=block)
                for of, role in slots
            ]
    return launches


def in_turns(
    seconds: Mapping[Cell, float],
    count: int = 4,
    *,
    turns: int = 20,
    within: float = 0.05,
    between: float = 0.01,
    alone: Mapping[Cell, float] | None = None,
    seed: int = 1,
    **changes: Any,
) -> list[Launch]:
    """`count` rounds of one group that took turns, in an order drawn for each, the first cell launched twice.

    Launches scatter by `between`, turns by 0.1, and samples by `within`. In every fourth turn two samples follow, in
    which a cell takes as many times as long as `alone` says.
    """
    draw = random.Random(seed)
    slots = [(of, Role.MEASURE) for of in seconds] + [(next(iter(seconds)), Role.CONTROL)]
    launches = []
    for number in range(1, count + 1):
        rates = [seconds[of] * math.exp(draw.gauss(0.0, between)) for of, _ in slots]
        samples: list[list[float]] = [[] for _ in slots]
        places: list[list[int]] = [[] for _ in slots]
        for _ in range(turns):
            order, met = draw.sample(range(len(slots)), len(slots)), draw.gauss(0.0, 0.1)
            for place, index in enumerate(order):
                noise = math.exp(met + draw.gauss(0.0, within))
                samples[index].append(rates[index] * noise)
                places[index].append(place)
        for (of, role), mine, at in zip(slots, samples, places, strict=True):
            follows = [turn for turn in range(2, turns, 4) for _ in range(2)]
            by_itself = (alone or {}).get(of, 1.0)
            seconds_alone = [mine[turn] * by_itself * math.exp(draw.gauss(0.0, within / 4.0)) for turn in follows]
            later = [Sample(100 * seconds, 100) for seconds in seconds_alone]
            launches.append(launch(of, mine, number, role=role, places=at, alone=later, follows=follows, **changes))
    return launches
