"""Requirements of packages (PEP 508), as launches apply them."""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

#: A number that is too long for a version. Python itself converts at most 4,300 digits.
LONG_NUMBER = re.compile(r"[0-9]{1001}")
#: The values of environment markers in launches.
_LAUNCH_MARKERS = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
#: The patch version of Python in environment markers. The last releases of each Python version have about this number.
_PATCH_VERSION = 20


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
    except (RecursionError, LookupError):
        raise InvalidRequirement("the marker is nested too deeply, or has an unknown variable") from None
    return requirement


def parse_exact(requirement: Requirement) -> str:
    """Return the normalized version of an exact requirement, or an empty text if it allows several versions."""
    match list(requirement.specifier):
        case [Specifier(operator="==", version=version)] if not version.endswith(".*"):
            return str(Version(version))
    return ""


def normalize(requirement: Requirement) -> str:
    """Return the text of a requirement with normalized name, extras and version. A marker isn't part of it."""
    version = parse_exact(requirement)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{canonicalize_name(requirement.name)}{extras}{f'=={version}' if version else requirement.specifier}"


def applies(requirement: Requirement, python: str, machine: str = "x86_64") -> bool:
    """Return whether a requirement applies to launches with Python X.Y on a machine, according to its marker."""
    versions = {"python_version": python, "python_full_version": f"{python}.{_PATCH_VERSION}"}
    markers = {**_LAUNCH_MARKERS, **versions, "platform_machine": machine}
    return requirement.marker is None or requirement.marker.evaluate(markers)
