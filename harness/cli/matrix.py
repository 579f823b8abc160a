"""`harness matrix`: a command as a list of steps, each given what the ones before it made."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.choice import BackendName
from harness.model.errors import UsageError
from harness.model.job import Protocol

DEFAULT_SUITE = "headline"


def matrix(  # noqa: PLR0917 - typer reads a command's options from its parameters
    suite: Annotated[str, typer.Option("--suite", help=f"A named selection; {DEFAULT_SUITE} without -s.")] = "",
    environments: Annotated[
        list[str] | None,
        typer.Option("-e", "--environment", help="An environment or a glob; the first is the reference."),
    ] = None,
    scenarios: Annotated[
        list[str] | None, typer.Option("-s", "--scenario", help="A scenario, a glob or a file.")
    ] = None,
    axes: Annotated[list[str] | None, typer.Option("-a", "--axis", help="AXIS=VALUE[,VALUE…]; globs.")] = None,
    backend: Annotated[BackendName, typer.Option(help="What executes the launches.")] = BackendName.AUTO,
    cpus: Annotated[str, typer.Option(help="How many cores a launch gets, `all`, or a list such as 0,2-3.")] = "1",
    rounds: Annotated[int, typer.Option(min=1, help="How often each cell is launched, after the pilot.")] = 5,
    sampling: Annotated[Protocol, typer.Option(help="Bounded by time, or the source document's iterations.")] = (
        Protocol.TIME
    ),
    warmup: Annotated[str, typer.Option(help="How long a launch warms up.")] = "500ms",
    measure: Annotated[str, typer.Option(help="How long a launch measures.")] = "1500ms",
    timeout: Annotated[str, typer.Option(help="When a launch is ended.")] = "10m",
    memory: Annotated[str, typer.Option(help="What a container may use; four fifths of the machine without it.")] = "",
    seed: Annotated[int | None, typer.Option(min=0, help="Orders the rounds; drawn where left out.")] = None,
    results: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("results"),
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be launched, and stop.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan or the launches as JSON on stdout.")] = False,
) -> None:
    """Measure scenarios over environments, in interleaved rounds, and report."""
    from harness.cli import session
    from harness.cli.request import Request

    if resume is not None:
        if suite or environments or scenarios or axes or dry_run or seed is not None:
            raise UsageError(
                "--resume goes on with the run's own plan: it takes no selection, no seed and no --dry-run."
            )
        raise typer.Exit(session.resume(resume, backend, json=json))
    request = Request(
        suite=suite or ("" if scenarios else DEFAULT_SUITE),
        environments=environments or [],
        scenarios=scenarios or [],
        axes=axes or [],
        cpus=cpus,
        rounds=rounds,
        protocol=sampling,
        warmup=warmup,
        measure=measure,
        timeout=timeout,
        memory=memory,
        seed=seed,
    )
    if dry_run:
        session.show_plan(request, json=json)
        raise typer.Exit(0)
    raise typer.Exit(session.measure(request, backend, results, json=json))
