"""Environments from sources: a wheel that is built from source files replaces one package of an environment.

    tf2.21+keras@/path/to/checkout            a working copy, with its uncommitted changes
    tf2.21+keras@git+file:///path@REVISION    a commit of a local repository
    tf2.21+keras@https://host/owner/name@REV  a commit of a remote repository
    tf2.21+keras@pr/23288                     a pull request of the package's repository
    tf2.21+keras@REVISION                     a commit of the repository that --repository names
    tensorflow@/path/tf.whl                   a wheel

The user's cache stores the wheels by hash. A lock has the hash of the wheel instead of the package's hashes.
"""

import hashlib
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from email.parser import BytesParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.environments import index
from harness.environments.lock_overrides import split_blocks
from harness.environments.requested import FromSource
from harness.environments.requirements import applies, parse_requirement
from harness.files import create_file, get_wheel_path, read
from harness.machine import git
from harness.machine.uv import get_last_lines
from harness.model.environment import KERAS, TENSORFLOW, X86_64, Environment, find_unmet, pins
from harness.model.environment import Requirement as Locked
from harness.model.errors import CannotRunHereError, UsageError, explain_unwritable
from harness.model.texts import joined

_PULL_REQUEST = re.compile(r"pr/(\d{1,9})")
_ADDRESS = re.compile(r"(?:git\+)?(?P<address>(?:https?|ssh|file)://[^/]*/.*?)(?:@(?P<revision>[^@]+))?")
#: The start of a path.
_PATH = re.compile(r"[/~]|\.\.?(?:/|$)")

#: The repositories of packages, for pull requests and for revisions without --repository.
REPOSITORIES = {"keras": "https://github.com/keras-team/keras"}

#: The number of bytes that are read from a wheel's metadata.
_METADATA_BYTES = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A folder with its current files (`revision` is empty), or a revision of a repository.

    `repository` is a folder or an address, or empty if it isn't known.
    """

    repository: str
    revision: str

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the repository is a folder of this machine."""
        return bool(self.repository) and "://" not in self.repository.removeprefix("file://")

    @property
    def folder(self) -> Path | None:
        """The folder of this machine with the files. A clone doesn't have the pull requests of its `origin`."""
        is_here = self.is_on_this_machine and not self.revision.startswith("refs/pull/")
        return Path(self.repository.removeprefix("file://")).expanduser() if is_here else None


def parse_place(spec: FromSource, repository: str = "") -> SourcePlace:
    """Return the place of a package. `repository` is a folder or an address, for places that are revisions."""
    place, repository = spec.place, repository.removeprefix("git+")
    usual_repository = REPOSITORIES.get(spec.package, "")
    if pull := _PULL_REQUEST.fullmatch(place):
        server = repository if _ADDRESS.fullmatch(repository) else usual_repository or repository
        return SourcePlace(server, f"refs/pull/{pull[1]}/head")
    if match := _ADDRESS.fullmatch(place):
        return SourcePlace(match["address"], match["revision"] or "HEAD")
    if _PATH.match(place) or (not repository and Path(place).is_dir()):
        return SourcePlace(place, "")
    return SourcePlace(repository or usual_repository, place)


@contextmanager
def open_place(spec: FromSource, repository: str = "") -> Iterator[git.Snapshot]:
    """Yield the files that a place names. `repository` is a folder or an address, for places that are revisions.

    Raises UsageError if the place doesn't exist, and CannotRunHereError if a repository doesn't answer.
    """
    place = parse_place(spec, repository)
    if place.revision:
        yield _read_revision(spec, place)
        return
    folder = Path(place.repository).expanduser()
    if not folder.is_dir():
        reason = "is neither a folder nor a wheel" if folder.exists() else "does not exist"
        raise UsageError(
            f"{spec.place} {reason}, so {spec.package} cannot be built from it.",
            "For example: -e tf2.21+keras@/path/to/checkout, or -e tf2.21+keras@git+file:///path@REVISION",
        )
    with git.copy_working_tree(folder) as snapshot:
        yield snapshot


