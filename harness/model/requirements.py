"""Packages by name and version, and whether they satisfy PEP 508 requirements."""

import re
from collections.abc import Iterable, Mapping

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)

#: Packages that bring the module `tensorflow`, in the order in which they stand for it.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu")


def normalise(name: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Normalised package names to versions, of a requirements file's text."""
    return {normalise(match["name"]): match["version"] for match in _PIN.finditer(text)}


def installed(name: str, pins: Mapping[str, str]) -> str | None:
    """The version of a package among `pins` (normalised names to versions), None where it is absent."""
    names = TENSORFLOW if name == "tensorflow" else (name,)
    return next((pins[candidate] for candidate in names if candidate in pins), None)


def unmet(requires: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Those of the requirements that `pins` does not satisfy. Raises packaging's InvalidRequirement."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    missing = []
    for text in requires:
        requirement = Requirement(text)
        version = installed(canonicalize_name(requirement.name), pins)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(text)
    return missing
