"""Requested environments: requirements, and packages that are replaced in another environment."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.model.environment import KERAS, TENSORFLOW
from harness.model.errors import UsageError
from harness.model.texts import find_nearest

#: TensorFlow packages whose versions are dates.
NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")

_EXAMPLE = "For example: -e tensorflow==2.7.1, -e tf-nightly, -e 'tensorflow==2.0.0,keras==2.3.1'"
_OVERRIDE_EXAMPLE = "For example: -e tf2.0+numpy==1.21.6"
_OPERATOR = r"[<>=~!]=|[<>]"
#: A comma between requirements. It isn't a comma before a version bound, nor between extras.
_COMMA = re.compile(rf",(?!\s*(?:{_OPERATOR}))(?![^\[\]]*\])")
#: The maximum length of an environment's name in characters. A Docker repository and a file also have this name.
_NAME_LENGTH = 100
#: A plus before a package with a version bound. The plus in a local version (2.15.0+cu12) has no bound after it.
_PLUS = re.compile(rf"\+(?=\s*[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?(?:{_OPERATOR}))")
#: A number that is too long for a version. Python itself converts at most 4,300 digits.
LONG_NUMBER = re.compile(r"[0-9]{1001}")
#: The values of environment markers in launches.
_LAUNCH_MARKERS = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
#: The patch version of Python in environment markers. The last releases of each Python version have about this number.
_PATCH_VERSION = 20
#: An environment with another version of Python: `tf2.15@py3.9`.
_ON_PYTHON = re.compile(r"(?P<base>[^@+]+)@py(?P<python>3\.\d{1,2})")


@dataclass(frozen=True, slots=True)
class RequirementSpec:
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
class LockOverride:
    """An environment, and packages that replace those in its lock.

    `base` is a name in the catalog, or the text of a `RequirementSpec`. `packages` are PEP 508 requirements, sorted by
    name.
    """

    base: str
    packages: Sequence[str]

    def __str__(self) -> str:
        return "+".join([self.base, *self.packages])

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
        base = f"{parse(self.base).name}-" if has_requirements(self.base) else self.base
        return _make_name([base, *self.packages], str(self), base)


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


def has_requirements(text: str) -> bool:
    """Return whether a value of -e contains requirements, rather than a name or a glob."""
    return bool(re.search(_OPERATOR, text)) or "+" in text


def has_override(text: str) -> bool:
    """Return whether a value of -e names packages to replace in an environment, rather than only requirements."""
    return bool(_PLUS.search(text)) or "+" in re.split(_OPERATOR, text)[0]


def split_python(text: str) -> tuple[str, str]:
    """Return the environment and the version of Python of `tf2.15@py3.9`; an empty version for other text."""
    match = _ON_PYTHON.fullmatch(text.strip())
    return (match["base"].strip(), match["python"]) if match else (text, "")


def get_environment_name(text: str) -> str:
    """Return the name of the environment that a value of -e selects."""
    base, python = split_python(text)
    if python:
        return f"{get_environment_name(base)}-py{python}"
    return parse_override(text).name if has_override(text) else parse(text).name if has_requirements(text) else text


def parse_override(text: str) -> LockOverride:
    """Parse an environment and packages to replace. Raises UsageError, with an example, for other text."""
    base, *parts = (part.strip() for part in _PLUS.split(text))
    if not base or (not has_requirements(base) and "+" in base) or not parts:
        nearest = find_nearest(text.rpartition("+")[2], KERAS[1:])
        hint = f" Did you mean {text.rpartition('+')[0]}+{nearest}?" if nearest else ""
        raise _make_error(text, "the package to replace needs a version", f"{_OVERRIDE_EXAMPLE}{hint}")
    requirements = [_parse_requirement(part, text, _OVERRIDE_EXAMPLE) for part in parts]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    duplicate = next((name for name in names if names.count(name) > 1), "")
    if duplicate:
        raise _make_error(text, f"{duplicate} is listed twice", _OVERRIDE_EXAMPLE)
    return LockOverride(str(parse(base)) if has_requirements(base) else base, sorted(map(_normalize, requirements)))


def parse(text: str) -> RequirementSpec:
    """Parse a pinned TensorFlow with requirements. Raises UsageError, with examples, for other text."""
    first, *others = [_parse_requirement(part.strip(), text) for part in _COMMA.split(text)]
    package = canonicalize_name(first.name)
    if package not in TENSORFLOW:
        raise _make_error(text, f"the first package is {first.name}, not one of {', '.join(TENSORFLOW)}")
    version = parse_exact(first)
    if first.extras or not version:
        raise _make_error(text, f"{first} is not an exact version")
    return RequirementSpec(
        package, version, sorted(map(_normalize, others), key=lambda spec: not spec.startswith("keras=="))
    )


def parse_requirement(text: str) -> Requirement:
    """Parse a PEP 508 requirement. Raises ValueError for other text, for too long numbers, and for an invalid marker.

    `packaging` would raise the errors of numbers and markers only when they are used.
    """
    # a command line can contain bytes that aren't UTF-8, as surrogates
    if LONG_NUMBER.search(text) or re.search(r"[\ud800-\udfff]", text):
        raise InvalidRequirement("a number is too long, or a character is invalid")
    try:
        requirement = Requirement(text)
        applies(requirement, "3.11")
    except RecursionError:
        raise InvalidRequirement("the marker is nested too deeply") from None
    return requirement


def _parse_requirement(part: str, text: str, example: str = _EXAMPLE) -> Requirement:
    try:
        requirement = parse_requirement(part)
    except ValueError:
        raise _make_error(text, f"{part!r} is not a valid requirement", example) from None
    if requirement.url or requirement.marker:
        raise _make_error(text, f"{part!r} is not a package with a version", example)
    return requirement


def parse_exact(requirement: Requirement) -> str:
    """Return the normalized version of an exact requirement, or an empty text if it allows several versions."""
    match list(requirement.specifier):
        case [Specifier(operator="==", version=version)] if not version.endswith(".*"):
            return str(Version(version))
    return ""


def applies(requirement: Requirement, python: str) -> bool:
    """Return whether a requirement applies to launches with Python X.Y, according to its environment marker."""
    versions = {"python_version": python, "python_full_version": f"{python}.{_PATCH_VERSION}"}
    return requirement.marker is None or requirement.marker.evaluate({**_LAUNCH_MARKERS, **versions})


def _normalize(requirement: Requirement) -> str:
    version = parse_exact(requirement)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{canonicalize_name(requirement.name)}{extras}{f'=={version}' if version else requirement.specifier}"


def _make_error(text: str, reason: str, example: str = _EXAMPLE) -> UsageError:
    return UsageError(f"The environment {text!r} cannot be created: {reason}.", example)
