"""Finds the scenarios and the files that go in with them."""

import hashlib
from pathlib import Path

from harness.catalog import header
from harness.catalog.project import Project
from harness.model.errors import UsageError
from harness.model.scenario import Scenario


def load_scenarios(project: Project) -> dict[str, Scenario]:
    """Every scenario of the project by name, in the order of the names."""
    paths = sorted(project.scenarios.glob("*.py"))
    return {path.stem: load_scenario(path) for path in paths if not path.name.startswith("_")}


def load_scenario(path: Path) -> Scenario:
    """The scenario in one file. Raises UsageError where it cannot be read or its header is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The scenario {path} cannot be read: {error}.") from None
    return header.parse(text, path)


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
