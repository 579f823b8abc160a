"""`harness compare`: shows which cells changed from one run to another."""

import re
from pathlib import Path
from typing import Annotated

import typer

from harness import session
from harness.cli import completion, options
from harness.cli.messages import choose_gate_exit, say, say_torn
from harness.model.errors import Exit, UsageError
from harness.session.options import Option
from harness.session.request import CompareRequest

FirstRun = Annotated[
    Path | None,
    completion.RunFolderArgument(
        metavar="RUN_A", help="The folder of the first run, under results/. Default: compare the newest two runs."
    ),
]
SecondRun = Annotated[Path | None, completion.RunFolderArgument(metavar="RUN_B", help="The run to compare with RUN_A.")]
FailOn = Annotated[
    options.FailOn | None, Option("Exit with 5 if a cell is slower in RUN_B, and with 1 if a cell failed there.")
]
Json = Annotated[bool, Option("Print the comparison as JSON on stdout.")]


@options.of(CompareRequest)
def compare(
    request: CompareRequest,
    *,
    first: FirstRun = None,
    second: SecondRun = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Compare two runs: show which cells became faster or slower.

    It also shows other differences between the runs.
    """
    from harness.report import changes, escape, terminal  # noqa: PLC0415 - `harness --help` needs none of it

    if first is None:
        first, second = session.find_newest_runs(2)
        say(f"The newest two runs: {first} and {second}")
    if second is None:
        raise UsageError(
            f"A comparison needs two runs, but only {first} was passed.", "Pass a second run, or omit both."
        )
    for path in (first, second):
        if re.fullmatch(r"(tf)?\d\.\d+", str(path)) and not path.exists():
            raise UsageError(
                f"{path} is an environment, and `harness compare` compares runs.",
                f"To measure environments: harness matrix -e {first},{second}",
            )
        say_torn(path)
    pair = session.compare(first, second, margin=request.margin, any_host=request.any_host)
    if json:
        typer.echo(escape.dump_json(changes.make_document(pair)), nl=False)
    else:
        terminal.show(changes.make_sections(pair))
    if fail_on and pair.changes.broken:  # failures take precedence over slower cells
        raise typer.Exit(Exit.CELLS_FAILED)
    if fail_on:
        raise typer.Exit(choose_gate_exit(session.gate(pair), "No cell has a verdict"))
