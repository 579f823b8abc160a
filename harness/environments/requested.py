"""Values of -e. Each text is parsed once, when a command starts; later functions get these objects.

    tf2.15, tf2.*, tf2.15-numpy-1.26.4         Named: a name in the catalog or of a saved environment, or a glob
    latest, tf2.21+keras-nightly@2026-08-01    ReleaseLine: a changing version, such as the newest one
    tensorflow==2.0.0,keras==2.3.1             Pinned: requirements
    tf2.15@py3.9                               OnPython: an environment with another version of Python
    tf2.0+numpy==1.21.6, tf2.15+psutil         Override: an environment with replaced or added packages
    tf2.21+keras@/path/to/checkout             FromSource: an environment with a package that is built from a source
    requirements.txt                           Files: a file that lists packages

`str()` of each object is a text that is parsed to an equal object.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeAlias

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.environments.requirements import normalize, parse_exact, parse_requirement
from harness.model.environment import LINES, TENSORFLOW
from harness.model.errors import UsageError
from harness.model.texts import find_nearest, joined

_EXAMPLE = "For example: -e tensorflow==2.7.1, -e tf-nightly, -e 'tensorflow==2.0.0,keras==2.3.1'"
_OVERRIDE_EXAMPLE = "For example: -e tf2.0+numpy==1.21.6"
_DAY_EXAMPLE = "Example: -e keras-nightly@2026-08-01"
_OPERATOR = r"[<>=~!]=|[<>]"
#: A comma between requirements. It isn't a comma before a version bound, nor between extras.
_COMMA = re.compile(rf",(?!\s*(?:{_OPERATOR}))(?![^\[\]]*\])")
#: The maximum length of an environment's name in characters. A Docker repository and a file also have this name.
_NAME_LENGTH = 100
#: A plus before a package with a version bound. The plus in a local version (2.15.0+cu12) has no bound after it.
_PLUS = re.compile(rf"\+(?=\s*[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:{_OPERATOR}))")
#: The start of a release without a name: 2.12 means tf2.12, and 2.12.1 means tensorflow==2.12.1.
_BARE_RELEASE = re.compile(r"^(?=\d\.\d+(\.\d+)?(?:$|[@+]))")
_PACKAGE_FILE = re.compile(r"\.(txt|yml|yaml|toml|lock)$")
_ON_PYTHON = re.compile(r"(?P<base>[^@+]+)@py(?P<python>3\.\d{1,2})")
#: A version of Python, which isn't a day.
_PYTHON = re.compile(r"@py\d\.\d+(?=\+|$)")
#: The package of a release line: at the start of a text, or added to a base.
FIRST_PACKAGE = re.compile(r"(latest|tf-nightly-cpu|tf-nightly)(?=[,+]|$)")
ADDED_PACKAGE = re.compile(r"\+keras-nightly(?=\+|$)")
#: A package and a place. A day after the `@` isn't a place: it selects the version of that day.
_SOURCE = re.compile(
    r"(?:(?P<base>.+?)\+)?(?P<package>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)@(?!\d{4}-\d{2}-\d{2}(?:\+|$))(?P<place>\S.*)"
)
#: The start of a place that can't be a revision or a day. `whl-` and a hash are a stored wheel.
_PLACE = re.compile(r"[/~]|\.\.?(?:/|$)|pr/|(?:git\+)?\w+://|.*\.whl$|whl-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True)
class Named:
    """A name in the catalog or of a saved environment, or a glob."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A release line. `name` is its text without the day.

    The line has the newest wheels that were uploaded by the end of `day` (UTC), or until now if `day` is None.
    """

    name: str
    day: date | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.day}" if self.day else self.name


@dataclass(frozen=True, slots=True)
class Pinned:
    """A TensorFlow package and its version, and other requirements.

    `others` are PEP 508 requirements. If one is an exact version of Keras, it comes first.
    """

    package: str
    version: str
    others: Sequence[str]

    def __str__(self) -> str:
        return ",".join([f"{self.package}=={self.version}", *self.others])

    @property
    def pins(self) -> dict[str, str]:
        """The other packages with one requested version, and this version."""
        return _find_pins(self.others)

    @property
    def name(self) -> str:
        """The name of its environment: `tensorflow-2.0.0-keras-2.3.1`. Different texts have different names."""
        parts = str(self).split(",")
        return _make_name(parts, str(self), f"{self.package}-{self.version}")


@dataclass(frozen=True, slots=True)
class OnPython:
    """An environment with another version of Python (X.Y), and the packages of the same date."""

    base: Named | Pinned
    python: str

    def __str__(self) -> str:
        return f"{self.base}@py{self.python}"

    @property
    def name(self) -> str:
        """The name of its environment: `tf2.15-py3.9`."""
        return f"{self.base.name}-py{self.python}"


@dataclass(frozen=True, slots=True)
class Override:
    """An environment, and packages that are added to its lock, or replace packages there: PEP 508, sorted."""

    base: Named | Pinned | OnPython
    packages: Sequence[str]

    def __str__(self) -> str:
        return "+".join([str(self.base), *self.packages])

    @property
    def by_name(self) -> dict[str, str]:
        """The packages' requirements by their normalized names."""
        return {Requirement(text).name: text for text in self.packages}

    @property
    def pins(self) -> dict[str, str]:
        """The packages with one requested version, and this version."""
        return _find_pins(self.packages)

    @property
    def name(self) -> str:
        """The name of its environment: `tf2.0-numpy-1.21.6`. Different texts have different names."""
        # `tensorflow==2.0.0,numpy==1.16.4` must get a different name, so this name has two dashes. No package name has
        # two dashes in a row.
        base = f"{self.base.name}-" if isinstance(self.base, Pinned) else str(self.base)
        return _make_name([base, *self.packages], str(self), base)


