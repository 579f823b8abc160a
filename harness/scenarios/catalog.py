"""Finds the project's scenarios, the files of their launches, and the suites (scenarios/suites.toml).

Also writes scenarios that harness generates into the user's cache.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness import toml
from harness.files import get_cache_dir, hash_files, is_link_elsewhere, read, write_atomically
from harness.model.errors import FileError, Problem, UsageError, explain_unwritable
from harness.model.scenario import ENVIRONMENT, Scenario, Suite, SuitePart
from harness.model.texts import match_names
from harness.project import Project
from harness.scenarios import header
from harness.toml import Findings, TomlDocument

if TYPE_CHECKING:
    from harness.scenarios.models import SuiteTable


@dataclass(frozen=True, slots=True)
class FoundScenarios:
    """The scenarios in valid files by name, and the problems of invalid files."""

    scenarios: Mapping[str, Scenario]
    broken: Mapping[str, FileError]


def find_scenarios(
    project: Project, named: Collection[str] = (), patterns: Sequence[str] | None = None
) -> FoundScenarios:
    """Return the scenarios of the project, sorted by name: all, or those that match patterns (`match_names`).

    If a pattern matches none, return all, so that an error can list them. `named` is the same as in
    `find_scenario_files`.
    """
    paths = {path.stem: path for path in find_scenario_files(project, named)}
    matches = [list(paths)] if patterns is None else [match_names(pattern, list(paths)) for pattern in patterns]
    needed = {name for match in matches for name in match} if all(matches) else {*paths}
    scenarios, errors = {}, {}
    for name, path in paths.items():
        if name in needed:
            try:
                scenarios[name] = load_scenario(path)
            except FileError as error:
                errors[name] = error
    return FoundScenarios(scenarios, errors)


def find_scenario_files(project: Project, named: Collection[str] = ()) -> list[Path]:
    """Return the files of the project's scenarios and of the user's own scenarios, sorted by name.

    A user's file without a script header is left out, because it may belong to another tool, unless `named` contains
    it. Raises FileError if two scenarios have the same name, because a suite would measure the wrong program.
    """
    files: dict[str, Path] = {}
    conflicts = []
    for path in (path for folder in project.scenario_folders for path in _find_modules(folder)):
        if files.setdefault(path.stem, path) != path:
            conflicts.append(Problem(path, 0, f"{files[path.stem]} has the same name.", "Rename the file."))
    candidates = _find_modules(project.own) if project.own else []
    user_files = [path for path in candidates if path.stem in named or _may_have_header(path)]
    for path in (path for path in user_files if path.stem in files):
        problem = f"harness already has a scenario {path.stem}."
        conflicts.append(Problem(path, 0, problem, "Rename the file."))
    if conflicts:
        raise FileError(conflicts)
    return sorted([*files.values(), *user_files], key=lambda path: path.stem)


def _find_modules(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def _may_have_header(path: Path) -> bool:
    try:
        return b"# /// script" in read(path)
    except OSError:  # the next reader of the file reports the error
        return True


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a file. Raises FileError with all problems of the file."""
    return header.parse(toml.read_file(path), path)


def read_kit_files(project: Project) -> dict[str, bytes]:
    """Return the kit's files, which every launch gets, by relative path."""
    kit = project.scenarios / "kit"
    return {f"kit/{path.name}": path.read_bytes() for path in sorted(kit.glob("*.py"))}


def find_files_of(scenario: Scenario, kit: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return all files of a scenario and of the kit, by relative path.

    Raises UsageError for a missing file, and for a file in a folder named `kit`.
    """
    if conflicts := [name for name in scenario.files if PurePosixPath(name).parts[:1] == ("kit",)]:
        raise UsageError(
            f"Launches of {scenario.path} can't get the file {conflicts[0]!r}, "
            "because harness has its own folder kit there.",
            "Rename your file or folder.",
        )
    scenario_files = {name: _read(scenario.path.parent / name) for name in scenario.files}
    return {scenario.path.name: _read(scenario.path)} | scenario_files | dict(kit)


def _read(path: Path) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise UsageError(f"The scenario {path} cannot be read: {error.strerror}.") from None


def write_cached(kind: str, files: Mapping[str, bytes]) -> Path:
    """Write a generated scenario and its files, in their order, into a folder of the user's cache. Return its path.

    The same files have the same path, `KIND/HASH`. Raises CannotRunHereError if the cache can't be written.
    """
    folder = get_cache_dir() / kind / hash_files(files)[:16]
    with explain_unwritable(folder):
        for name, data in files.items():
            write_atomically(folder / name, data)
    return folder


def load_suites(project: Project) -> dict[str, Suite]:
    """Return every suite by name. Raises FileError with all problems of the file."""
    suites, findings = read_suites(project)
    findings.check()
    return suites


def read_suites(project: Project) -> tuple[dict[str, Suite], Findings]:
    """Return each valid suite by name, and the problems. Raises FileError if the file isn't TOML."""
    from harness.scenarios import models, validation  # noqa: PLC0415 - they import pydantic

    document = read_suite_tables(project)
    tables = {
        name: validation.validate(models.SuiteTable, table, document.findings, (name,))
        for name, table in document.values.items()
    }
    path = project.scenarios / "suites.toml"
    if is_link_elsewhere(path):
        with toml.hide_linked_file(path):
            document.findings.check()
    return {name: _make_suite(name, table) for name, table in tables.items() if table}, document.findings


def read_suite_tables(project: Project) -> TomlDocument:
    """Return the suites as they are in the file, unchecked. Raises FileError if the file isn't TOML."""
    path = project.scenarios / "suites.toml"
    with toml.hide_linked_file(path):
        return toml.read(toml.read_file(path) if path.exists() else "", path)


def _make_suite(name: str, table: "SuiteTable") -> Suite:
    parts = []
    for part in table.select:
        axes = dict(part.__pydantic_extra__)
        environments = axes.pop(ENVIRONMENT, [])
        parts.append(SuitePart(part.scenario, axes, environments))
    fields = {key: value for key, value in table if key != "select"}
    return Suite(**fields | {"name": name, "title": table.title or name, "parts": parts})
