"""`harness doctor`: the noise of this machine, its support for containers and GPUs, and what to change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness import session
from harness.cli import completion, options
from harness.cli.messages import say, tell_json
from harness.model.errors import Exit
from harness.report.escape import escape_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def doctor(  # noqa: PLR0917 - the command's options
    cpus: Annotated[str, options.make_option("cpus", shown="1")] = "1",
    seconds: Annotated[str, typer.Option(metavar="20s", help="How long to measure the noise of the CPUs.")] = "20s",
    listen: Annotated[bool, typer.Option("--listen/--no-listen", help="Also measure the noise of the CPUs.")] = True,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--env",
            "--environment",
            help="Environments or globs. Check whether they run on this machine, and the disk space for their images.",
            autocompletion=completion.complete_environments,
        ),
    ] = None,
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Check the requirements of a run on a GPU. Exit with 4 if a GPU run is impossible."),
    ] = False,
    gpus: Annotated[str, typer.Option(help="The GPUs of every launch, such as 0,1. Implies --gpu.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the score and the checks as JSON on stdout.")] = False,
) -> None:
    """Measure the noise of this machine, and check Docker and GPUs.

    For each problem, it shows what to change.
    """
    # first, so that an unknown name is reported immediately
    prerequisites = session.doctor.check_prerequisites(environments or [], gpu=gpu, gpus=gpus)
    noise = session.doctor.measure_cpu_noise(cpus, seconds, say) if listen else {"checks": []}
    document = {**noise, **prerequisites, "checks": [*noise["checks"], *prerequisites["checks"]]}
    if json:
        tell_json(document)
    else:
        typer.echo(_format_text(document))
    if (gpu or gpus) and any(check["level"] == "bad" for check in prerequisites["checks"]):
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


def _format_text(document: dict[str, Any]) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    with console.capture() as capture:
        for sentence in ("gpu_sentence", "sentence"):
            if sentence in document:
                console.print(Text(escape_terminal(document[sentence])), "\n")
        _print_checks(document["checks"], console)
        if "environments" in document:
            gpu_names = " and ".join(f"GPU {gpu['index']} ({gpu['name']})" for gpu in document["gpus"])
            console.print("\n", Text(escape_terminal(f"Environments on {gpu_names}:")), sep="")
            _print_environments(document["environments"], console)
    # remove the spaces with which rich fills every line
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _print_checks(checks: Sequence[dict[str, Any]], console: "Console") -> None:
    from rich.padding import Padding
    from rich.text import Text

    widths = [max(len(check[key]) for check in checks) for key in ("name", "level")]
    for check in checks:
        # one table per check, so that advice can be as wide as the terminal
        row = _make_row(*widths)
        row.add_row(*(Text(check[key]) for key in ("name", "level", "value")))
        console.print(row)
        if check["advice"]:
            console.print(Padding(Text(check["advice"]), (0, 0, 0, 4)))
        # never wrapped, so that the user can copy it
        for line in check["command"].splitlines():
            console.print(Text("    " + line), soft_wrap=True)


def _print_environments(rows: Sequence[dict[str, str]], console: "Console") -> None:
    """Print a line for each kind of support and reason, with its environments."""
    from rich.text import Text

    by_support: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        explanation = row["reason"][:1].upper() + row["reason"][1:]
        explanation = ". ".join(filter(None, (explanation, row["advice"])))
        by_support.setdefault((row["way"], explanation), []).append(row["name"])
    table = _make_row(30, max(len(entry["way"]) for entry in rows))
    for (way, explanation), names in by_support.items():
        table.add_row(Text(", ".join(names)), Text(way), Text(explanation))
    console.print(table)


def _make_row(*widths: int) -> "Table":
    """Return a table with columns of these widths, and a last column for the rest of the line."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (*widths, None):
        table.add_column(width=width)
    return table
