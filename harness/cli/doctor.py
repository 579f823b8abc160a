"""`harness doctor`: how noisy this machine is, and what to change."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from harness.machine.probes.finding import Finding
    from harness.machine.probes.listening import Heard


def doctor(
    cpus: Annotated[str, typer.Option(help="How many cores a launch gets, `all`, or a list such as 0,2-3.")] = "1",
    seconds: Annotated[str, typer.Option(help="How long to listen.")] = "20s",
    json: Annotated[bool, typer.Option("--json", help="Print the score and the checks as JSON on stdout.")] = False,
) -> None:
    """Listen to this machine, give it a noise score, and say what to change."""
    import os

    from harness.cli import quantities
    from harness.machine import topology
    from harness.machine.cpus import choose
    from harness.machine.lock import machine_to_itself
    from harness.machine.probes.checks import findings
    from harness.machine.probes.listening import Place, listen

    long, allowed, known = quantities.seconds(seconds, "--seconds"), os.sched_getaffinity(0), topology.read()
    chosen = choose(cpus, allowed, known)
    place = Place(chosen or tuple(sorted(allowed)), frozenset(allowed), known)
    with machine_to_itself():
        heard = listen(place, long, _say)
    _show(document(heard, findings(heard), pinned=chosen is not None), json=json)


def document(heard: "Heard", found: list["Finding"], *, pinned: bool) -> dict[str, Any]:
    """All that is shown, in words and in numbers: what `--json` prints."""
    from harness.machine.cpus import describe
    from harness.machine.probes.noise import grade

    say = words()
    place, score = heard.place, heard.noise.score_percent
    where = describe(place.cpus, place.topology, place.allowed)
    return {
        "score_percent": score,
        "grade": grade(score),
        "sentence": str(say.headline(score, grade(score), where, len(place.cpus), pinned)).strip(),
        "cpus": list(place.cpus),
        "seconds": heard.seconds,
        "checks": [worded(finding, say) for finding in found],
    }


def words() -> Any:
    """The macros of the doctor's template."""
    from harness.report.escape import plain
    from harness.report.templates import environment

    return environment(plain).get_template("doctor.j2").module


def worded(finding: "Finding", say: Any) -> dict[str, Any]:
    """One finding with its words; nothing is advised where nothing is wrong."""

    def said(part: str) -> str:
        macro = getattr(say, f"{finding.macro}_{part}", None)
        return str(macro(finding.facts)).strip() if macro else ""

    good = finding.level == "good"
    return {
        "name": finding.name,
        "value": said("value"),
        "level": finding.level.value,
        "advice": "" if good else said("advice"),
        "command": "" if good else said("command"),
        "facts": dict(finding.facts),
    }


def _show(document: dict[str, Any], *, json: bool) -> None:
    if json:
        import json as codec

        typer.echo(codec.dumps(document, indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as printed:
        _print(document, console)
    # rich fills every line with spaces up to the terminal's width
    typer.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _print(document: dict[str, Any], console: "Console") -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console.print(Text(document["sentence"]), "\n")
    names, levels = (max(len(check[key]) for check in document["checks"]) for key in ("name", "level"))
    for check in document["checks"]:
        # a table for each, so that advice may be as wide as the terminal
        row = Table.grid(padding=(0, 2, 0, 0))
        for width in (names, levels, None):
            row.add_column(width=width)
        row.add_row(*(Text(check[key]) for key in ("name", "level", "value")))
        console.print(row)
        if check["advice"]:
            console.print(Padding(Text(check["advice"]), (0, 0, 0, 4)))
        if check["command"]:
            # never broken over lines, so that it can be copied
            console.print(Text("    " + check["command"]), soft_wrap=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
