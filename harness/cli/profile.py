"""`harness profile`: where the time goes, in launches of their own under a profiler."""

from pathlib import Path
from typing import Annotated

import typer

from harness.backends.registry import AUTO
from harness.cli import options
from harness.model.suite import DEFAULT_SUITE


def profile(  # noqa: PLR0917 - typer reads a command's options from its parameters
    suite: options.Suite = "",
    environments: options.Environments = None,
    scenarios: options.Scenarios = None,
    axes: options.Axes = None,
    calls: Annotated[int, typer.Option(min=1, help="How many calls after the first are profiled.")] = 50,
    backend: options.Backend = AUTO,
    gpu: options.Gpu = False,
    gpus: options.Gpus = "",
    cpus: options.Cpus = "",
    reference: options.Reference = "",
    timeout: options.Timeout = "",
    memory: options.Memory = "",
    seed: options.Seed = None,
    results: options.Results = Path("results"),
    dry_run: options.DryRun = False,
) -> None:
    """Profile scenarios over environments, the first call and later ones apart, and report where the time goes."""
    from harness.cli import profiling
    from harness.cli.request import Request

    request = Request(
        suite=suite or ("" if scenarios else DEFAULT_SUITE),
        environments=environments or [],
        scenarios=scenarios or [],
        axes=axes or [],
        gpu=gpu,
        gpus=gpus,
        cpus=cpus,
        reference=reference,
        timeout=timeout,
        memory=memory,
        seed=seed,
    )
    if dry_run:
        profiling.show_plan(request)
        raise typer.Exit(0)
    raise typer.Exit(profiling.profile(request, backend, results, calls))
