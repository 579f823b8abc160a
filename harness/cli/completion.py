"""Shell completion of commands, options, names in the catalog, axes and their values, and folders of runs.

A shell runs this code whenever the user presses TAB, so everything here must be fast.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from harness import package_data, session

#: The variable in which a shell passes the command line up to the cursor (templates/completion/).
VARIABLE = "_HARNESS_COMPLETE"


class Shell(StrEnum):
    """The shells for which a completion script exists."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script for a shell.

    The script completes commands, names, axes and runs.
    """
    path = package_data.FOLDER / "templates" / "completion" / f"harness.{shell}"
    typer.echo(path.read_text(encoding="utf-8"), nl=False)


def complete_environments(incomplete: str) -> list[tuple[str, str]]:
    """Return completions for the name of an environment."""
    return _complete_last_name(incomplete, session.names.list_environments())


def complete_scenarios(incomplete: str) -> list[tuple[str, str]]:
    """Return completions for the name of a scenario, or for a Python file if the word is a path."""
    prefix, comma, partial_name = incomplete.rpartition(",")
    if "/" in partial_name:
        return [(prefix + comma + path, "") for path in _list_paths(partial_name) if path.endswith(("/", ".py"))]
    return _complete_last_name(incomplete, dict.fromkeys(session.names.list_scenarios(), ""))


def complete_suites() -> list[tuple[str, str]]:
    """Return the names of the suites."""
    return list(session.names.list_suites().items())


def complete_axes(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return `AXIS=` for each axis, or after `=` the values of the axis.

    The axes are from the scenarios on the command line, or without them from all scenarios.
    """
    from harness.session.options import split_names  # noqa: PLC0415 - only this completion needs it

    scenario_names = split_names(context.params.get("scenarios") or (), "-s")
    values = session.names.list_axes(scenario_names, context.params.get("suite") or "")
    axis, separator, partial = incomplete.partition("=")
    if not separator:
        return [(f"{name}=", ", ".join(values[name])) for name in values]
    completions = _complete_last_name(partial, dict.fromkeys(values.get(axis, ()), ""))
    return [(f"{axis}={value}", "") for value, _ in completions]


def _complete_last_name(incomplete: str, help_texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return completions with help for the last name in `one,other`, without the names that are already in it."""
    earlier, comma, _ = incomplete.rpartition(",")
    return [(earlier + comma + name, text) for name, text in help_texts.items() if name not in earlier.split(",")]


def complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the folders of runs in `--results`, newest first. If the word is a path, return the entries there."""
    paths = _list_paths(incomplete if "/" in incomplete else f"{context.params.get('results') or 'results'}/")
    folders = [path.rstrip("/") for path in paths if Path(path, "run.json").is_file()]
    return [
        *sorted(folders, reverse=True),
        *(path for path in paths if path.endswith("/") and path[:-1] not in folders),
    ]


#: An argument of a command: folders of runs.
RunFolderArgument = partial(typer.Argument, show_default=False, autocompletion=complete_runs)


def _list_paths(partial_path: str) -> list[str]:
    """Return the paths that start with a partial path. Folders end with a slash."""
    folder, _, name = partial_path.rpartition("/")
    try:
        entries = [entry for entry in Path(folder or "/").iterdir() if name or not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(f"{folder}/{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries)
