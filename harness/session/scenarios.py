"""Scenario files: their errors, the environments of their cells, and the skeleton of a new one."""

import json
import keyword
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness import toml
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import Named, OnPython, Override, parse_requested
from harness.machine.interpreters import find_installed, find_python
from harness.model.environment import Environment
from harness.model.errors import CannotRunHereError, FileError, Problem, UnavailableError, UsageError
from harness.model.scenario import ENVIRONMENT, Cell, Scenario
from harness.plan.availability import split
from harness.plan.selection import Catalog, check_suites, make_unknown_error, resolve
from harness.project import Project
from harness.report.templates import make_environment
from harness.scenarios import header
from harness.scenarios.catalog import FoundScenarios, find_scenario_files, find_scenarios, load_scenario, read_suites
from harness.scenarios.signature import find_oldest_python, find_version_problem
from harness.session.options import SUITE_LENGTHS, read_suite_seconds

#: A program for any Python version. It compiles files in memory, and prints the index, line and message of each error.
_COMPILE = """
import json, sys, warnings
warnings.simplefilter("ignore")
for number, path in enumerate(sys.argv[1:]):
    try:
        with open(path, encoding="utf-8") as file:
            compile(file.read(), path, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        print(json.dumps([number, getattr(error, "lineno", None) or 1, getattr(error, "msg", str(error))]))
"""


#: A file with one of these names would hide a module that scenarios import.
_TAKEN_NAMES = {"kit", "numpy", "tensorflow", "keras", "tf_keras", *sys.stdlib_module_names}


@dataclass(frozen=True, slots=True)
class NewScenario:
    """A new scenario at `path`.

    `is_found` is true if harness finds it by name. To run it without harness, the folder of `kit` must be on Python's
    path.
    """

    path: Path
    is_found: bool
    kit: str


def find_matching(pattern: str) -> FoundScenarios:
    """Return the project's scenarios that match a name or a glob. Raises UsageError if there are none."""
    listing = find_scenarios(Project.find(), [pattern])
    names = resolve([pattern], [*listing.scenarios, *listing.broken], "scenario")
    return FoundScenarios(
        {name: listing.scenarios[name] for name in names if name in listing.scenarios},
        {name: listing.broken[name] for name in names if name in listing.broken},
    )


def check(typed: Sequence[str]) -> int:
    """Check scenarios by names, globs and files (default: all of the project). Return the number of scenarios.

    Raises FileError with the errors in the scenarios and in the suites that contain them, and UsageError for an unknown
    name.
    """
    project = Project.find()
    listing = find_scenarios(project, typed)
    files = {path.stem: path for path in find_scenario_files(project, typed)}
    names = [text for text in typed if not text.endswith(".py")]
    other_paths = []
    for path in (Path(text).resolve() for text in typed if text.endswith(".py")):
        if files.get(path.stem, path).resolve() == path and path.stem in files:
            names.append(path.stem)
        else:
            other_paths.append(path)
    stems = resolve(names or ([] if typed else ["*"]), list(files), "scenario")
    problems = [problem for name in stems if name in listing.broken for problem in listing.broken[name].problems]
    valid_scenarios = [listing.scenarios[name] for name in stems if name in listing.scenarios]
    for path in dict.fromkeys(other_paths):
        try:
            valid_scenarios.append(load_scenario(path))
        except FileError as error:
            problems += error.problems
    problems += [
        *_find_syntax_errors(valid_scenarios),
        *_check_claims(project, valid_scenarios),
        *_check_suites(project, listing, stems if typed else None),
    ]
    if problems:
        raise FileError(problems)
    return len(valid_scenarios)


def _find_syntax_errors(scenarios: Iterable[Scenario]) -> list[Problem]:
    """Return syntax errors for the oldest Python of each file's header, or for this Python if that isn't installed."""
    by_version: dict[tuple[int, int], list[Path]] = {}
    for scenario in scenarios:
        by_version.setdefault(find_oldest_python(scenario.requires_python), []).append(scenario.path)
    return [problem for version, paths in by_version.items() for problem in _compile_files(version, paths)]