def _read_revision(spec: FromSource, place: SourcePlace) -> git.Snapshot:
    """Return the files of a revision."""
    repository = place.repository
    if not repository:
        raise UsageError(
            f"The repository of {spec.package} is unknown, so {spec.place!r} can't be found.",
            "Pass a clone or an address: --repository FOLDER",
        )
    if place.folder is not None:
        return git.read_commit(_check_folder(place.folder, place.revision), place.revision)
    if not _ADDRESS.fullmatch(repository):  # a clone, whose `origin` has the pull request
        repository = git.read_origin(_check_folder(Path(repository).expanduser(), spec.place))
        if not repository:
            raise UsageError(
                f"{place.repository} has no remote `origin`, so {spec.place!r} can't be found there.",
                "Pass the address: --repository https://HOST/OWNER/NAME",
            )
    advice = f"Check the network, or use a checkout: -e {spec.base}+{spec.package}@FOLDER"
    return git.fetch_commit(repository, place.revision, advice)


def _check_folder(folder: Path, revision: str) -> Path:
    if not folder.is_dir():
        raise UsageError(f"The folder {folder} doesn't exist, so {revision!r} can't be found there.")
    return folder


def find_wheel(spec: FromSource) -> Path | None:
    """Return the wheel that a place names; None for other places. Raises UsageError if the file doesn't exist."""
    if not spec.place.endswith(".whl"):
        return None
    path = Path(spec.place.removeprefix("file://")).expanduser()
    if not path.is_file():
        raise UsageError(
            f"The file {spec.place} doesn't exist.", "Pass a wheel, a checkout or a commit of the package."
        )
    return path


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in the user's cache. `name` is `SHA256/FILE.whl`."""

    name: str
    version: str

    @property
    def path(self) -> Path:
        """Return the path of the wheel."""
        return get_wheel_path(self.name)


def keep_wheel(path: Path, package: str, python: str, architecture: str = X86_64) -> Wheel:
    """Copy a wheel into the user's cache. Raises UsageError if it is for another package, Python or architecture."""
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(f"{path.name} is not the name of a wheel: {error}.") from None
    if name != package:
        raise UsageError(
            f"{path.name} is a wheel of {name}, not of {package}.", f"Write +{name}@ before the path of the wheel."
        )
    if not tags & index.list_supported_tags(python, architecture):
        raise UsageError(f"{path.name} can't be installed: the environment has Python {python} on {architecture}.")
    with path.open("rb") as file:
        wheel = Wheel(f"{hashlib.file_digest(file, 'sha256').hexdigest()}/{path.name}", str(version))
        if not wheel.path.is_file():
            file.seek(0)
            with (
                explain_unwritable(f"The wheel {wheel.path}"),
                create_file(wheel.path) as part,
                part.open("wb") as copy,
            ):
                shutil.copyfileobj(file, copy)
    return wheel


def make_environment(base: Environment, package: str, wheel: Wheel, ids: tuple[str, str], words: str) -> Environment:
    """Return the environment in which a wheel replaces a package of the base.

    `ids` are the source's short ID, for the name, and its long ID, for the requirements. `words` describe the source.
    """
    short, long = ids
    if base.gpu_image:
        raise UsageError(f"Packages of {base.name} can't be replaced: they come from an image, not from a lock file.")
    is_tensorflow = package in TENSORFLOW
    return replace(
        base,
        name=f"{base.name}-{package}-{short}",
        tensorflow=wheel.version if is_tensorflow else base.tensorflow,
        released="" if is_tensorflow else base.released,
        keras=wheel.version if package in KERAS else base.keras,
        asked=f"{base.exact}+{package}@{long}",
        base=base.name,
        line="",
        source=f"{package} {wheel.version} from {words}",
        wheel=wheel.name,
    )