@dataclass(frozen=True, slots=True)
class FromSource:
    """A package from a source. `base` is the environment, or None for a wheel of TensorFlow.

    `place` is a path, a URL, a pull request or a revision (harness/environments/sources.py).
    """

    base: "Requested | None"
    package: str
    place: str

    def __str__(self) -> str:
        return f"{self.base}+{self.package}@{self.place}" if self.base else f"{self.package}@{self.place}"


@dataclass(frozen=True, slots=True)
class Files:
    """A file that lists packages, which `harness run` accepts."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


Requested: TypeAlias = Named | ReleaseLine | Pinned | OnPython | Override | FromSource | Files


def parse_requested(text: str, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> Requested:
    """Parse a value of -e. Raises UsageError, with an example, for a text that isn't valid.

    `today` returns the current day (UTC): a release line has no later days.
    """
    text = _BARE_RELEASE.sub(lambda match: "tensorflow==" if match[1] else "tf", text.strip())
    is_override = bool(_PLUS.search(text)) or "+" in re.split(_OPERATOR, text)[0]
    is_pinned = bool(re.search(_OPERATOR, text)) or "+" in text
    if _PACKAGE_FILE.search(text) and not is_pinned:
        return Files(Path(text))
    if special := _parse_source(text) or _parse_line(text, today):
        return special
    if match := _ON_PYTHON.fullmatch(text):
        base = match["base"].strip()
        return OnPython(_parse_pinned(base) if re.search(_OPERATOR, base) else Named(base), match["python"])
    if is_override:
        return _parse_override(text)
    return _parse_pinned(text) if is_pinned else Named(text)


def list_packages(requested: Requested) -> set[str]:
    """Return the normalized names of the packages that are requested from the index."""
    match requested:
        case Pinned():
            return {requested.package, *(canonicalize_name(Requirement(text).name) for text in requested.others)}
        case Override():
            return {*requested.by_name} | list_packages(requested.base)
        case OnPython():
            return list_packages(requested.base)
    return set()


def is_line(text: str) -> bool:
    """Return whether a text names a release line. A text that isn't valid, such as one in a stored run, names none."""
    try:
        return isinstance(parse_requested(text), ReleaseLine)
    except UsageError:
        return False


def get_environment_name(text: str) -> str:
    """Return the name of the environment that a value of -e selects. A package from a source has no name yet."""
    requested = parse_requested(text)
    return str(requested) if isinstance(requested, FromSource | Files) else requested.name


def _parse_source(text: str) -> FromSource | None:
    match = _SOURCE.fullmatch(text)
    if match is None:
        return None
    package, place = canonicalize_name(match["package"]), match["place"]
    # a release line with another text after `@` has an invalid day, not a revision
    may_be_revision = match["base"] and package not in LINES
    if not (may_be_revision or _PLACE.match(place)):
        return None
    return FromSource(parse_requested(match["base"]) if match["base"] else None, package, place)


