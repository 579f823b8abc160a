"""A pack: a folder with all that a machine without a network needs, and its MANIFEST.json."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.catalog.download import sha256
from harness.files import write_atomically
from harness.model.errors import CannotRunHereError, DamagedError, UsageError

FILE = "MANIFEST.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a pack holds.

    `harness` is the version that wrote it; `environments` maps name to devices; `images` maps a file to the image in
    it, as `reference` and `id`; `files` maps each file, relative to the pack's folder, to its sha256.
    """

    harness: str
    environments: Mapping[str, list[str]] = field(default_factory=dict)
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def over(self, older: "Manifest | None") -> "Manifest":
        """This one and what an older one had beside it."""
        if older is None:
            return self
        names = {**older.environments, **self.environments}
        devices = {
            name: sorted({*older.environments.get(name, ()), *self.environments.get(name, ())}) for name in names
        }
        return Manifest(self.harness, devices, {**older.images, **self.images}, {**older.files, **self.files})


def read(folder: Path) -> Manifest:
    """The manifest of a pack. Raises UsageError where the folder is none, or is damaged."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("schema") != SCHEMA:
            raise UsageError(f"{path} has schema {found.get('schema')}; this harness reads {SCHEMA}.")
        return Manifest(**found)
    except OSError as error:
        raise UsageError(
            f"{folder} is not a pack: {FILE} cannot be read: {error.strerror}.", "Make one: harness images pack FOLDER"
        ) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedError(path, str(error)) from None


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last. Raises CannotRunHereError."""
    try:
        write_atomically(folder / FILE, json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n")
    except OSError as error:
        raise CannotRunHereError(f"{folder} cannot be written: {error.strerror}.") from None


def check(folder: Path, manifest: Manifest) -> None:
    """Compare every file with the manifest. Raises UsageError, which names those that are missing or were changed."""
    problems = []
    for name, wanted in sorted(manifest.files.items()):
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif sha256(path) != wanted:
            problems.append(f"{name} was changed")
    if problems:
        first = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise UsageError(f"{folder} is not as it was packed: {first}.", "Carry it again, or pack it again.")
