"""`harness matrix`: a command as a list of steps, each given what the ones before it made."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.choice import BackendName
from harness.model.errors import UsageError
from harness.model.job import Protocol
from harness.model.suite import DEFAULT_SUITE


def matrix(  # noqa: PLR0917 - typer reads a command's options from its parameters
    context: typer.Context,
    suite: Annotated[str, typer.Option("--suite", help=f"A named selection; {DEFAULT_SUITE} without -s.")] = "",
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--environment",
            help=f"An environment or a glob; the first is the reference. Else the suite's, or {DEFAULT_SUITE}'s.",
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None, typer.Option("-s", "--scenario", help="A scenario, a glob or a file.")
    ] = None,
    axes: Annotated[list[str] | None, typer.Option("-a", "--axis", help="AXIS=VALUE[,VALUE…]; globs.")] = None,
    backend: Annotated[BackendName, typer.Option(help="What executes the launches.")] = BackendName.AUTO,
    gpu: Annotated[bool, typer.Option("--gpu", help="Measure on a GPU: the first one, unless --gpus names others.")] = (
        False
    ),
    gpus: Annotated[
        str, typer.Option(help="The GPUs of every launch, such as 0,1, UUIDs, or `all`; implies --gpu.")
    ] = "",
    cpus: Annotated[
        str, typer.Option(help="How many cores a launch gets, `all`, or a list such as 0,2-3: 1; all with --gpu.")
    ] = "",
    reference: Annotated[str, typer.Option(help="What the others are set against; else the first.")] = "",
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How often each cell is launched, after the pilot: 5; 100 at most with --precision or --budget."
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="Measure until every ratio is known to this: 2%.")] = "",
    budget: Annotated[str, typer.Option(help="Begin no round that would end after so long: 10m.")] = "",
    margin: Annotated[str, typer.Option(help="The difference below which two cells are the same.")] = "3%",
    sampling: Annotated[Protocol, typer.Option(help="Bounded by time, or the source document's iterations.")] = (
        Protocol.TIME
    ),
    warmup: Annotated[str, typer.Option(help="How long a launch warms up; auto: as its group's pilot says.")] = "auto",
    measure: Annotated[str, typer.Option(help="How long a launch measures; auto: as its group's pilot says.")] = "auto",
    timeout: Annotated[str, typer.Option(help="When a launch is ended: 10m.")] = "",
    memory: Annotated[str, typer.Option(help="What a container may use; four fifths of the machine without it.")] = "",
    seed: Annotated[int | None, typer.Option(min=0, help="Orders the rounds; drawn where left out.")] = None,
    results: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("results"),
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be launched, and stop.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan or the launches as JSON on stdout.")] = False,
) -> None:
    """Measure scenarios over environments, in interleaved rounds, and report."""
    from harness.cli import dryrun, session
    from harness.cli.request import Request

    if resume is not None:
        _refuse_beside_resume(context)
        raise typer.Exit(session.resume(resume, backend, json=json))
    request = Request(
        suite=suite or ("" if scenarios else DEFAULT_SUITE),
        environments=environments or [],
        scenarios=scenarios or [],
        axes=axes or [],
        gpu=gpu,
        gpus=gpus,
        cpus=cpus,
        reference=reference,
        rounds=rounds,
        precision=precision,
        budget=budget,
        margin=margin,
        protocol=sampling,
        warmup=warmup,
        measure=measure,
        timeout=timeout,
        memory=memory,
        seed=seed,
    )
    if dry_run:
        dryrun.show_plan(request, json=json)
        raise typer.Exit(0)
    raise typer.Exit(session.measure(request, backend, results, json=json))


def _refuse_beside_resume(context: typer.Context) -> None:
    """Raises UsageError for options that the run's plan has settled: more rounds after a look are no statistic."""
    typed = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in ("resume", "backend", "json")
        and (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    ]
    if typed:
        raise UsageError(
            f"--resume goes on with the run's own plan; it takes no {', '.join(typed)}.", "Start a new run for that."
        )
