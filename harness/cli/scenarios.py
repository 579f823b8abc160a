"""`harness scenarios`."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness import session
from harness.cli import completion, documents
from harness.cli.messages import format_columns, say_broken, tell_json, tell_lines
from harness.model import settings
from harness.model.errors import Exit
from harness.model.scenario import STEP
from harness.model.texts import counted, escape, format_exact
from harness.project import Project

if TYPE_CHECKING:
    from harness.model.scenario import Axes, Claim, Comparison, Scenario

app = typer.Typer(help="List, show, check and create scenarios.", no_args_is_help=True, rich_markup_mode=None)


@app.command(name="list")
def list_scenarios(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="List the scenarios that match these words best.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON.")] = False,
) -> None:
    """List the scenarios and suites."""
    from harness.scenarios.catalog import load_suites  # noqa: PLC0415 - not needed for --help
    from harness.upstream import stored  # noqa: PLC0415

    index, suites = stored.load_index(), {} if words else load_suites(Project.find())
    scenarios = index.find_scenarios(" ".join(words or ()))
    if json:
        rows = [{"name": name, **{key: row[key] for key in ("title", "tags", "path")}} for name, row in scenarios]
        suite_rows = [{"name": suite.name, "title": suite.title} for suite in suites.values()]
        tell_json({"scenarios": rows, "suites": suite_rows})
    else:
        tell_lines(f"{name}: {row['title']}" for name, row in scenarios)
        tell_lines(f"--suite {suite.name}: {suite.title}" for suite in suites.values())
    say_broken(index.broken)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="The scenario's name, or a glob.", autocompletion=completion.complete_scenarios)
    ],
    json: Annotated[bool, typer.Option("--json", help="Print a list of scenarios as JSON.")] = False,
) -> None:
    """Show the axes of a scenario, and the environments of its cells.

    It also shows its comparisons and expectations.
    """
    listing = session.scenarios.find_matching(name)
    descriptions = [session.scenarios.describe(scenario) for scenario in listing.scenarios.values()]
    if json:
        tell_json(descriptions)
    else:
        texts = [
            "\n".join(map(escape, _list_lines(*pair)))
            for pair in zip(listing.scenarios.values(), descriptions, strict=True)
        ]
        typer.echo("\n\n".join(texts), nl=bool(texts))
    say_broken(listing.broken)
    if listing.broken:
        raise typer.Exit(Exit.USAGE)


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...",
            help="Names, globs or files. Default: all.",
            autocompletion=completion.complete_scenarios,
        ),
    ] = None,
) -> None:
    """Find errors in scenarios and suites.

    For each error, it shows the line and the correct form.
    """
    count = session.scenarios.check(names or [])
    typer.echo(f"{counted(count, 'scenario')}, no problem.")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The scenario's name, a valid Python module name.")],
    title: Annotated[str, typer.Option(metavar="TEXT", help="The scenario's title in reports.")] = "",
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder for the new scenario. Default: the folder scenarios/ of the project, "
            "or of the current folder.",
        ),
    ] = None,
) -> None:
    """Create a new scenario that you can run immediately."""
    new_file = session.scenarios.create(name, title, directory)
    documents.files.append(new_file.path)
    name = new_file.path.stem
    is_below = new_file.path.is_relative_to(Path.cwd())
    path = new_file.path.relative_to(Path.cwd()) if is_below else new_file.path
    path_text = shlex.quote(str(path))
    typer.echo(f"Created {path}.")
    typer.echo(f"check it:     harness scenarios check {name if new_file.is_found else path_text}")
    typer.echo(
        f"run it:       {f'PYTHONPATH={new_file.kit} ' if new_file.kit else ''}python {path_text} (needs TensorFlow)"
    )
    typer.echo(f"in releases:  harness matrix -s {name if new_file.is_found else path_text} -e tf1.14,tf2.21")


def _list_lines(scenario: "Scenario", description: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of text about a scenario. `description` is the result of `session.scenarios.describe`."""
    yield f"{scenario.name}: {scenario.title}"
    facts = [
        ("file", str(scenario.path)),
        ("source", scenario.source or "none"),
        ("tags", ", ".join(scenario.tags)),
        ("needs", ", ".join([f"Python {scenario.requires_python or 'of any version'}", *scenario.dependencies])),
    ]
    yield from format_columns([fact for fact in facts if fact[1]])
    device_limits = [
        (_format_axes(need.when) or "all cells", " or ".join(need.devices)) for need in scenario.needs if need.devices
    ]
    expectations = [
        (entry.observation, repr(entry.value), " ".join([_format_axes(entry.when), *entry.requires]).strip())
        for entry in scenario.expect
    ]
    sections: dict[str, Iterable[str]] = {
        "axes": format_columns([(axis, _describe_axis_values(scenario, axis)) for axis in scenario.axes]),
        "settings that -a can select": format_columns(_list_settings(scenario)),
        "excluded combinations": map(_format_axes, scenario.exclude),
        "cells for one device only": format_columns(device_limits),
        "comparisons": map(_describe_comparison, scenario.compare),
        "claims of upstream issues": chain.from_iterable(map(_describe_claim, scenario.claims)),
        "expected observations, according to the source": format_columns(expectations),
    }
    for title, entries in sections.items():
        if lines := [f"  {entry}" for entry in entries]:
            yield from ("", title, *lines)
    yield ""
    yield f"cells per environment, of the {description['cells']} cells with all values of each axis"
    yield from _list_rows(description["environments"], description["cells"])