def _parse_line(text: str, today: Callable[[], date]) -> ReleaseLine | None:
    """Return the release line that a text names; None for any other environment.

    Raises UsageError for a day that is invalid or in the future, and for a day after a name that isn't a release line.
    """
    compact = "".join(text.split())
    if _PYTHON.search(compact):
        return None
    name, separator, day = compact.rpartition("@") if "://" not in compact else ("", "", compact)
    name = "keras-nightly" if (name or day) == "latest+keras-nightly" else name or day
    has_line = name == "keras-nightly" or bool(FIRST_PACKAGE.match(name) or ADDED_PACKAGE.search(name))
    if not separator:
        return ReleaseLine(name) if has_line else None
    if not has_line:
        nearest = find_nearest(name, LINES)
        hint = f" Did you mean {nearest}@{day}?" if nearest else ""
        if day.startswith("py"):
            raise UsageError(f"{text!r}: {day!r} isn't a version of Python.", f"For example: -e {name}@py3.11")
        raise UsageError(
            f"{text!r}: {name} isn't a release line, so you can't select a day.{hint}",
            f"Release lines are {joined(LINES)}, and an environment with a nightly Keras, such as "
            f"tf2.21+keras-nightly.",
        )
    try:
        selected_day = date.fromisoformat(day) if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else None
    except ValueError:
        selected_day = None
    if selected_day is None:
        raise UsageError(f"Invalid day {day!r} for the release line {name}: expected YYYY-MM-DD.", _DAY_EXAMPLE)
    if selected_day > today():
        raise UsageError(
            f"{name}@{day} is in the future: today is {today()} (UTC).", f"To use the newest wheel, pass -e {name}."
        )
    return ReleaseLine(name, selected_day)


def _parse_override(text: str) -> Override:
    base, *parts = _split_packages(text)
    if not base:
        raise _make_error(text, "there is no environment before the plus", _OVERRIDE_EXAMPLE)
    requirements = [_parse_requirement(part, text, _OVERRIDE_EXAMPLE) for part in parts]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    duplicate = next((name for name in names if names.count(name) > 1), "")
    if duplicate:
        raise _make_error(text, f"{duplicate} is listed twice", _OVERRIDE_EXAMPLE)
    requested = parse_requested(base)
    if not isinstance(requested, Named | Pinned | OnPython):
        raise _make_error(text, f"packages of {base!r} can't be replaced", _OVERRIDE_EXAMPLE)
    return Override(requested, sort_packages(map(normalize, requirements), base))


def sort_packages(texts: Iterable[str], base: str) -> list[str]:
    """Return requirements in the order of their names, without a version first, because of `_split_packages`.

    After a base with a version, a name alone would be part of the version, so the name gets a bound.
    """
    if re.search(_OPERATOR, base):
        texts = [text if re.search(_OPERATOR, text) else f"{text}>=0" for text in texts]
    return sorted(texts, key=lambda text: (bool(re.search(_OPERATOR, text)), text))


def _split_packages(text: str) -> list[str]:
    """Split a text at each plus before a package. After a version, a plus before a mere word is part of the version."""
    parts = list[str]()
    for piece in _PLUS.split(text):
        first, *words = piece.split("+")
        parts += [piece] if re.search(_OPERATOR, first) else [first, *words]
    return [part.strip() for part in parts]


def _parse_pinned(text: str) -> Pinned:
    first, *others = [_parse_requirement(part.strip(), text) for part in _COMMA.split(text)]
    package = canonicalize_name(first.name)
    if package not in TENSORFLOW:
        raise _make_error(text, f"the first package is {first.name}, not one of {', '.join(TENSORFLOW)}")
    version = parse_exact(first)
    if first.extras or not version:
        raise _make_error(text, f"{first} is not an exact version")
    return Pinned(package, version, sorted(map(normalize, others), key=lambda other: not other.startswith("keras==")))


def _parse_requirement(part: str, text: str, example: str = _EXAMPLE) -> Requirement:
    try:
        requirement = parse_requirement(part)
    except ValueError:
        raise _make_error(text, f"{part!r} is not a valid requirement", example) from None
    if requirement.url or requirement.marker:
        raise _make_error(text, f"{part!r} is not a package with a version", example)
    return requirement


def _find_pins(texts: Sequence[str]) -> dict[str, str]:
    """Return the packages with one requested version, and this version."""
    return {
        requirement.name: version for requirement in map(Requirement, texts) if (version := parse_exact(requirement))
    }


def _make_name(parts: Sequence[str], text: str, start: str) -> str:
    """Join the parts if all versions are exact and the name is short. Otherwise, join the start and a hash."""
    name = "-".join(parts).replace("==", "-")
    if not re.search(r"[<>~!,]", name) and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) and len(name) <= _NAME_LENGTH:
        return name
    return f"{re.sub(r'[^a-z0-9.]+', '-', start)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _make_error(text: str, reason: str, example: str = _EXAMPLE) -> UsageError:
    return UsageError(f"The environment {text!r} cannot be created: {reason}.", example)
