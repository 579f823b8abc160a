"""`harness bisect`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion, options
from harness.cli.messages import interruptible, say
from harness.model.errors import Exit, UsageError
from harness.model.texts import escaped
from harness.plan.selection import parse_axes
from harness.session.request import read_seconds, read_share

#: What --budget is where it is left out, as help shows it.
_BUDGET = "15m"


def bisect(
    issue: Annotated[
        str, typer.Argument(metavar="[ISSUE]", help="An issue that a scenario has a claim of: T#67033.")
    ] = "",
    *,
    scenario: Annotated[
        str, typer.Option("-s", "--scenario", help="A scenario, without an issue.", autocompletion=completion.scenarios)
    ] = "",
    axis: Annotated[
        list[str] | None,
        typer.Option("-a", "--axis", help="AXIS=VALUE: which of its cells.", autocompletion=completion.axes),
    ] = None,
    good: Annotated[
        str, typer.Option(help="An environment before the change.", autocompletion=completion.environments)
    ] = "",
    bad: Annotated[
        str, typer.Option(help="An environment after the change.", autocompletion=completion.environments)
    ] = "",
    find_fix: Annotated[bool, typer.Option("--find-fix", help="Search where it became good again.")] = False,
    package: Annotated[
        str,
        typer.Option(
            help="Search in the versions of this package, all else held: tensorflow (patch releases and release "
            "candidates), tf-nightly, tf-nightly-cpu, keras, keras-nightly, numpy or another."
        ),
    ] = "",
    budget: Annotated[str, typer.Option(help="Start nothing that would pass so much time of launches.")] = _BUDGET,
    backend: Annotated[str, typer.Option(help="What executes the launches: auto, docker or local.")] = "auto",
    cpus: Annotated[str, typer.Option(help="Cores of each launch: a count, `all`, or a list such as 0,2-3.")] = "",
    timeout: Annotated[str, typer.Option(help="Stop a launch that takes longer, such as 10m.")] = "",
    margin: Annotated[str, typer.Option(help="A smaller difference counts as none.")] = "3%",
    results: Annotated[Path, typer.Option(help="The folder of runs.")] = Path("results"),
    resume: Annotated[Path | None, typer.Option(help="Go on with the search in this folder.")] = None,
    wait: options.Wait = False,
) -> None:
    """Find since which release or wheel something takes longer."""
    from harness.cli.running import Heard  # noqa: PLC0415 - what measures; help does not need it
    from harness.upstream import bisecting  # noqa: PLC0415
    from harness.upstream.bisect_request import BisectRequest  # noqa: PLC0415

    seconds = read_seconds(budget, "--budget")
    if resume:
        folder, typed = resume, budget != _BUDGET
        if issue or scenario or good or bad or package:
            raise UsageError("--resume goes on with the search as it was asked for.", "It takes --budget alone.")
        request = bisecting.reopened(folder, seconds if typed else None)
    else:
        asked = BisectRequest(
            issue=issue,
            scenario=scenario,
            axes=_axes(axis or ()),
            good=good,
            bad=bad,
            fix=find_fix,
            package=package,
            budget=seconds,
            backend=backend,
            cpus=cpus,
            timeout=read_seconds(timeout, "--timeout") if timeout else None,
            margin=read_share(margin, "--margin"),
            results=str(results),
            command=["harness", *sys.argv[1:]],
        )
        request = bisecting.meant(asked)
        folder = bisecting.begin(request)
    heard = Heard()
    again = f"harness bisect --resume {folder}"
    with interruptible(lambda count: f"Stopping. Go on with: {again}" if count == 1 else ""):
        found = bisecting.bisect(request, folder, heard, wait=wait)
    for line in found.told.lines:
        typer.echo(escaped(line, keep="\n\t"))
    say(f"Report: {folder / 'report.md'}")
    raise typer.Exit(Exit.OK if found.is_narrowed else Exit.CELLS_FAILED)


def _axes(typed: Sequence[str]) -> dict[str, str]:
    """One value by axis. Raises UsageError."""
    found = parse_axes(typed)
    for axis, values in found.items():
        if len(values) > 1:
            raise UsageError(
                f"A search measures one cell, and the axis {axis} has {len(values)} values.", f"-a {axis}={values[0]}"
            )
    return {axis: values[0] for axis, values in found.items()}
