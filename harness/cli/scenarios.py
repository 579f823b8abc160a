"""`harness scenarios`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion
from harness.model.errors import Exit

app = typer.Typer(help="What can be measured.", no_args_is_help=True, rich_markup_mode=None)


@app.command(name="list")
def list_scenarios() -> None:
    """List the scenarios and the suites."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import find_scenarios
    from harness.catalog.suites import load_suites
    from harness.cli import problems

    project = Project.find()
    found = find_scenarios(project)
    for scenario in found.scenarios.values():
        typer.echo(f"{scenario.name}: {scenario.title}")
    for suite in load_suites(project).values():
        typer.echo(f"--suite {suite.name}: {suite.title}")
    problems.tell(found.broken)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The scenario's name, or a glob.", autocompletion=completion.scenarios)],
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON: a list of scenarios.")] = False,
) -> None:
    """Show a scenario's header, what it compares and expects, and in which environments its cells exist."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import find_scenarios
    from harness.cli import problems, scenario_show
    from harness.plan.names import resolve

    project = Project.find()
    found = find_scenarios(project)
    names = resolve([name], [*found.scenarios, *found.broken], "scenario")
    broken = {each: found.broken[each] for each in names if each in found.broken}
    shown = [found.scenarios[each] for each in names if each in found.scenarios]
    described = [scenario_show.describe(project, scenario) for scenario in shown]
    if json:
        import json as codec

        typer.echo(codec.dumps(described, indent=2))
    else:
        told = ["\n".join(scenario_show.lines(*each)) for each in zip(shown, described, strict=True)]
        typer.echo("\n\n".join(told), nl=bool(told))
    problems.tell(broken)
    if broken:
        raise typer.Exit(Exit.USAGE)


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...",
            help="Names, globs or files; all without any.",
            autocompletion=completion.scenarios,
        ),
    ] = None,
) -> None:
    """Say what is wrong with scenarios and with the suites that name them: file, line, and what to write instead."""
    from harness.cli import scenario_check

    raise typer.Exit(scenario_check.report(names or []))


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The scenario's name: one for a Python module.")],
    title: Annotated[str, typer.Option(help="What the report calls it.")] = "",
    directory: Annotated[
        Path | None, typer.Option(help="Where it is written; without, scenarios/ of the project, or of this folder.")
    ] = None,
) -> None:
    """Write the skeleton of a scenario, which can be run as it is."""
    from harness.catalog.project import Project
    from harness.cli import scenario_new

    project = Project.find()
    path = scenario_new.write(name, title, directory or project.new_scenarios, make=not directory)
    folder = path.parent.resolve()
    is_known = folder in (project.scenarios.resolve(), project.new_scenarios.resolve())
    beside = "" if folder == project.scenarios.resolve() else f"PYTHONPATH={shlex.quote(str(project.scenarios))} "
    shown = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    typer.echo(f"{shown} is written.")
    typer.echo(f"check it:     harness scenarios check {name if is_known else shown}")
    typer.echo(f"by hand:      {beside}python {shown}, where TensorFlow is")
    typer.echo(f"in releases:  harness matrix -s {name if is_known else shown} -e tf1.14 -e tf2.21")
