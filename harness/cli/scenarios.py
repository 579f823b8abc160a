"""`harness scenarios`."""

from typing import Annotated

import typer

app = typer.Typer(help="What can be measured.", no_args_is_help=True, rich_markup_mode=None)


@app.command(name="list")
def list_scenarios() -> None:
    """List the scenarios and the suites."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import load_scenarios
    from harness.catalog.suites import load_suites

    project = Project.find()
    for scenario in load_scenarios(project).values():
        typer.echo(f"{scenario.name}: {scenario.title}")
    for suite in load_suites(project).values():
        typer.echo(f"--suite {suite.name}: {suite.title}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="The scenario's name.")]) -> None:
    """Show a scenario's axes, what it compares, and what it needs."""
    from harness.catalog.project import Project
    from harness.catalog.scenarios import load_scenarios
    from harness.plan.names import resolve

    scenarios = load_scenarios(Project.find())
    for found in resolve([name], list(scenarios), "scenario"):
        scenario = scenarios[found]
        typer.echo(f"{scenario.name}: {scenario.title}")
        typer.echo(f"source: {scenario.source or 'none'}")
        for axis, values in scenario.axes.items():
            default = f" (default {scenario.default[axis]})" if axis in scenario.default else ""
            typer.echo(f"axis {axis}: {', '.join(values)}{default}")
        for comparison in scenario.compare:
            typer.echo(f"compares {comparison.name}, along {comparison.along}")
        for need in scenario.needs:
            where = " and ".join(f"{axis}={value}" for axis, value in need.when.items()) or "every cell"
            typer.echo(f"{where} needs {' and '.join(need.requires)}{f': {need.reason}' if need.reason else ''}")
