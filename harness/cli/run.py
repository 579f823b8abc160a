"""`harness run`."""

from pathlib import Path
from typing import Annotated

import typer

from harness import session
from harness.cli import options
from harness.cli.dryrun import show_plan
from harness.cli.messages import say
from harness.session.options import OptionPanel
from harness.session.request import Request

#: Fields of a request that `harness run` sets itself, so they get no option.
_PRESET_FIELDS = (
    "suite",
    "scenarios",
    "claims",
    "budget_is_wish",
    "sampling",
    "interleave",
    "warmup",
    "measure",
    "shard",
    "balance",
    "on",
)


@options.of(Request, without=_PRESET_FIELDS)
def run(
    request: Request,
    *,
    script: Annotated[Path, typer.Argument(help="A Python file or a notebook.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="The script's own arguments.")
    ] = None,
    grep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Compare the printed numbers that the groups in this regular expression match. Example: 'took (\\S+) "
            "ms'.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ONE/OTHER",
            help="Compare two printed numbers in each environment. Pass their names in --grep. Example: half/single.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = None,
    function: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Time each call of this function as a step.", rich_help_panel=OptionPanel.WHAT
        ),
    ] = None,
    scan: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE,...",
            help="Run the script with each value of one of its own options. Example: epochs=1,3 adds `--epochs 1`.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = None,
    with_: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="PATH",
            help="Copy this file or folder to the launches, at the same path relative to the script. A launch can't "
            "read other files.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = None,
    stdin: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file to use as standard input. Default: no input.",
            rich_help_panel=OptionPanel.WHAT,
        ),
    ] = None,
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            "--fail-on",
            help="Exit with 5 if the script is slower than in the baseline, and with 1 if the script failed.",
            rich_help_panel=OptionPanel.OUTPUT,
        ),
    ] = None,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the plan or the launches as JSON on stdout.", rich_help_panel=OptionPanel.OUTPUT
        ),
    ] = False,
) -> None:
    """Measure a plain script or notebook in several environments.

    It compares the time, the memory, the output and the exit status.
    """
    script_request, sentences = session.scripts.make_request(
        script,
        request,
        arguments=arguments or (),
        grep=grep or (),
        compare=compare or (),
        functions=function or (),
        scan=scan or (),
        files=with_ or (),
        stdin=stdin,
    )
    for sentence in sentences:
        say(sentence)
    if dry_run:
        raise typer.Exit(show_plan(script_request, json=json))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.run(script_request, wait=wait, json=json, fail_on=fail_on))
