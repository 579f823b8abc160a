"""The project's scenarios, the files that go in with them, and its suites (scenarios/suites.toml)."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.catalog import header, toml
from harness.catalog.project import Project
from harness.catalog.toml import Findings, Table, is_number, number_text
from harness.files import read
from harness.model.errors import FileError, Problem, UsageError
from harness.model.scenario import ENVIRONMENT, Scenario, Suite, SuitePart

_SUITE_KEYS = ("title", "environments", "rounds", "budget", "warmup", "measure", "instead", "select")


@dataclass(frozen=True, slots=True)
class Found:
    """The scenarios of some files by name, and those whose files are wrong, with what is."""

    scenarios: Mapping[str, Scenario]
    broken: Mapping[str, FileError]


def find_scenarios(project: Project, named: Collection[str] = ()) -> Found:
    """Every scenario of the project, in the order of the names; `named` as `scenario_files` has it."""
    scenarios, broken = {}, {}
    for path in scenario_files(project, named):
        try:
            scenarios[path.stem] = load_scenario(path)
        except FileError as error:
            broken[path.stem] = error
    return Found(scenarios, broken)


def scenario_files(project: Project, named: Collection[str] = ()) -> list[Path]:
    """The files that hold a scenario, in the order of the names: the project's, and the user's own beside them.

    A user's file without a script's header is another tool's, unless it is one of those `named`. Raises FileError where
    one has the name of one of ours, or where two of ours have one name: a suite would measure another program than it
    says.
    """
    files: dict[str, Path] = {}
    taken = []
    for path in (path for folder in project.scenario_folders for path in _modules(folder)):
        if files.setdefault(path.stem, path) != path:
            taken.append(Problem(path, 0, f"{files[path.stem]} has the same name.", "Give the file another name."))
    beside = _modules(project.own) if project.own else []
    own = [path for path in beside if path.stem in named or _may_have_header(path)]
    for path in (path for path in own if path.stem in files):
        problem = f"The harness has a scenario {path.stem} of its own."
        taken.append(Problem(path, 0, problem, "Give the file another name."))
    if taken:
        raise FileError(taken)
    return sorted([*files.values(), *own], key=lambda path: path.stem)


def _modules(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def _may_have_header(path: Path) -> bool:
    try:
        return b"# /// script" in read(path)
    except OSError:  # what reads it next says why
        return True


def load_scenario(path: Path) -> Scenario:
    """The scenario in one file. Raises FileError where it cannot be read or is wrong, with all that is."""
    return header.parse(toml.read_file(path), path)


def kit_files(project: Project) -> dict[str, bytes]:
    """The worker's files by relative name, as they go into a launch."""
    kit = project.scenarios / "kit"
    return {f"kit/{path.name}": path.read_bytes() for path in sorted(kit.glob("*.py"))}


def files_of(scenario: Scenario, kit: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of a scenario by relative name, with the kit's. Raises UsageError for one that is gone."""
    own = {name: _read(scenario.path.parent / name) for name in scenario.files}
    return {scenario.path.name: _read(scenario.path)} | own | dict(kit)


def _read(path: Path) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise UsageError(f"The scenario {path} cannot be read: {error.strerror}.") from None


def fingerprint(files: dict[str, bytes]) -> str:
    """A hash (SHA-256, hex) of files' names and contents: what must not change while a run goes on."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def load_suites(project: Project) -> dict[str, Suite]:
    """Every suite by name. Raises FileError, which has all that is wrong with the file."""
    suites, findings = read_suites(project)
    findings.check()
    return suites


def read_suites(project: Project) -> tuple[dict[str, Suite], Findings]:
    """Every suite by name as far as it can be read, and what is wrong. Raises FileError for what is not TOML."""
    path = project.scenarios / "suites.toml"
    document = toml.read(toml.read_file(path) if path.exists() else "", path)
    return {name: _suite(name, document.table(name, f"Write [{name}].")) for name in document.values}, document.findings


def _suite(name: str, table: Table) -> Suite:
    table.check_keys(_SUITE_KEYS)
    rounds, parts = table.values.get("rounds"), table.tables("select")
    if rounds is not None and (not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1):
        table.wrong("rounds", "must be a whole number above 0.", "For example: rounds = 3.")
        rounds = None
    if not parts:
        fix = f"Write [[{name}.select]] with its `scenario`, and below it the values of its axes."
        table.wrong("select", "is missing.", fix)
    return Suite(
        name=name,
        title=table.text("title") or name,
        environments=_patterns(table, "environments") if "environments" in table.values else ["*"],
        parts=[_part(part) for part in parts],
        rounds=rounds,
        budget=table.text("budget"),
        warmup=table.text("warmup"),
        measure=table.text("measure"),
        instead=_instead(table),
    )


def _instead(suite: Table) -> dict[str, list[str]]:
    """The environments that have stand-ins, with these."""
    example = '"tf1.14" = ["tf1.15-ngc", "tf2.*"]'
    table = suite.table("instead", f"Write [{suite.key[0]}.instead], and below it for example {example}.")
    for name, given in table.values.items():
        if isinstance(given, dict):
            table.wrong(name, "is a table, for a dot parts names that have no quotes.", f"For example: {example}.")
    return {name: _patterns(table, name) for name, given in table.values.items() if not isinstance(given, dict)}


def _part(table: Table) -> SuitePart:
    scenario = table.text("scenario")
    if "scenario" not in table.values:
        table.wrong("scenario", "is missing.", 'For example: scenario = "keras_step".')
    chosen = {name: _patterns(table, name) for name in table.values if name != "scenario"}
    environments = chosen.pop(ENVIRONMENT, ())
    return SuitePart(scenario=scenario, axes=chosen, environments=environments)


def _patterns(table: Table, name: str) -> list[str]:
    """A list of at least one string; a number of a sweep counts as the text that cells have for it."""
    given = table.values[name]
    texts = [number_text(item) if is_number(item) else item for item in given] if isinstance(given, list) else []
    if texts and all(isinstance(text, str) for text in texts):
        return texts
    table.wrong(name, "must be a list of strings.", f'For example: {name} = ["one", "other"].')
    return []