def make_lock_lines(environment: Environment, base: Locked) -> str:
    """Return the lines of the base's lock, with the wheel instead of the package that it replaces.

    Raises UsageError if the wheel needs a package that the base doesn't have.
    """
    path = get_wheel_path(environment.wheel)
    digest, _, file = environment.wheel.partition("/")
    name, version, *_ = parse_wheel_filename(file)
    replaced, base_lines = environment.replaced, split_blocks(base.lock.path.read_text("utf-8"))
    lines_by_package = {package: lines for package, lines in base_lines.items() if package not in replaced}
    lines_by_package[name] = f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
    lines = "".join(lines_by_package[package] for package in sorted(lines_by_package))
    missing = find_unmet(_read_requirements(path, environment), pins(lines))
    if missing:
        names, pinned = [canonicalize_name(Requirement(text).name) for text in missing], base.lock.pins
        installed = [f"{package} {pinned[package]}" if package in pinned else f"no {package}" for package in names]
        raise UsageError(
            f"{environment.source} needs {joined(missing)}, but {base.environment.name} has {joined(installed)}.",
            f"Change the base too: -e {base.environment.name}+{names[0]}==VERSION+{name}@PLACE",
        )
    return lines


def _read_requirements(path: Path, environment: Environment) -> list[str]:
    """Return the requirements of a wheel that apply to the environment's Python."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(member for member in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", member))
            with archive.open(name) as file:
                metadata = BytesParser().parsebytes(file.read(_METADATA_BYTES))
        requirements = [parse_requirement(str(text)) for text in metadata.get_all("Requires-Dist") or ()]
    except OSError:
        raise CannotRunHereError(
            f"The wheel of {environment.name} is no longer in the cache: {path}.",
            "Pass the source of the package again.",
        ) from None
    except (zipfile.BadZipFile, StopIteration, ValueError) as error:
        raise UsageError(f"{path.name} is not a valid wheel: {error or 'it has no METADATA'}.") from None
    return [
        f"{requirement.name}{requirement.specifier}"
        for requirement in requirements
        if applies(requirement, environment.python, index.MACHINES.get(environment.architecture, ""))
    ]


def check_name(folder: Path, package: str) -> None:
    """Raise UsageError if a folder has no Python package, or a package with another name."""
    project = _read_pyproject(folder).get("project", {})
    if not any((folder / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise UsageError(
            f"The source of {package} has neither pyproject.toml nor setup.py, so no wheel can be built from it.",
            "Pass the folder that contains the package.",
        )
    name = project.get("name", "") if isinstance(project, Mapping) else ""
    if name and canonicalize_name(str(name)) != package:
        raise UsageError(
            f"The source contains the package {canonicalize_name(str(name))}, not {package}.",
            f"Write +{canonicalize_name(str(name))}@ before the path or address of the source.",
        )


def _read_pyproject(folder: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(read(Path("pyproject.toml"), within=folder).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"The source's pyproject.toml cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The source's pyproject.toml is not valid TOML: {error}.") from None


def build_lock(folder: Path, python: str, instant: datetime, architecture: str = X86_64) -> str:
    """Return a lock with the packages that are needed to build the source in a folder, as of `instant`.

    Only wheels are used, because reading the requirements of a source package would run its code on this machine.
    Raises UsageError for a requirement that isn't a package with versions, and CannotRunHereError if the index doesn't
    answer.
    """
    table = _read_pyproject(folder).get("build-system")
    build_system = table if isinstance(table, Mapping) else {}
    value = build_system.get("requires")
    entries = value if isinstance(value, list) else []
    requires: dict[str, str] = {}
    for entry in entries if entries or "build-backend" in build_system else ["setuptools"]:
        try:
            requirement = Requirement(str(entry))
        except (InvalidRequirement, RecursionError):
            requirement = None
        if requirement is None or requirement.url:
            raise UsageError(
                f"The build of the source needs {str(entry)[:200]!r}, but a build can only install released packages."
            )
        requires[str(requirement)] = canonicalize_name(requirement.name)
    if "setuptools" in requires.values() and "wheel" not in requires.values():
        requires["wheel"] = "wheel"  # older setuptools doesn't contain it
    if not requires:
        return ""
    date = instant.isoformat().replace("+00:00", "Z")
    options = ["--only-binary=:all:", f"--exclude-newer={date}", f"--python-version={python}"]
    process = index.compile_lock(requires, architecture, *options)
    if process.returncode:
        message = get_last_lines(process.stderr, 12)
        raise CannotRunHereError(
            f"The packages that the build needs ({joined(list(requires))}) are not available:\n{message}"
        )
    return process.stdout
