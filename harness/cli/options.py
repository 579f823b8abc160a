"""The options that `harness matrix` and `harness profile` share: what is launched, where, and on what."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion
from harness.cli.choice import BackendName
from harness.model.suite import DEFAULT_SUITE

Suite = Annotated[
    str,
    typer.Option("--suite", help=f"A named selection; {DEFAULT_SUITE} without -s.", autocompletion=completion.suites),
]
Environments = Annotated[
    list[str] | None,
    typer.Option(
        "-e",
        "--environment",
        help=f"An environment or a glob; the first is the reference. Else the suite's, or {DEFAULT_SUITE}'s.",
        autocompletion=completion.environments,
    ),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option("-s", "--scenario", help="A scenario, a glob or a file.", autocompletion=completion.scenarios),
]
Axes = Annotated[
    list[str] | None, typer.Option("-a", "--axis", help="AXIS=VALUE[,VALUE…]; globs.", autocompletion=completion.axes)
]
Backend = Annotated[BackendName, typer.Option(help="What executes the launches.")]
Gpu = Annotated[bool, typer.Option("--gpu", help="Run on a GPU: the first one, unless --gpus names others.")]
Gpus = Annotated[str, typer.Option(help="The GPUs of every launch, such as 0,1, UUIDs, or `all`; implies --gpu.")]
Cpus = Annotated[
    str, typer.Option(help="How many cores a launch gets, `all`, or a list such as 0,2-3: 1; all with --gpu.")
]
Reference = Annotated[
    str, typer.Option(help="What the others are set against; else the first.", autocompletion=completion.environments)
]
Timeout = Annotated[str, typer.Option(help="When a launch is ended: 10m.")]
Memory = Annotated[str, typer.Option(help="What a container may use; four fifths of the machine without it.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Orders the launches; drawn where left out.")]
Results = Annotated[Path, typer.Option(help="Where runs are kept.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be launched, and stop.")]
