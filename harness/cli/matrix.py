"""`harness matrix`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness import session
from harness.cli import options
from harness.cli.dryrun import show_plan, show_rest
from harness.cli.messages import say
from harness.model.errors import UsageError
from harness.session.options import Option, OutputOption, PrecisionOption
from harness.session.request import Request

FailOn = Annotated[
    options.FailOn | None,
    OutputOption(
        "Exit with 5 if an environment is slower than the baseline. With --base, exit with 5 if --head is slower. Exit "
        "with 1 if a cell failed."
    ),
]
Resume = Annotated[
    Path | None,
    PrecisionOption(
        "Continue the run in this folder to the end of its plan. To measure more, also pass --rounds or --budget.",
        metavar="RUN",
    ),
]
Unsettled = Annotated[
    bool, PrecisionOption("With --resume and --rounds or --budget: only measure groups with an unclear comparison.")
]
Base = Annotated[
    str, Option("The git commit of the scenario files, or of --package, to compare with --head.", metavar="REF")
]
Head = Annotated[
    str, Option("The git commit to compare with --base. Default: the files in the working tree.", metavar="REF")
]
Package = Annotated[
    str,
    Option(
        "Build this package at --base and at --head, and compare both builds in the environment given with -e. --head "
        "can be a commit, a folder or pr/NUMBER.",
        metavar="NAME",
    ),
]
HistoryRounds = Annotated[
    bool,
    PrecisionOption(
        "For nightly runs: measure scenarios that vary little in the history of this machine fewer times than --rounds."
    ),
]
Json = Annotated[
    bool, OutputOption("Print the plan or the launches as JSON on stdout. With --base, the last line is the verdict.")
]


@options.of(Request, configured=True)
def matrix(
    request: Request,
    context: typer.Context,
    *,
    fail_on: FailOn = None,
    resume: Resume = None,
    unsettled: Unsettled = False,
    base: Base = "",
    head: Head = "",
    package: Package = "",
    history_rounds: HistoryRounds = False,
    exit_verdict: options.ExitVerdict = False,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: Json = False,
) -> None:
    """Measure scenarios in several environments, and write a report.

    It measures in rounds, with interleaved cells.
    """
    if head and not base:
        raise UsageError("--head needs --base.", "Add --base REF with the commit to compare with.")
    if package and not base:
        raise UsageError(
            f"--package {package} needs --base.",
            f"Add --base REF. To measure only one commit, pass -e tf2.21+{package}@FOLDER.",
        )
    if base and not resume:
        request = _make_comparison(request, package, base, head)
    if unsettled and not resume:
        raise UsageError("--unsettled needs --resume.", "Add --resume RUN with the run to continue.")
    if history_rounds and request.on:
        raise UsageError(
            f"--history-rounds reads the history of this machine, but --on {request.on} measures on other machines.",
            "Omit --history-rounds.",
        )
    if dry_run and not resume:
        raise typer.Exit(show_plan(request, json=json, by_history=history_rounds))
    from harness.cli import running  # noqa: PLC0415 - not needed for --help and --dry-run

    shared: Any = {"wait": wait, "json": json, "fail_on": fail_on, "exit_verdict": exit_verdict}
    if resume:
        _refuse_other_options(context)
        if dry_run:
            raise typer.Exit(show_rest(resume, request, unsettled=unsettled, json=json))
        raise typer.Exit(running.resume(resume, request, unsettled=unsettled, **shared))
    raise typer.Exit(running.run(request, judge=bool(base), by_history=history_rounds, **shared))


def _make_comparison(request: Request, package: str, base: str, head: str) -> Request:
    """Return the request that compares two commits of a package or of the scenarios, and print what it leaves out."""
    if package:
        return session.sources.make_comparison_request(request, package, base, head)
    compared, sentences = session.versions.make_request(request, base, head)
    for sentence in sentences:
        say(sentence)
    return compared


def _refuse_other_options(context: typer.Context) -> None:
    """Raise UsageError if an option besides --resume would change the measurements of the run."""
    allowed = (
        *("resume", "rounds", "budget", "unsettled", "backend", "slots"),
        *("wait", "json", "fail_on", "exit_verdict", "dry_run"),
    )
    refused_names = [name for name in options.find_passed_names(context) if name not in allowed]
    refused_options = [param.opts[0] for param in context.command.params if param.name in refused_names]
    if refused_options:
        raise UsageError(
            f"--resume continues a run with its original options, so it doesn't accept {', '.join(refused_options)}.",
            "Start a new run with these options.",
        )
