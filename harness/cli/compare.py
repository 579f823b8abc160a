"""`harness compare`: which cells changed from one run to another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.cli.gate import FailOn, nothing_judged
from harness.model.errors import Exit, NothingSelectedError, UsageError

if TYPE_CHECKING:
    from harness.analysis.lookup import Lookup
    from harness.model.launch import Launch
    from harness.model.run import Run
    from harness.report.changes import View

    Stored = tuple[Run, list[Launch]]


def compare(  # noqa: PLR0917 - the command's options
    first: Annotated[
        Path, typer.Argument(metavar="RUN_A", help="A run's folder, under results/.", autocompletion=completion.runs)
    ],
    second: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="The run that is set against it.", autocompletion=completion.runs)
    ],
    margin: Annotated[str, typer.Option(help="The difference below which two times are the same.")] = "3%",
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit with 5 where a cell of B is slower, 1 where one broke.")
    ] = None,
    any_host: Annotated[bool, typer.Option("--any-host", help="Compare runs of different machines too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON on stdout.")] = False,
) -> None:
    """Say which cells of RUN_B are faster or slower than in RUN_A, and what else differs."""
    from harness.cli import quantities
    from harness.report import changes, changes_json, changes_terminal

    share = quantities.share(margin, "--margin")
    one, other = _runs(first, second, any_host=any_host)
    found = _lookups(one, other)
    view = changes.build(one[0], other[0], found, share)
    if json:
        import json as codec

        typer.echo(codec.dumps(changes_json.document(view, found), indent=2, ensure_ascii=False))
    else:
        changes_terminal.show(view)
    if fail_on:
        raise typer.Exit(_exit(view))


def _runs(first: Path, second: Path, *, any_host: bool) -> tuple["Stored", "Stored"]:
    """Both runs. Raises UsageError for a folder that is no run's, one and the same run, and different machines."""
    from harness.analysis.conditions import machines
    from harness.report.changes import fact
    from harness.report.escape import plain
    from harness.store.folder import RunFolder

    one, other = ((folder.read_run(), folder.read_launches()) for folder in map(RunFolder.open, (first, second)))
    if one[0].id == other[0].id:
        raise UsageError(f"{first} and {second} are one and the same run.", "Name two.")
    differing = [fact(each) for each in machines(one[0], other[0])]
    if differing and not any_host:
        told = plain("; ".join(f"{each.label} {each.first} and {each.second}" for each in differing))
        raise UsageError(
            f"{first} and {second} were measured on different machines: {told}.", "To compare them still: --any-host"
        )
    return one, other


def _lookups(one: "Stored", other: "Stored") -> tuple["Lookup", "Lookup"]:
    """What there is of each run's cells. Raises NothingSelectedError where none has a number in both."""
    from harness.analysis.conditions import Part, differences
    from harness.analysis.lookup import lookup

    found = lookup(*one), lookup(*other)
    if found[0].series.keys() & found[1].series.keys():
        return found
    shared = len(found[0].cells.keys() & found[1].cells.keys())
    known = differences(one[0], other[0], [])
    changed = [each.subject for each in known if each.part is Part.SCENARIO and each.name == "axes"]
    raise NothingSelectedError(
        f"No cell has a number in both runs; {shared or 'none'} of the cells asked for are the same."
        + (f" The axes of {', '.join(changed)} are others." if changed else ""),
        "What gave no number is in each run's report.md.",
    )


def _exit(view: "View") -> Exit:
    """1 wins over 5; a gate that judged nothing does not pass either."""
    from harness.analysis.verdicts import Verdict

    if view.changes.broken:
        return Exit.CELLS_FAILED
    if not view.changes.deciding:
        return nothing_judged("No cell has a verdict")
    return Exit.SLOWER if Verdict.SLOWER in view.changes.deciding else Exit.OK
