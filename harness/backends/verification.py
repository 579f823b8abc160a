"""What is installed in an environment, set against its lock, and what else was looked at."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.environment import normalise
from harness.model.errors import CannotRunHereError

#: Prints the installed packages as one JSON object. It runs on any Python from 3.6 on, so it reads the packages' own
#: metadata: importlib.metadata is younger.
SCRIPT = """
import json, pathlib, sys
found = {}
for folder in sys.path:
    for kind in ("*.dist-info/METADATA", "*.egg-info/PKG-INFO"):
        for path in pathlib.Path(folder or ".").glob(kind):
            head = path.read_text(encoding="utf-8", errors="replace").split("\\n\\n")[0].splitlines()
            fields = dict(line.split(": ", 1) for line in head if line.startswith(("Name: ", "Version: ")))
            found.setdefault(fields["Name"], fields["Version"])
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class LockDifferences:
    """How an environment differs from its lock, by package.

    `missing` has the locked version, `extra` the installed one, `changed` first the locked and then the installed.
    """

    missing: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.changed)

    def lines(self) -> list[str]:
        """A sentence for each kind of difference."""

        def listed(packages: Mapping[str, str]) -> str:
            return ", ".join(f"{name} {version}" for name, version in packages.items())

        changed = [f"{name} {has} in place of {wanted}" for name, (wanted, has) in self.changed.items()]
        said = {"missing": listed(self.missing), "not in the lock": listed(self.extra), "changed": ", ".join(changed)}
        return [f"{what}: {packages}" for what, packages in said.items() if packages]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in an environment that has `packages` locked packages.

    `more` are lines on what else was looked at, and `is_complete` says whether all of that is as it should be.
    """

    differences: LockDifferences
    packages: int
    more: Sequence[str] = ()
    is_complete: bool = True

    @property
    def is_right(self) -> bool:
        """Whether everything is as it should be."""
        return self.is_complete and not self.differences

    def lines(self) -> list[str]:
        """What there is to say of it, for a terminal."""
        locked = self.differences.lines() or [f"all {self.packages} packages are as locked"]
        return [*locked, *self.more]


def listed(printed: str) -> dict[str, str]:
    """What the script printed, with the names normalised. Raises CannotRunHereError where it is not its print."""
    try:
        packages = json.loads(printed)
        return {normalise(name): str(version) for name, version in packages.items()}
    except (ValueError, AttributeError):
        raise CannotRunHereError(f"An environment listed its packages as {printed[:200]!r}.") from None


def compare(pins: Mapping[str, str], installed: Mapping[str, str]) -> LockDifferences:
    """What a reader should know of an environment that should have `pins` and has `installed`."""
    return LockDifferences(
        missing={name: pins[name] for name in sorted(pins.keys() - installed.keys())},
        extra={name: installed[name] for name in sorted(installed.keys() - pins.keys())},
        changed={
            name: (pins[name], installed[name])
            for name in sorted(pins.keys() & installed.keys())
            if not _same(pins[name], installed[name])
        },
    )


def _same(left: str, right: str) -> bool:
    """Whether two spellings mean one version: 2019.02 and 2019.2."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(left) == Version(right)
    except InvalidVersion:
        return left == right
