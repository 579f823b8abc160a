"""The names that a user can select, for shell completion. The functions are fast.

Only `list_axes` reads headers, and environments come from a cache. All functions raise UsageError for invalid files.
"""

from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from harness import toml
from harness.environments.catalog import load_environments
from harness.model import settings
from harness.model.errors import FileError
from harness.project import Project
from harness.scenarios import header
from harness.scenarios.catalog import find_scenario_files, read_suite_tables


def list_environments() -> dict[str, str]:
    """Return the titles of environments, by name."""
    return {name: environment.title for name, environment in load_environments(Project.find()).items()}


def list_scenarios() -> list[str]:
    """Return the names of the scenarios."""
    return [path.stem for path in find_scenario_files(Project.find())]


def list_suites() -> dict[str, str]:
    """Return the titles of suites, by name."""
    tables = read_suite_tables(Project.find()).values
    return {name: str(table.get("title", name)) for name, table in tables.items() if isinstance(table, dict)}


def list_axes(selected: Sequence[str], suite: str) -> dict[str, list[str]]:
    """Return the values of each setting and each axis, by name.

    `selected` are names, globs or files of scenarios. If it is empty, the axes are from the scenarios of the suite, and
    without a suite from all scenarios. Invalid scenarios are ignored.
    """
    project = Project.find()
    if not selected and suite:
        table = read_suite_tables(project).values.get(suite)
        parts = header.get_tables(table, "select") if isinstance(table, dict) else []
        selected = [str(part.get("scenario", "")) for part in parts]
    selected_paths = [
        path
        for path in find_scenario_files(project)
        if any(fnmatchcase(path.stem, pattern) for pattern in selected or "*")
    ]
    values: dict[str, list[str]] = {}
    for path in [*(Path(text) for text in selected if text.endswith(".py")), *selected_paths]:
        with suppress(FileError):
            for axis, axis_values in header.read_axes(toml.read_file(path), path).items():
                values[axis] = list(dict.fromkeys([*values.get(axis, ()), *axis_values]))
    return {**{name: list(settings.values(name)) for name in settings.SETTINGS}, **values}