def _describe_axis_values(scenario: "Scenario", axis: str) -> str:
    values_text = ", ".join(value or "unset" for value in scenario.axes[axis])
    sweep = scenario.sweeps.get(axis)
    if sweep:
        values_text += f" {sweep.unit}".rstrip()
    notes = [
        "a sweep" if sweep else "",
        "a process variable" if axis in scenario.environ else "",
        "a setting" if axis in scenario.settings else "",
        f"{scenario.default[axis] or 'unset'} unless selected" if axis in scenario.default else "",
    ]
    note = "; ".join(filter(None, notes))
    return f"{values_text} ({note})" if note else values_text


def _list_settings(scenario: "Scenario") -> list[tuple[str, str]]:
    """Return the settings that the header doesn't use, each with its values and its meaning."""
    unused_names = [name for name in settings.open_to(scenario) if name not in scenario.axes]
    return [(name, f"{', '.join(settings.values(name))} ({settings.SETTINGS[name].about})") for name in unused_names]


def _format_axes(axes: "Axes") -> str:
    return " ".join(f"{axis}={value}" for axis, value in axes.items())


def _describe_comparison(comparison: "Comparison") -> str:
    text = f"{comparison.name}: between values of {comparison.along}"
    if comparison.plus:
        text += f", below 1 if {comparison.plus} is faster than {comparison.against or 'another'}"
    picks = [
        f"{_format_axes(pick.axes)} if {' and '.join(pick.requires) or 'no earlier entry fits'}"
        for pick in comparison.pick
    ]
    return f"{text}, with {', '.join(picks)}" if picks else text


def _describe_claim(claim: "Claim") -> Iterator[str]:
    yield f"{claim.issue.short}: {claim.reported}"
    sides = [f"{side.environment} {_format_axes(side.axes)}".rstrip() for side in (claim.worse, claim.better) if side]
    quantity = "" if claim.of == STEP else f"{claim.of} of "
    fix_note = f"; reported as fixed in {claim.fixed}" if claim.fixed else ""
    origin = f" ({claim.origin})" if claim.origin else ""
    condition = f", with {_format_axes(claim.when)}" if claim.when else ""
    low, high = map(format_exact, claim.range)
    range_text = f"{low} to {high}{' s' if claim.seconds else ' bytes per call' if claim.bytes else ' times'}"
    yield f"  {quantity}{' vs '.join(sides)}{condition}: {range_text}{origin}{fix_note}"


def _list_rows(environments: Sequence[Mapping[str, Any]], total: int) -> Iterator[str]:
    """Yield a row per environment. The reasons for missing cells have numbers, and are listed below the table."""
    numbers: dict[tuple[str, str], int] = {}
    rows = []
    for environment in environments:
        missing_counts = [
            f"{entry['cells']} [{numbers.setdefault((entry['reason'], entry['advice']), len(numbers) + 1)}]"
            for entry in environment["not_available"]
        ]
        rows.append((environment["name"], f"{environment['cells']} of {total}", ", ".join(missing_counts)))
    yield from format_columns([("environment", "cells", "not available" if numbers else ""), *rows])
    for (reason, advice), number in numbers.items():
        yield f"[{number}] {reason.rstrip('.')}. {advice}".rstrip()
