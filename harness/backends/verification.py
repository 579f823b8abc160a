"""Compares the installed packages of an environment with its lock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.files import parse_json
from harness.model.environment import Environment, normalize
from harness.model.errors import CannotRunHereError

#: A program that prints the installed packages as one JSON object. It also runs on Python 3.6, which has no
#: importlib.metadata, so the program reads the metadata files itself.
SCRIPT = """
import json, pathlib, sys
found = {}
for folder in sys.path:
    for kind in ("*.dist-info/METADATA", "*.egg-info/PKG-INFO"):
        for path in pathlib.Path(folder or ".").glob(kind):
            head = path.read_text(encoding="utf-8", errors="replace").split("\\n\\n")[0].splitlines()
            fields = dict(line.split(": ", 1) for line in head if line.startswith(("Name: ", "Version: ")))
            found.setdefault(fields["Name"], fields["Version"])
print(json.dumps({"packages": found}))
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """The differences between an environment and its lock.

    - `packages`: the number of locked packages
    - `missing`: the locked version of each missing package; `extra`: the installed version of each additional package
    - `changed`: the locked and the installed version of each package whose versions differ
    - `imported`: the output of TensorFlow on an emulated processor; otherwise empty
    - `read`: for an environment whose GPU code was assumed, the same environment with the GPU code in its libraries
    """

    packages: int
    missing: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    read: Environment | None = None
    imported: str = ""

    @property
    def is_right(self) -> bool:
        """Whether there are no differences."""
        return not (self.missing or self.extra or self.changed)

    def lines(self) -> list[str]:
        """Return the result for a terminal: a line for each kind of difference, and a line for GPU code."""
        kinds = {
            "missing": [f"{name} {version}" for name, version in self.missing.items()],
            "not in the lock": [f"{name} {version}" for name, version in self.extra.items()],
            "changed": [f"{name} {actual} instead of {locked}" for name, (locked, actual) in self.changed.items()],
        }
        differences = [f"{kind}: {', '.join(packages)}" for kind, packages in kinds.items() if packages]
        gpu_code = [f"GPU code: {self.read.gpu_code}"] if self.read else []
        emulated = [f"TensorFlow works on an emulated processor: {self.imported}"] if self.imported else []
        return [*(differences or [f"all {self.packages} packages are as in the lock file"]), *gpu_code, *emulated]


def verify_output(pins: Mapping[str, str], printed: str) -> Verification:
    """Compare the script's output with the lock. Raises CannotRunHereError if it isn't valid output."""
    from packaging.utils import canonicalize_version

    try:
        listing = parse_json(printed)
        installed = {normalize(name): str(version) for name, version in listing["packages"].items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise CannotRunHereError(
            f"An environment printed this instead of a list of its packages: {printed[:200]!r}."
        ) from None
    return Verification(
        packages=len(pins),
        missing={name: pins[name] for name in sorted(pins.keys() - installed.keys())},
        extra={name: installed[name] for name in sorted(installed.keys() - pins.keys())},
        changed={
            name: (pins[name], installed[name])
            for name in sorted(pins.keys() & installed.keys())
            if canonicalize_version(pins[name]) != canonicalize_version(installed[name])  # 2019.02 is 2019.2
        },
    )
