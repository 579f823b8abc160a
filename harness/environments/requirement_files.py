"""Reads files that list an environment's packages: requirements.txt, environment.yml, uv.lock and pylock.toml."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from packaging.pylock import Pylock, PylockValidationError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness import toml
from harness.environments.lines import PYTHONS
from harness.environments.requirements import LONG_NUMBER, applies, parse_exact, parse_requirement
from harness.files import read_text
from harness.machine.uv import get_last_lines, run_uv
from harness.model.environment import TENSORFLOW
from harness.model.errors import UsageError

#: Locks of a project. The first one that is in the folder of pyproject.toml is used.
LOCKS = ("pylock.toml", "uv.lock")

#: An option of pip that includes another file or a folder.
_FILE_OPTION = re.compile(r"-[rce]\b|--(?:requirement|constraint|editable)\b")
_REQUIREMENTS = re.compile(r"(?:-r|--requirement)[ =]*(?P<file>\S.*)")
#: The versions of Python that an environment can have. An image can have Python 3.6 only if the catalog lists it.
_PYTHONS = ("3.6", *PYTHONS)
#: A package in environment.yml: a channel, the name, its version and its build.
_CONDA = re.compile(r"(?:[\w./-]+::)?([\w.-]+)\s*(?:(==?)\s*([^\s=,|*]+)(\.\*)?(?:=(\S+))?|([<>!~].*)?)")
#: A condition about a group of packages, or an extra, in the marker of a lock file.
_GROUP = re.compile(r"""(["'])(?P<name>[^"']+)\1 (?P<negation>not )?in (?P<kind>dependency_groups|extras)\b""")
#: The advice for other files.
_EXPORT_ADVICE = (
    "Pass requirements.txt, environment.yml, pylock.toml or uv.lock. Poetry and PDM write a requirements.txt with "
    "`poetry export` and `pdm export`."
)
#: Conda packages that aren't required from the index, because an environment's image has Python, pip and CUDA already.
_IMAGE_PACKAGES = re.compile(r"python|pip|cuda.*|cudnn")


@dataclass(frozen=True, slots=True)
class PackageFile:
    """The packages of a file: its TensorFlow, such as `tensorflow==2.15.0` (or empty), and other requirements.

    If TensorFlow has no exact version, `unpinned` is a sentence about it. Then other values of -e select the release.
    """

    tensorflow: str
    others: tuple[Requirement, ...]
    unpinned: str = ""

    @property
    def depends_on_python(self) -> bool:
        """Whether a requirement applies only to some versions of Python."""
        return any(len({applies(requirement, python) for python in _PYTHONS}) > 1 for requirement in self.others)

    def list_requirements(self, python: str) -> list[str]:
        """Return the other requirements that apply to Python X.Y, without their markers.

        `python` may be empty if no requirement depends on it.
        """
        version = python or _PYTHONS[-1]
        texts = [str(requirement).split(";")[0].strip() for requirement in self.others if applies(requirement, version)]
        return [*dict.fromkeys(texts)]


def read(path: Path) -> PackageFile:
    """Read the packages of a file, without those for other operating systems.

    For pyproject.toml, read the lock file in the same folder. Raises UsageError for a file that can't be read, and for
    a package that isn't from an index.
    """
    if path.name == "pyproject.toml":
        lock = next((path.with_name(name) for name in LOCKS if path.with_name(name).exists()), None)
        if lock is None:
            raise UsageError(
                f"The folder of {path} has no lock file ({', '.join(LOCKS)}).",
                f"Create a lock file with `uv lock`, or pass another file. {_EXPORT_ADVICE}",
            )
        path = lock
    with toml.hide_linked_file(path):
        return _separate_tensorflow(_read_requirements(path))


def _read_requirements(path: Path) -> Iterable[tuple[str, Requirement]]:
    text = toml.read_file(path)
    if path.name == "uv.lock":
        return _read_uv(path)
    if path.suffix == ".txt":
        return _read_pip(text, path)
    if path.suffix in {".yml", ".yaml"}:
        return _read_conda(text, path)
    if path.suffix == ".toml":
        return _read_pylock(text, path)
    raise UsageError(f"{path} isn't a file with a list of packages that harness can read.", _EXPORT_ADVICE)


def _separate_tensorflow(requirements: Iterable[tuple[str, Requirement]]) -> PackageFile:
    """Separate TensorFlow from other requirements, each with its place in the file for errors."""
    tensorflow, unpinned, others = "", "", []
    for location, requirement in requirements:
        if not any(applies(requirement, python) for python in _PYTHONS):
            continue
        if canonicalize_name(requirement.name) not in TENSORFLOW:
            others.append(requirement)
        elif version := parse_exact(requirement):
            if tensorflow and Version(tensorflow.partition("==")[2]) != Version(version):
                raise UsageError(
                    f"{location}: an earlier line has another version of TensorFlow.",
                    "Keep only the line with the version that you want to measure.",
                )
            # without extras, because harness adds the packages of CUDA for a GPU
            tensorflow = f"{canonicalize_name(requirement.name)}=={version}"
        else:
            unpinned = f"{location}: {requirement.name} has no exact version."
    return PackageFile(tensorflow, tuple(others), unpinned)


def _read_pip(text: str, path: Path, including_files: tuple[Path, ...] = ()) -> Iterator[tuple[str, Requirement]]:
    """Read the packages of a requirements file, and of the files that it includes. Raises UsageError.

    `including_files` are the files that include this file. Errors don't quote lines of included files and of links,
    because logs may be public.
    """
    number, is_quoted = 1, not including_files and not path.is_symlink()
    for line in re.split(r"(?<!\\)\n", text):  # a backslash continues the line
        entry = re.sub(r"(^|\s)#.*", "", line.replace("\\\n", " ")).split(" --hash")[0].strip()
        location, included = f"{path}, line {number}", _REQUIREMENTS.fullmatch(entry)
        if included:
            yield from _read_included(included["file"], (*including_files, path), location)
        elif entry and (not entry.startswith("-") or _FILE_OPTION.match(entry)):
            yield location, _parse_requirement(entry, location, is_quoted=is_quoted)
        number += 1 + line.count("\n")


def _read_included(name: str, files: tuple[Path, ...], location: str) -> Iterator[tuple[str, Requirement]]:
    """Read a file that the last of `files` includes. It must be below the folder of the first one."""
    path = files[-1].parent / name
    try:
        real_path = Path(os.path.realpath(path))
        if not real_path.is_relative_to(os.path.realpath(files[0].parent)):
            raise UsageError(
                f"{location}: the included file is outside the folder of {files[0].name}.",
                "Move the file into this folder, or write its packages instead of this line.",
            )
        if real_path in {Path(os.path.realpath(file)) for file in files}:
            raise UsageError(f"{location}: this file includes itself.", "Remove this line.")
        text = read_text(path)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "its path or its text isn't valid"
        raise UsageError(f"{location}: the included file can't be read: {reason}.") from None
    yield from _read_pip(text, path, files)


def _read_conda(text: str, path: Path) -> Iterator[tuple[str, Requirement]]:
    try:
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        location = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{location}: this isn't valid YAML: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{path} isn't valid YAML: {str(error).splitlines()[0]}.") from None
    packages = document.get("dependencies") if isinstance(document, Mapping) else None
    if not isinstance(packages, list):
        raise UsageError(f"{path} has no list of dependencies, so it isn't a conda environment file.")
    for package in packages:
        lines = package.get("pip") if isinstance(package, Mapping) else None
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            yield from _read_pip("\n".join(lines), path)
        elif not isinstance(package, str):
            raise UsageError(f"{path}: an entry in dependencies is neither a package nor a list of pip packages.")
        elif requirement := _convert_conda(package, path):
            yield str(path), requirement


def _convert_conda(package: str, path: Path) -> Requirement | None:
    """Return a conda package as a requirement for the package index, or None if the image has it already."""
    match = _CONDA.fullmatch(package.strip())
    if not match:
        raise _make_index_error(package, str(path))
    name, operator, version, prefix, build, bounds = match.groups()
    if build:
        raise UsageError(
            f"{path}: {package!r} is one build of a conda package, and the package index has no such builds.",
            "Export only the packages that you installed: conda env export --from-history > environment.yml",
        )
    if _IMAGE_PACKAGES.fullmatch(name):
        return None
    # in conda, =2.15 means 2.15.*; a TensorFlow version with three parts is exact
    is_exact = operator == "==" or (name in TENSORFLOW and version and version.count(".") == 2)
    suffix = "" if is_exact and not prefix else ".*"
    return _parse_requirement(f"{name}=={version}{suffix}" if version else f"{name}{bounds or ''}", str(path))


def _read_uv(path: Path) -> Iterator[tuple[str, Requirement]]:
    options = ["--frozen", "--no-hashes", "--no-emit-project", "--no-header", "--no-annotate", "--no-dev", "--quiet"]
    process = run_uv(["export", f"--directory={path.absolute().parent}", *options])
    if process.returncode:
        # uv quotes lines of the lock file and of pyproject.toml, which can be links to other files
        errors = re.sub(r"(?m)^ *\d* *\|.*\n?", "", process.stderr)
        raise UsageError(
            f"{path} can't be read by uv:\n{get_last_lines(errors)}", "To create the lock file again: uv lock"
        )
    return _read_pip(process.stdout, path)


def _read_pylock(text: str, path: Path) -> Iterator[tuple[str, Requirement]]:
    """Read the packages that are installed by default from pylock.toml (PEP 751), so no extras."""
    try:
        lock = Pylock.from_dict(tomllib.loads(text))
    except (PylockValidationError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} isn't a valid lock file (PEP 751): {error}.", _EXPORT_ADVICE) from None

    def choose_group(match: re.Match[str]) -> str:
        groups = (lock.default_groups or ()) if match["kind"] == "dependency_groups" else ()
        is_installed = (match["name"] in groups) != bool(match["negation"])
        return f"os_name {'==' if is_installed else '!='} 'posix'"

    for package in lock.packages:
        if package.version is None or not (package.wheels or package.sdist):
            raise _make_index_error(package.name, str(path))
        marker = _GROUP.sub(choose_group, f" ; {package.marker}") if package.marker else ""
        yield str(path), _parse_requirement(f"{package.name}=={package.version}{marker}", str(path))


def _parse_requirement(text: str, location: str, *, is_quoted: bool = True) -> Requirement:
    try:
        requirement = parse_requirement(text)
    except ValueError:
        requirement = None
    if requirement is None or requirement.url:
        raise _make_index_error(text, location, is_quoted=is_quoted)
    return requirement


def _make_index_error(text: str, location: str, *, is_quoted: bool = True) -> UsageError:
    problem = "has a number of more than 1,000 digits" if LONG_NUMBER.search(text) else "isn't a package from an index"
    return UsageError(
        f"{location}: {repr(text[:80]) if is_quoted else 'the line'} {problem}.",
        "Write the packages with their versions instead of this line.",
    )
