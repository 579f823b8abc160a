"""`harness matrix`: a command as a list of steps, each given what the ones before it made."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion, options
from harness.cli.choice import BackendName
from harness.cli.gate import FailOn
from harness.model.errors import UsageError
from harness.model.job import Protocol
from harness.model.suite import DEFAULT_SUITE


def matrix(  # noqa: PLR0917 - typer reads a command's options from its parameters
    context: typer.Context,
    suite: options.Suite = "",
    environments: options.Environments = None,
    scenarios: options.Scenarios = None,
    axes: options.Axes = None,
    backend: options.Backend = BackendName.AUTO,
    gpu: options.Gpu = False,
    gpus: options.Gpus = "",
    cpus: options.Cpus = "",
    reference: options.Reference = "",
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How often each cell is launched, after the pilot: 5; 100 at most with --precision or a budget."
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
    timeout: options.Timeout = "",
    memory: options.Memory = "",
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Exit with 5 where an environment is slower than the reference; 1 wins."),
    ] = None,
    seed: options.Seed = None,
    results: options.Results = Path("results"),
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder.", autocompletion=completion.runs)
    ] = None,
    dry_run: options.DryRun = False,
    json: Annotated[bool, typer.Option("--json", help="Print the plan or the launches as JSON on stdout.")] = False,
) -> None:
    """Measure scenarios over environments, in interleaved rounds, and report."""
    from harness.cli import dryrun, session
    from harness.cli.request import Request

    if resume is not None:
        _refuse_beside_resume(context)
        raise typer.Exit(session.resume(resume, backend, json=json, fail_on=fail_on))
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
        raise typer.Exit(dryrun.show_plan(request, json=json))
    raise typer.Exit(session.measure(request, backend, results, json=json, fail_on=fail_on))


def _refuse_beside_resume(context: typer.Context) -> None:
    """Raises UsageError for options that the run's plan has settled: more rounds after a look are no statistic."""
    typed = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in ("resume", "backend", "json", "fail_on")
        and (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    ]
    if typed:
        raise UsageError(
            f"--resume goes on with the run's own plan; it takes no {', '.join(typed)}.", "Start a new run for that."
        )
