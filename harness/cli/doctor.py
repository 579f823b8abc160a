"""`harness doctor`: how noisy this machine is, what it has for containers and GPUs, and what to change."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from harness.catalog.project import Project
    from harness.machine.doctor.check import CheckResult
    from harness.model.environment import Device, Environment, Requirement
    from harness.model.gpu import Card


def doctor(  # noqa: PLR0917 - the command's options
    cpus: Annotated[str, typer.Option(help="Cores of each launch: a count, `all`, or a list such as 0,2-3.")] = "1",
    seconds: Annotated[str, typer.Option(help="How long to listen.")] = "20s",
    listen: Annotated[bool, typer.Option("--listen/--no-listen", help="Listen to the CPUs too.")] = True,
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            help="Environments or globs: room for their images, and whether they run here.",
            autocompletion=completion.environments,
        ),
    ] = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Check what a run on a GPU needs; exit with 4 if it cannot run.")
    ] = False,
    gpus: Annotated[str, typer.Option(help="The GPUs of every launch, such as 0,1; implies --gpu.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the score and the checks as JSON on stdout.")] = False,
) -> None:
    """Give this machine a noise score, check Docker and its GPUs, and say what to change."""
    from harness.machine.gpu.chosen import wish
    from harness.model.errors import Exit

    wanted = wish(gpu, gpus)
    # first, so that a name that does not exist is told at once
    checks, cards, rows = surroundings(environments or [], wanted)
    is_able = all(check.level != "bad" for check in checks)
    document = listened(cpus, seconds) if listen else {"checks": []}
    document["checks"] += map(_described, checks)
    if rows:
        document |= {"gpus": [{"index": card.index, "name": card.name} for card in cards], "environments": rows}
    _show(document, json=json)
    if wanted and not is_able:
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


def listened(cpus: str, seconds: str) -> dict[str, Any]:
    """What listening to the CPUs tells, in words and in numbers. Nothing else may measure meanwhile."""
    import os

    from harness.machine import topology
    from harness.machine.cpus import choose
    from harness.machine.doctor.counters import Place
    from harness.machine.doctor.diagnosis import listen
    from harness.machine.lock import machine_to_itself
    from harness.session import quantities

    long, allowed, known = quantities.seconds(seconds, "--seconds"), os.sched_getaffinity(0), topology.read()
    chosen = choose(cpus, allowed, known)
    place = Place(chosen or tuple(sorted(allowed)), frozenset(allowed), known)
    with machine_to_itself():
        heard = listen(place, long, _say)
    return {
        "score_percent": heard.noise.score_percent,
        "grade": heard.grade,
        "sentence": heard.headline(pinned=chosen is not None),
        "cpus": list(place.cpus),
        "seconds": heard.period.seconds,
        "checks": [*map(_described, heard.checks)],
    }


def surroundings(
    names: Sequence[str], wanted: Sequence[str]
) -> tuple[list["CheckResult"], Sequence["Card"], list[dict[str, Any]]]:
    """What this machine has for containers and, where GPUs are `wanted`, for these: checks, cards and environments.

    `names` are the environments that are asked about, or globs; all of the catalogue where there are none. A row an
    environment says how it runs on the cards; there are none without a card.
    """
    from harness.backends import registry
    from harness.catalog.adhoc import with_asked
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project
    from harness.machine.doctor.surroundings import gpu, gpu_driver
    from harness.machine.gpu.chosen import cards as meant
    from harness.model.environment import Device
    from harness.plan.availability import gpu_rows
    from harness.plan.selection import resolve

    project = Project.find()
    found = registry.image_backend(project.root).gpu_host
    catalog, typed = with_asked(load_environments(project), names)
    chosen = [catalog[name] for name in resolve(typed or ["*"], list(catalog), "environment")]
    device = Device.GPU if wanted else Device.CPU
    asked = _locked(project, chosen, device) if names else []
    engines = [check for each in registry.opened(project.root) for check in each.findings(asked, wanted=bool(wanted))]
    # what an engine elsewhere has, only a launch can tell
    own = [gpu_driver(found, wanted=bool(wanted) and found.is_here), *(gpu(each) for each in found.cards)]
    cards = meant(wanted, found) if wanted else found.cards[:1]
    return [*engines, *own], cards, gpu_rows(chosen, catalog, cards, found) if cards else []


def _locked(project: "Project", chosen: Sequence["Environment"], device: "Device") -> list["Requirement"]:
    """Those of the environments that have a lock for the device: the others get no image."""
    from harness.catalog.locks import load_lock, lock_file

    return [
        load_lock(project, each, device)
        for each in chosen
        if device in each.devices and lock_file(project, each, device).is_file()
    ]


def _described(check: "CheckResult") -> dict[str, Any]:
    """A check in JSON values. Names of processes and an engine's words are untrusted."""
    from dataclasses import asdict

    from harness.report.escape import plain

    return {**asdict(check), "value": plain(check.value)}


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
    from rich.text import Text

    from harness.report.escape import plain

    if "sentence" in document:
        console.print(Text(document["sentence"]), "\n")
    _print_checks(document["checks"], console)
    if "environments" in document:
        cards = " and ".join(f"GPU {card['index']} ({card['name']})" for card in document["gpus"])
        console.print("\n", Text(plain(f"Environments on {cards}:")), sep="")
        _print_environments(document["environments"], console)


def _print_checks(checks: Sequence[dict[str, Any]], console: "Console") -> None:
    from rich.padding import Padding
    from rich.text import Text

    widths = [max(len(check[key]) for check in checks) for key in ("name", "level")]
    for check in checks:
        # a table for each, so that advice may be as wide as the terminal
        row = _row(*widths)
        row.add_row(*(Text(check[key]) for key in ("name", "level", "value")))
        console.print(row)
        if check["advice"]:
            console.print(Padding(Text(check["advice"]), (0, 0, 0, 4)))
        if check["command"]:
            # never broken over lines, so that it can be copied
            for line in check["command"].splitlines():
                console.print(Text("    " + line), soft_wrap=True)


def _print_environments(rows: Sequence[dict[str, str]], console: "Console") -> None:
    """A line for each way and reason, with all the environments that it holds for."""
    from rich.text import Text

    alike: dict[tuple[str, str], list[str]] = {}
    for each in rows:
        why = each["reason"][:1].upper() + each["reason"][1:]
        alike.setdefault((each["way"], ". ".join(filter(None, (why, each["advice"])))), []).append(each["name"])
    table = _row(30, max(len(each["way"]) for each in rows))
    for (way, why), names in alike.items():
        table.add_row(Text(", ".join(names)), Text(way), Text(why))
    console.print(table)


def _row(*widths: int) -> "Table":
    """A table of columns so wide, and of one more that takes the rest."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (*widths, None):
        table.add_column(width=width)
    return table


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
