"""Reads what was typed for an environment that is not in the catalogue: `tensorflow==2.0.0,keras==2.3.1`."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.model.environment import TENSORFLOW
from harness.model.errors import UsageError

#: Those of TENSORFLOW whose versions are days: the newest is meant where none is typed.
NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")

_EXAMPLE = "For example: -e tensorflow==2.7.1, -e tf-nightly, -e 'tensorflow==2.0.0,keras==2.3.1'"
_OPERATOR = re.compile(r"[<>=~!]=|[<>]")
#: One that is not between extras.
_COMMA = re.compile(r",(?![^\[\]]*\])")
#: A docker repository and a file are named so; more is cut off.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """One TensorFlow package and version, and what is wanted beside it.

    `version` is empty for the newest nightly; `keras` is an exact version, empty where none was typed; `others` are
    PEP 508 requirements.
    """

    package: str
    version: str
    keras: str = ""
    others: Sequence[str] = ()

    def __str__(self) -> str:
        first = f"{self.package}=={self.version}" if self.version else self.package
        keras = [f"keras=={self.keras}"] if self.keras else []
        return ",".join([first, *keras, *self.others])

    @property
    def pins(self) -> dict[str, str]:
        """Beside TensorFlow, the packages of which one version was typed, and that."""
        requirements = [Requirement(text) for text in self.others]
        pins = {each.name: exact for each in requirements if (exact := _exact(each))}
        return {"keras": self.keras, **pins} if self.keras else pins

    @property
    def name(self) -> str:
        """What its environment is called: `tensorflow-2.0.0-keras-2.3.1`. Different texts have different names."""
        text = str(self)
        plain = "-".join(text.replace("==", "-").split(","))
        exact = all("==" in part for part in text.split(","))
        if exact and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", plain) and len(plain) <= _LONGEST:
            return plain
        start = re.sub(r"[^a-z0-9.]+", "-", f"{self.package}-{self.version}")
        return f"{start}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def is_asked(text: str) -> bool:
    """Whether a text is meant as requirements, not as a name or a glob."""
    return bool(_OPERATOR.search(text)) or text.strip() in NIGHTLIES


def parse(text: str) -> Asked:
    """What was asked. Raises UsageError, with examples, for what is no TensorFlow, pinned, and requirements."""
    first, *others = [_requirement(part, text) for part in _parts(text)]
    package = canonicalize_name(first.name)
    if package not in TENSORFLOW:
        raise _wrong(text, f"the first package is {first.name}, not one of {', '.join(TENSORFLOW)}")
    version = _exact(first)
    if first.extras or not (version or (package in NIGHTLIES and not first.specifier)):
        raise _wrong(text, f"{first} is not an exact version")
    keras = [each for each in others if canonicalize_name(each.name) == "keras" and _exact(each)]
    rest = [_normal(each) for each in others if each not in keras]
    return Asked(package, version, _exact(keras[0]) if keras else "", tuple(rest))


def _parts(text: str) -> list[str]:
    """The requirements of a text: a comma parts them, unless it is between extras, or a bound follows it."""
    parts: list[str] = []
    for piece in _COMMA.split(text):
        if parts and _OPERATOR.match(piece.strip()):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts


def _requirement(part: str, text: str) -> Requirement:
    try:
        found = Requirement(part.strip())
    except InvalidRequirement:
        raise _wrong(text, f"{part.strip()!r} is no requirement") from None
    if found.url or found.marker:
        raise _wrong(text, f"{part.strip()!r} is not a package with versions")
    return found


def _exact(requirement: Requirement) -> str:
    """The one version that a requirement allows, as it is normally written; empty where it allows others."""
    specifiers = list(requirement.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==":
        return ""
    try:
        return str(Version(specifiers[0].version))
    except InvalidVersion:
        return ""


def _normal(requirement: Requirement) -> str:
    exact = _exact(requirement)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{canonicalize_name(requirement.name)}{extras}{f'=={exact}' if exact else requirement.specifier}"


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(f"The environment {text!r} cannot be made: {why}.", _EXAMPLE)
