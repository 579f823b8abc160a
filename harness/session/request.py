"""Requests for runs. Each field defines the name, the help text and the parser of its option.

This module must be fast to import, because the command line makes its options from these fields, also for `--help`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from harness.model.backend import GpuWay
from harness.model.defaults import MARGIN, MOST_CLAIM_ROUNDS, MOST_ROUNDS, PROFILED_CALLS, ROUNDS, TIMEOUT
from harness.model.environment import Device
from harness.model.launch import Clock, Interleave, Protocol
from harness.model.run import Shard
from harness.model.scenario import DEFAULT_SUITE
from harness.plan.selection import parse_axes
from harness.session.options import (
    AUTO,
    FieldOption,
    GpuOption,
    MachineOption,
    MachinesOption,
    Option,
    OutputOption,
    PrecisionOption,
    format_length,
    format_seconds,
    format_share,
    read_clock,
    read_devices,
    read_length,
    read_on,
    read_seconds,
    read_shard,
    read_share,
    read_size,
    read_slots,
    split_names,
)

#: The help of --slots, without shards.
SLOTS = (
    "Measure in several slots of the machine at once. Each slot has its own cores, and one of --gpus. `auto` uses as "
    "many slots as `harness fleet check` found safe."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """The common fields of all requests: the cells, the machine and the GPUs.

    If neither a suite nor scenarios are given, the suite is `headline`. If no environments are given, the suite's
    environments are used. `cpus` is a number of cores, `all`, or a list such as `0,2-3`. `timeout` is in seconds
    (default: TIMEOUT), and `memory` is in bytes (default: 80 % of the machine's memory).
    """

    suite: Annotated[
        str, Option(f"A named selection of cells. Default: {DEFAULT_SUITE}, unless -s is passed.", metavar="NAME")
    ] = ""
    environments: Annotated[
        Sequence[str],
        Option(
            "Environments or globs, such as tf1.14,tf2.*. To list them: `harness images list`. The first one is the "
            "baseline. Default: the suite's environments. With --gpu, others replace the suite's environments that the "
            "GPU can't run.",
            ("-e", "--env", "--environment"),
            split_names,
            metavar="NAME,...",
        ),
    ] = ()
    scenarios: Annotated[
        Sequence[str],
        Option(
            "Scenarios, globs or files. To list them: `harness scenarios list`.",
            ("-s", "--scenario"),
            split_names,
            metavar="NAME,...",
        ),
    ] = ()
    axes: Annotated[
        Mapping[str, Sequence[str]],
        Option(
            "Values of an axis, or globs, such as mode=graph,eager. The axis cpus sets the number of cores: cpus=1,2.",
            ("-a", "--axis"),
            lambda typed, _: parse_axes(typed),
            metavar="AXIS=VALUE,...",
        ),
    ] = field(default_factory=dict)
    repository: Annotated[
        str,
        Option(
            "The folder or address of the repository that contains REVISION in -e tf2.21+keras@REVISION. Default: the "
            "repository of the package.",
            metavar="FOLDER",
        ),
    ] = ""
    backend: Annotated[str, MachineOption("The backend that runs the launches.")] = "auto"
    trust: Annotated[
        bool,
        MachineOption(
            "Don't ask before running other people's code without a container (--backend local, or Docker isn't "
            "running). It then has your rights."
        ),
    ] = False
    gpu: Annotated[bool, GpuOption("Run on the first GPU. To select other GPUs, pass --gpus.")] = False
    gpus: Annotated[
        str, GpuOption("The GPUs of every launch: numbers such as 0,1, UUIDs, or `all`. Implies --gpu.", metavar="0,1")
    ] = ""
    gpu_via: Annotated[
        GpuWay | None,
        GpuOption(
            "How containers get GPUs: by CDI, by the runtime nvidia, or by the engine's device driver. Default: the "
            "first of these that works. Implies --gpu."
        ),
    ] = None
    cpus: Annotated[
        str,
        MachineOption(
            "The cores of each launch: a count, `all`, or a list such as 0,2-3.",
            shown="1, or all with --gpu",
            metavar="0,2-3",
        ),
    ] = ""
    share: Annotated[
        bool,
        MachineOption(
            "Give launches no priority over other work on their CPUs. Other people's work isn't slowed, but results "
            "can be less precise."
        ),
    ] = False
    reference: Annotated[str, Option("The baseline environment. Default: the first one.", metavar="NAME")] = ""
    timeout: Annotated[
        float | None,
        MachineOption(
            "Stop a launch that takes longer than this.",
            read=read_seconds,
            text=format_seconds,
            shown=format_length(TIMEOUT),
            metavar=format_length(TIMEOUT),
        ),
    ] = None
    memory: Annotated[
        int | None,
        MachineOption(
            "The memory limit of a container, such as 8g. Default: 80 % of the machine's memory.",
            read=read_size,
            text="{}b".format,
            metavar="8g",
        ),
    ] = None
    claims: Annotated[
        Sequence[str],
        Option(
            "Measure only the cells for the claims of these issues, such as T#40261. To list them: `harness repro "
            "list`. They are measured in the claimed "
            "environments, in the newest environment, and in the environments of -e.",
            ("--claim",),
            split_names,
            metavar="ISSUE,...",
        ),
    ] = ()
    seed: Annotated[int | None, PrecisionOption("The seed for the order of launches. Default: random.", least=0)] = None
    results: Annotated[Path, OutputOption("The folder for runs.", shown="results", metavar="FOLDER")] = Path("results")

    def command(self) -> list[str]:
        """Return the command line of the same request."""
        arguments = ["harness", "profile" if isinstance(self, ProfileRequest) else "matrix"]
        default_request = type(self)()
        for name, option in options(type(self)).items():
            value = getattr(self, name)
            if value != getattr(default_request, name):
                arguments += option.words(value)
        return arguments


def options(kind: Any) -> dict[str, FieldOption]:
    """Return the options of a request's class, by field.

    A field without an `Option` has the option of the field with the same name in `Request`, if there is one.
    """
    hints, shared_hints = (get_type_hints(owner, include_extras=True) for owner in (kind, Request))
    by_name = {}
    for name in (attribute.name for attribute in fields(kind)):
        hint = hints[name]
        if get_origin(hint) is Annotated:
            by_name[name] = FieldOption(name, *get_args(hint))
        elif name in shared_hints:
            by_name[name] = FieldOption(name, hint, get_args(shared_hints[name])[1])
    return by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(LaunchRequest):
    """A request for a run of `harness matrix`.

    `precision` and `margin` are shares: 0.03 is 3 %. `budget`, `warmup` and `measure` are in seconds. If `warmup` or
    `measure` is None, the suite determines the length, or otherwise the pilot of each group. If `budget_is_wish` is
    true, each group gets the rounds that a verdict needs, even if they take longer than the budget. `harness run` sets
    it for its default budget.
    """

    rounds: Annotated[
        int | None,
        PrecisionOption(
            f"The number of launches of each cell after the pilot. With --resume, it includes earlier launches. "
            f"Default: at most {MOST_ROUNDS} with --precision or --budget, at most {MOST_CLAIM_ROUNDS} with --claim, "
            f"otherwise the suite's number, or {ROUNDS}.",
            least=1,
        ),
    ] = None
    precision: Annotated[
        float | None,
        PrecisionOption(
            "Measure until every ratio has a certain verdict, or an interval that extends at most this far to each "
            "side, such as 2%.",
            read=read_share,
            text=format_share,
            metavar="2%",
        ),
    ] = None
    budget: Annotated[
        float | None,
        PrecisionOption(
            "End after about this time, such as 10m, but measure at least one round. With --resume, the time starts "
            "now. The budget of a suite isn't strict: every comparison gets the rounds that a verdict needs.",
            read=read_seconds,
            text=format_seconds,
            metavar="10m",
        ),
    ] = None
    budget_is_wish: Annotated[
        bool,
        PrecisionOption("The budget can be exceeded, like the budget of a suite.", ("--budget-is-wish",), hidden=True),
    ] = False
    margin: Annotated[
        float,
        PrecisionOption(
            "The smallest relative difference that counts as faster or slower.",
            read=read_share,
            text=format_share,
            shown=format_share(MARGIN),
            metavar=format_share(MARGIN),
        ),
    ] = MARGIN
    sampling: Annotated[
        Protocol,
        PrecisionOption(
            "Measure for a time (`time`), or for the iterations of the source document (`document`).",
            shown=Protocol.TIME.value,
        ),
    ] = Protocol.TIME
    clock: Annotated[
        Clock,
        PrecisionOption(
            "Measure wall-clock time (`wall`), or CPU time (`cpu`), which other processes affect less.",
            shown=Clock.WALL.value,
        ),
    ] = Clock.WALL
    interleave: Annotated[
        Interleave | None,
        PrecisionOption(
            "Interleave the cells of a round (`turns`), or run one launch after the other (`launches`). Default: "
            "`turns` if a launch has one CPU core."
        ),
    ] = None
    device: Annotated[
        Sequence[Device],
        GpuOption(
            "Measure on the `cpu`, on a `gpu`, or on both: cpu,gpu compares the GPU with the CPU in each environment.",
            read=read_devices,
            metavar="cpu,gpu",
        ),
    ] = ()
    lock_clocks: Annotated[
        str,
        GpuOption(
            "Lock the GPUs' clocks for the run, at a speed in MHz, or at `base`, which a GPU can hold under any load. "
            "Needs root.",
            read=read_clock,
            metavar="MHZ",
        ),
    ] = ""
    warmup: Annotated[
        float | None,
        PrecisionOption(
            "The warm-up time of a launch, 0s or more. With `auto`, the pilot of each group determines it.",
            read=partial(read_length, or_none=True),
            text=format_seconds,
            shown=AUTO,
            metavar="0.5s",
        ),
    ] = None
    measure: Annotated[
        float | None,
        PrecisionOption(
            "The measurement time of a launch. With `auto`, the pilot of each group determines it.",
            read=read_length,
            text=format_seconds,
            shown=AUTO,
            metavar="0.5s",
        ),
    ] = None
    shard: Annotated[
        Shard | None,
        MachinesOption(
            "Measure one part of the plan: 2/5 is part 2 of 5. Measure the other parts elsewhere, then use `harness "
            "merge`.",
            read=read_shard,
            metavar="2/5",
        ),
    ] = None
    balance: Annotated[
        Path | None,
        MachinesOption(
            "Distribute groups over shards by their duration in this run, or with `even` by their number of cells. "
            "Pass the same run for every shard.",
            metavar="RUN",
        ),
    ] = None
    on: Annotated[
        str,
        MachinesOption(
            "Measure in shards on several machines. ssh://HOST,USER@HOST: SSH hosts. http://HEAD:8265: a Ray cluster. "
            "ray: the Ray cluster of RAY_ADDRESS.",
            read=read_on,
            metavar="ADDRESS",
        ),
    ] = ""
    slots: Annotated[
        str, MachineOption(f"{SLOTS} With --shard, measure the shard in a free slot.", read=read_slots, metavar="N")
    ] = ""
    try_anyway: Annotated[
        bool,
        GpuOption(
            "Also launch the environments of -e that can't run on the GPU according to the catalog. Their launches "
            "may fail, stop responding, or compute wrong results."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest(LaunchRequest):
    """A request for a run of `harness profile`, which records function profiles and no times."""

    calls: Annotated[
        int, PrecisionOption("The number of calls to profile after the first one.", least=1, shown=str(PROFILED_CALLS))
    ] = PROFILED_CALLS


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """The request to compare two runs."""

    margin: float = MARGIN
    any_host: Annotated[bool, Option("Also compare runs from different machines.")] = False
