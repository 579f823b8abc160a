"""Decides whose code may run, and where. Every command that builds or launches something asks this module.

Code belongs to the project, to the user, or to somebody else. In a container, all of it may run. Without a container,
the project's and the user's own code runs with the user's rights, and other code only with --trust. A package from a
source is built in a container; without an engine, only with --trust. A dry run builds and launches nothing.

docs/explanation/security.md shows the members of Kind as a table (`make reference`).
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path

from harness.environments.requested import FromSource, Requested
from harness.environments.sources import parse_place
from harness.files import DOWNLOADS, get_cache_dir
from harness.machine import git
from harness.model.environment import Environment
from harness.model.errors import HarnessError
from harness.model.scenario import Scenario
from harness.project import Project
from harness.store.folder import RunFolder

#: Attributes in which programs that download a file store its address.
_DOWNLOAD_MARKS = ("user.xdg.origin.url", "user.xdg.referrer.url")

#: The folder of the user's cache with generated scenarios of the user's own files. For other files, the name of their
#: kind follows.
SCRIPTS = "scripts"

#: A file beside run.json in the folder of a run, and in a bundle.
_RUN_FILES = ("launches.jsonl", "repro.py")

#: The names of Python files and notebooks. Other files may contain code of other people, such as a saved issue.
_PYTHON_FILES = {".py", ".pyw", ".ipynb"}


class Owner(StrEnum):
    """Whose code it is."""

    PROJECT = "the project's"
    USER = "yours"
    OTHERS = "somebody else's"


class Kind(Enum):
    """A kind of code: a description, and the owner."""

    PROJECT = ("a scenario in `scenarios/` or `scenarios/upstream/` of the project", Owner.PROJECT)
    RELEASE = ("a released package from your package index", Owner.USER)
    FILE = (
        "a script, notebook, scenario or wheel that belongs to you, if you pass its path or it is in `./scenarios`",
        Owner.USER,
    )
    CHECKOUT = (
        "a git repository that belongs to you: its working copy, and the commits in the history of its current branch",
        Owner.USER,
    )
    FOREIGN = ("a file or folder that belongs to another user", Owner.OTHERS)
    DOWNLOAD = (
        "code behind a link, and a file that a browser or another program has marked as a download",
        Owner.OTHERS,
    )
    RECEIVED = ("a file in a bundle, or in a run folder from another user or machine", Owner.OTHERS)
    THREAD = ("code in a saved issue or another file that isn't a Python file or notebook", Owner.OTHERS)
    REVISION = ("a pull request, an address, or another commit", Owner.OTHERS)
    SAVED = ("a package from a source, if you pass only the name of its environment", Owner.OTHERS)

    def __init__(self, description: str, owner: Owner) -> None:
        self.description = description
        self.owner = owner


def classify_file(path: Path, project: Project) -> Kind:
    """Return the kind of a script, scenario or wheel. Generated scenarios have the kind of their original."""
    if path.parent in project.scenario_folders:
        return Kind.PROJECT
    with_links, path = path, path.resolve()
    if path.is_relative_to(cache := get_cache_dir().resolve()):
        folder, _, kind = path.relative_to(cache).parts[0].partition("-")
        is_script = folder == SCRIPTS and (not kind or kind.upper() in Kind.__members__)
        received = Kind.DOWNLOAD if folder == DOWNLOADS else Kind.RECEIVED
        return (Kind[kind.upper()] if kind else Kind.FILE) if is_script else received
    if not (_is_own(with_links) and _is_own(path)):
        return Kind.FOREIGN
    if _is_download(path):
        return Kind.DOWNLOAD
    if any(map(_is_received, path.parents)):
        return Kind.RECEIVED
    is_python = path.suffix.lower() in {*_PYTHON_FILES, ".whl"} or _starts_with(path, b"#!")
    return Kind.THREAD if not is_python or _starts_with(path, b"```", b"~~~") else Kind.FILE


def classify_package(spec: FromSource, project: Project, repository: str = "") -> Kind:
    """Return the kind of a package from a source. `repository` is a folder or an address, for revisions."""
    if spec.place.endswith(".whl"):
        return classify_file(Path(spec.place.removeprefix("file://")).expanduser(), project)
    place = parse_place(spec, repository)
    return Kind.REVISION if place.folder is None else classify_commits(place.folder, [place.revision])


def classify_commits(folder: Path, revisions: Iterable[str]) -> Kind:
    """Return the kind of revisions of a repository. An empty revision is the working copy."""
    if not _is_own(folder):
        return Kind.FOREIGN
    with_history = [revision for revision in revisions if revision]
    try:
        is_known = all(git.is_in_history(folder, revision) for revision in with_history)
    except HarnessError:
        is_known = False
    return Kind.CHECKOUT if is_known else Kind.REVISION


def classify_environments(
    requested: Sequence[Requested],
    names: Sequence[str],
    environments: Mapping[str, Environment],
    project: Project,
    repository: str = "",
) -> dict[str, Kind]:
    """Return the kinds of environments with packages from sources, by name. `names` are the names of `requested`."""
    kinds = {name: Kind.SAVED for name, environment in environments.items() if environment.source}
    for value, name in zip(requested, names, strict=True):
        if name in kinds and isinstance(value, FromSource):
            kinds[name] = classify_package(value, project, repository)
    return kinds


def list_scenarios(scenarios: Iterable[Scenario], project: Project) -> dict[str, Kind]:
    """Return the kinds of scenarios, by name."""
    return {scenario.name: classify_file(scenario.path, project) for scenario in scenarios}


def find_untrusted(kinds: Mapping[str, Kind]) -> dict[str, str]:
    """Return the names of other people's code, with descriptions."""
    return {name: kind.description for name, kind in kinds.items() if kind.owner is Owner.OTHERS}


def get_folder(kind: Kind) -> str:
    """Return the folder in the user's cache for scenarios that are generated from code of this kind."""
    return SCRIPTS if kind.owner is not Owner.OTHERS else f"{SCRIPTS}-{kind.name.lower()}"


def _is_own(path: Path) -> bool:
    """Return whether a file, and a link to it, belong to this user. A missing file is reported later."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return True


def _is_download(path: Path) -> bool:
    try:
        return any(mark in os.listxattr(path) for mark in _DOWNLOAD_MARKS)
    except OSError:  # missing, or on a file system without attributes
        return False


def _is_received(folder: Path) -> bool:
    """Return whether a folder is a bundle, or a run that this user didn't start on this machine."""
    if not (folder / "run.json").is_file() or not any((folder / name).is_file() for name in _RUN_FILES):
        return False
    try:
        return not RunFolder.open(folder).is_from_here()
    except (HarnessError, OSError):
        return True


def _starts_with(path: Path, *prefixes: bytes) -> bool:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return file.read(3).startswith(prefixes)
    except OSError:
        return False
