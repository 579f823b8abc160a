"""`harness scenarios check`: what is wrong with scenarios' files, and with the suites that name them."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import Found, find_scenarios, load_scenario, scenario_files
from harness.catalog.signature import not_python, oldest_python
from harness.catalog.suites import read_suites
from harness.cli import problems, quantities
from harness.model.errors import Exit, UnavailableError, UsageError
from harness.model.problem import FileError, Problem
from harness.model.scenario import Scenario
from harness.plan.selection import Catalog, resolve
from harness.plan.suite_check import check

#: Compiles files in memory and prints, of each that does not, its number, the line and the message. For any Python.
_COMPILE = """
import json, sys, warnings
warnings.simplefilter("ignore")
for number, path in enumerate(sys.argv[1:]):
    try:
        with open(path, encoding="utf-8") as file:
            compile(file.read(), path, "exec")
    except (SyntaxError, ValueError) as error:
        print(json.dumps([number, getattr(error, "lineno", None) or 1, getattr(error, "msg", str(error))]))
"""


def report(typed: Sequence[str]) -> Exit:
    """Print what is wrong with the scenarios that were typed, all of the project's where none was, and what to do.

    `typed` are names, globs and files. Raises UsageError for a name that does not exist.
    """
    project = Project.find()
    found = find_scenarios(project)
    files = {path.stem: path for path in scenario_files(project)}
    names = [text for text in typed if not text.endswith(".py")]
    strangers = []
    for path in (Path(text).resolve() for text in typed if text.endswith(".py")):
        if files.get(path.stem, path).resolve() == path and path.stem in files:
            names.append(path.stem)
        else:
            strangers.append(path)
    chosen = resolve(names or ([] if typed else ["*"]), list(files), "scenario")
    wrong = [problem for name in chosen if name in found.broken for problem in found.broken[name].problems]
    whole = [found.scenarios[name] for name in chosen if name in found.scenarios]
    for path in dict.fromkeys(strangers):
        try:
            whole.append(load_scenario(path))
        except FileError as error:
            wrong += error.problems
    wrong += [*_not_compiled(whole), *_of_suites(project, found, chosen if typed else None)]
    if wrong:
        print("\n".join(problems.lines(FileError(wrong).problems)), file=sys.stderr)
        return Exit.USAGE
    count = len(whole)
    print(f"{count} scenario{'' if count == 1 else 's'}, no problem.")
    return Exit.OK


def _not_compiled(scenarios: Iterable[Scenario]) -> list[Problem]:
    """What the oldest Python that each file claims refuses to compile; where that is not on this machine, this one."""
    by_version: dict[tuple[int, int], list[Path]] = {}
    for scenario in scenarios:
        by_version.setdefault(oldest_python(scenario.requires_python), []).append(scenario.path)
    return [problem for version, paths in by_version.items() for problem in _refused(version, paths)]


def _refused(version: tuple[int, int], paths: Sequence[Path]) -> list[Problem]:
    from harness.machine.interpreters import find_python, installed

    try:
        python = find_python(f"{version[0]}.{version[1]}", [installed])
    except UnavailableError:
        python = Path(sys.executable)
    command = [str(python), "-I", "-c", _COMPILE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = [json.loads(line) for line in done.stdout.splitlines()]
    return [Problem(paths[number], line, *not_python(message, version)) for number, line, message in refused]


def _of_suites(project: Project, found: Found, only: Sequence[str] | None) -> list[Problem]:
    """What is wrong with suites.toml; of what it says of scenarios, that of `only`, where these are given."""
    try:
        suites, findings = read_suites(project)
    except FileError as error:
        return error.problems
    check(Catalog(list(load_environments(project)), found.scenarios, suites), found.broken, findings, only)
    for suite in suites.values():
        for key, typed in (("budget", suite.budget), ("warmup", suite.warmup), ("measure", suite.measure)):
            try:
                quantities.seconds(typed or "1s", f"The {key} of the suite {suite.name},")
            except UsageError as error:
                findings.add((suite.name, key), error.message)
    return findings.problems
