"""Finds the scenarios and the files that go in with them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.catalog import header, toml
from harness.catalog.project import Project
from harness.model.errors import FileError, Problem
from harness.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Found:
    """The scenarios of some files by name, and those whose files are wrong, with what is."""

    scenarios: Mapping[str, Scenario]
    broken: Mapping[str, FileError]


def find_scenarios(project: Project) -> Found:
    """Every scenario of the project, in the order of the names."""
    scenarios, broken = {}, {}
    for path in scenario_files(project):
        try:
            scenarios[path.stem] = load_scenario(path)
        except FileError as error:
            broken[path.stem] = error
    return Found(scenarios, broken)


def load_scenarios(project: Project) -> dict[str, Scenario]:
    """Every scenario of the project by name. Raises FileError where one is wrong."""
    return {path.stem: load_scenario(path) for path in scenario_files(project)}


def scenario_files(project: Project) -> list[Path]:
    """The files that hold a scenario, in the order of the names: the project's, and the user's own beside them.

    A user's file without a script's header is another tool's. Raises FileError where one has the name of one of ours:
    a suite would measure another program than it says.
    """
    files = {path.stem: path for path in _modules(project.scenarios)}
    own = [path for path in _modules(project.own) if _may_have_header(path)] if project.own else []
    taken = [path for path in own if path.stem in files]
    if taken:
        raise FileError(
            Problem(path, 0, f"The harness has a scenario {path.stem} of its own.", "Give the file another name.")
            for path in taken
        )
    return sorted([*files.values(), *own], key=lambda path: path.stem)


def _modules(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def _may_have_header(path: Path) -> bool:
    try:
        return b"# /// script" in path.read_bytes()
    except OSError:  # said with its reason by what reads it next
        return True


def load_scenario(path: Path) -> Scenario:
    """The scenario in one file. Raises FileError where it cannot be read or is wrong, with all that is."""
    return header.parse(toml.read_file(path), path)


def kit_files(project: Project) -> dict[str, bytes]:
    """The worker's files by relative name, as they go into a launch."""
    kit = project.scenarios / "kit"
    return {f"kit/{path.name}": path.read_bytes() for path in sorted(kit.glob("*.py"))}


def fingerprint(files: dict[str, bytes]) -> str:
    """A hash (SHA-256, hex) of files' names and contents: what must not change while a run goes on."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()