def _compile_files(version: tuple[int, int], paths: Sequence[Path]) -> list[Problem]:
    try:
        python = find_python(f"{version[0]}.{version[1]}", [find_installed])
    except UnavailableError:
        python = Path(sys.executable)
    command = [str(python), "-I", "-c", _COMPILE, *map(str, paths)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [json.loads(line) for line in process.stdout.splitlines()]
    return [Problem(paths[number], line, *find_version_problem(message, version)) for number, line, message in errors]


def _check_claims(project: Project, scenarios: Iterable[Scenario]) -> list[Problem]:
    """Return the problems of claims with unknown environments."""
    environments, problems = load_environments(project), []
    for scenario in scenarios:
        for number, claim in enumerate(scenario.claims):
            for name, side in (("worse", claim.worse), ("better", claim.better)):
                if side and (error := _make_unknown_environment_error(side.environment, list(environments))):
                    key = ("claim", number, name, ENVIRONMENT)
                    line = header.find_line(toml.read_file(scenario.path), scenario.path, key)
                    problems.append(Problem(scenario.path, line, error.message, error.advice))
    return problems


def _make_unknown_environment_error(text: str, names: Sequence[str]) -> UsageError | None:
    """Return the error for an unknown environment, with or without package overrides; None for a known one."""
    requested = parse_requested(text)
    while isinstance(requested, Override | OnPython):
        requested = requested.base
    is_known = not isinstance(requested, Named) or requested.name in names
    return None if is_known else make_unknown_error(str(requested), names, ENVIRONMENT)


def _check_suites(project: Project, listing: FoundScenarios, only: Sequence[str] | None) -> list[Problem]:
    """Return the errors in suites.toml. With `only`, return only the errors about these scenarios."""
    try:
        suites, findings = read_suites(project)
    except FileError as error:
        return error.problems
    with suppress(FileError):  # too many errors: the file isn't read further
        catalog = Catalog(list(load_environments(project)), listing.scenarios, suites)
        check_suites(catalog, listing.broken, findings, only)
        for suite in suites.values():
            for key in SUITE_LENGTHS:
                try:
                    read_suite_seconds(suite, key)
                except UsageError as error:
                    findings.add((suite.name, key), error.message)
    return findings.problems


def describe(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as JSON values: its header, and the number of its cells in each environment."""
    project, header = Project.find(), asdict(scenario)
    description = {**header, "path": str(scenario.path), "cells": len(scenario.combinations(scenario.axes))}
    description["environments"] = [
        _count_available(project, scenario, environment) for environment in load_environments(project).values()
    ]
    return description


def _count_available(project: Project, scenario: Scenario, environment: Environment) -> dict[str, Any]:
    """Return the number of cells in an environment (on the CPU if possible), and the reasons for missing cells."""
    device = environment.devices[0]
    row = {"name": environment.name, "device": device.value}
    try:
        requirement = load_lock(project, environment, device)
    except UsageError as error:
        return {**row, "cells": 0, "not_available": [{"cells": 0, "reason": error.message, "advice": error.advice}]}
    cells = [
        Cell(scenario=scenario.name, environment=environment.name, device=device, axes=axes)
        for axes in scenario.combinations(scenario.axes)
    ]
    available_cells, unavailable_cells = split(
        cells, {scenario.name: scenario}, {environment.name: requirement}, {environment.name: environment}
    )
    reasons = Counter((entry.reason, entry.advice) for entry in unavailable_cells)
    reason_rows = [{"cells": count, "reason": reason, "advice": advice} for (reason, advice), count in reasons.items()]
    return {**row, "cells": len(available_cells), "not_available": reason_rows}


def create(name: str, title: str = "", folder: Path | None = None) -> NewScenario:
    """Write the skeleton of the scenario `name` into the project's scenarios/ or another folder.

    Raises UsageError for an invalid or existing name, and CannotRunHereError if the file can't be written.
    """
    if Path(name).is_dir() or Path(name).name != name:
        folder_hint, name_hint = (Path(name), "NAME") if Path(name).is_dir() else (Path(name).parent, Path(name).stem)
        raise UsageError(
            f"{name!r} is a folder or a path, not the name of a scenario.",
            f"To write it there: harness scenarios new {shlex.join([name_hint, '--directory', str(folder_hint)])}",
        )
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise UsageError(
            f"{name!r} is not a valid name for a scenario.", "Use a valid name of a Python module, such as keras_step."
        )
    if name in _TAKEN_NAMES:
        raise UsageError(f"A scenario named {name!r} would hide the module with this name.", "Choose another name.")
    project = Project.find()
    path = (folder or project.new_scenarios) / f"{name}.py"
    if any((place / path.name).exists() and place != path.parent for place in project.scenario_folders):
        raise UsageError(
            f"{name!r} is the name of a scenario that comes with harness.",
            f"Choose another name. Example: harness scenarios new my_{name}",
        )
    text = _render_skeleton(name, title or name.replace("_", " ").capitalize())
    try:
        if not folder:
            path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} already exists.", "Give the scenario another name, or edit that file.") from None
    except OSError as error:
        raise CannotRunHereError(
            f"{path} cannot be written: {error.strerror}.", "Choose another folder with --directory."
        ) from None
    target_folder, own_folders = path.parent.resolve(), [folder.resolve() for folder in project.scenario_folders]
    is_found = target_folder in (*own_folders, project.new_scenarios.resolve())
    return NewScenario(path, is_found, "" if target_folder in own_folders else shlex.quote(str(project.scenarios)))


def _render_skeleton(name: str, title: str) -> str:
    # a JSON string is also a valid TOML string
    template = make_environment(str).get_template("scenario.py.j2")
    return template.render(name=name, title=json.dumps(title, ensure_ascii=False))
