"""`harness bisect`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from harness.bisect.request import BisectRequest
from harness.cli import documents, options
from harness.cli.messages import handle_signals, say
from harness.model.errors import Exit, UsageError
from harness.model.issues import HOW_TO_WRITE
from harness.model.texts import remove_password
from harness.session.options import Option


def _make_script_request(
    request: BisectRequest, path: Path, arguments: Sequence[str], files: Sequence[Path]
) -> BisectRequest:
    """Return the request for a plain script. It measures marked steps, or without marks the time without imports."""
    from harness.session import scripts  # noqa: PLC0415

    if request.scenario:
        raise UsageError(f"{path} and -s {request.scenario} are two scenarios.", "Pass only one of them.")
    scenario_path, quantity, sentences = scripts.make_measured_scenario(path, arguments=arguments, files=files)
    for sentence in sentences:
        say(sentence)
    script_arguments = [str(path), *(word for file in files for word in ("--with", str(file)))]
    script_arguments += ["--", *arguments] if arguments else []
    return replace(request, scenario=str(scenario_path), of=quantity, script=[*map(remove_password, script_arguments)])


IssueArgument = Annotated[
    str,
    typer.Argument(
        metavar="[ISSUE]",
        help="An upstream issue such as T#67033 (if a scenario has a claim about it), or a plain script.",
    ),
]
With = Annotated[
    list[Path] | None, Option("Copy this file or folder next to the plain script.", ("--with",), metavar="PATH")
]
Resume = Annotated[Path | None, Option("Resume the search that is stored in this folder.", metavar="FOLDER")]


@options.of(BisectRequest)
def bisect(
    request: BisectRequest,
    context: typer.Context,
    *,
    issue: IssueArgument = "",
    arguments: options.ScriptArguments = None,
    with_: With = None,
    resume: Resume = None,
    wait: options.Wait = False,
) -> None:
    """Find the release or wheel in which a scenario became slower."""
    from harness.bisect import run  # noqa: PLC0415 - not needed for --help
    from harness.bisect.claims import complete, resolve_ends  # noqa: PLC0415
    from harness.bisect.folder import create_folder, read_request  # noqa: PLC0415
    from harness.cli.running import ProgressPrinter  # noqa: PLC0415
    from harness.report import terminal  # noqa: PLC0415

    if resume:
        passed_names = options.find_passed_names(context)
        if set(passed_names) - {"resume", "budget", "wait", "json"}:
            raise UsageError(
                "--resume continues the search with its original options.", "Only --budget can be changed."
            )
        folder = resume
        request = read_request(folder, request.budget if "budget" in passed_names else None)
    else:
        command = ["harness", *map(remove_password, sys.argv[1:])]
        if issue.endswith((".py", ".ipynb")):
            request = _make_script_request(request, Path(issue), arguments or (), with_ or ())
            issue = ""
        elif arguments or with_:
            raise UsageError(
                "Arguments and --with need a plain script.", "Example: harness bisect script.py -- --steps 3"
            )
        elif issue.isidentifier() and not any(map(str.isdecimal, issue)):
            raise UsageError(
                f"{issue!r} is not a valid issue name.", f"For a scenario: harness bisect -s {issue}. {HOW_TO_WRITE}"
            )
        request = resolve_ends(complete(replace(request, issue=issue, command=command)))
        folder = create_folder(request)
    resume_command = f"harness bisect --resume {shlex.quote(str(folder))}"
    with handle_signals(lambda count: f"Stopping. To resume: {resume_command}" if count == 1 else ""):
        result = run.bisect(request, folder, ProgressPrinter(), wait=wait)
    terminal.show(result.sections)
    documents.files.append(folder / "report.md")
    say(f"Report: {folder / 'report.md'}")
    raise typer.Exit(Exit.OK if result.is_confirmed else Exit.CELLS_FAILED)
