"""`harness fleet`: the name of this machine, and its worker slots."""

from typing import Annotated

import typer

from harness import session
from harness.cli import advice, options
from harness.cli.messages import handle_signals, say_refused
from harness.machine.identity import name_machine
from harness.model.errors import Exit
from harness.model.texts import counted
from harness.session.options import AUTO
from harness.session.request import Request

app = typer.Typer(no_args_is_help=True, help="Give this machine a name, and check its slots.", cls=advice.CommandGroup)

#: Fields of a request that the check sets itself, or that apply only to a whole run. They get no option.
_EXCLUDED_FIELDS = (
    *("claims", "rounds", "precision", "budget", "interleave", "seed", "results", "reference"),
    *("shard", "balance"),
)


@app.command()
@options.of(
    Request,
    without=_EXCLUDED_FIELDS,
    texts={"slots": "The number of slots to check. Default: as many as fit on the machine. `auto` does the same."},
)
def check(request: Request) -> None:
    """Check the slots of this machine, or prepare others.

    It measures the interference between runs in several slots, and stores how many slots you can use at the same time.

    The first selected cell runs in turn in one slot and in all slots at once. `harness matrix --slots auto` uses the
    result. With --on, each machine builds its images and launches each cell once, or an error says why it can't.
    """
    from harness.cli.running import ProgressPrinter  # noqa: PLC0415
    from harness.fleet import check as checking  # noqa: PLC0415 - not needed for --help
    from harness.report import format  # noqa: PLC0415
    from harness.session import slot_plans  # noqa: PLC0415

    planned = session.plan(request)
    say_refused(planned.refused)
    if request.on:
        raise typer.Exit(_prepare(planned))
    slots = None if request.slots in ("", AUTO) else int(request.slots)
    with handle_signals():
        outcome = checking.check(planned, slots, ProgressPrinter())
    requested_slots = outcome.tried[0].slots if outcome.tried else outcome.safe
    for slot in slot_plans.divide_into_slots(planned, outcome.safe):
        typer.echo(f"{slot}")
    if outcome.safe >= requested_slots:
        typer.echo(f"{outcome.safe} of {requested_slots} slots are safe: harness matrix --slots {outcome.safe}")
        return
    typer.echo(
        f"With {requested_slots} slots, the slowdown exceeds the margin of {format.share(outcome.margin)}. "
        f"{counted(outcome.safe, 'slot', 'is')} safe."
    )
    raise typer.Exit(Exit.CANNOT_RUN_HERE)


def _prepare(planned: "session.Planned") -> Exit:
    """Prepare other machines, print what each one can do, and return the exit code."""
    from harness.cli.running import ProgressPrinter  # noqa: PLC0415
    from harness.fleet import preparation  # noqa: PLC0415

    with handle_signals():
        results = preparation.prepare_places(planned, ProgressPrinter())
    for line, _ in results:
        typer.echo(line)
    return Exit.OK if all(can_measure for _, can_measure in results) else Exit.CANNOT_RUN_HERE


@app.command()
def name(name: Annotated[str, typer.Argument(metavar="NAME", help="A name for this machine; '' removes it.")]) -> None:
    """Give this machine a name.

    Reports and the history show the name, starting with the next run.
    """
    machine = name_machine(name)
    typer.echo(f"{machine.id} is named {machine.name}." if machine.name else f"{machine.id} is now unnamed.")
