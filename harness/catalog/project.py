"""The project folder: where the catalogue's files lie."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness.model.environment import Device
from harness.model.errors import UsageError

BAKE_FILE = "docker-bake.hcl"


@dataclass(frozen=True, slots=True)
class Project:
    """The folder that holds docker-bake.hcl, images/, scenarios/ and templates/."""

    root: Path

    @property
    def bake_file(self) -> Path:
        """The catalogue of environments."""
        return self.root / BAKE_FILE

    @property
    def scenarios(self) -> Path:
        """The folder of the scenarios, with the kit and suites.toml."""
        return self.root / "scenarios"

    def lock_file(self, environment: str, device: Device) -> Path:
        """Where the lock of an environment for a device lies."""
        return self.root / "images" / "locks" / f"{environment}-{device.value}.txt"

    @classmethod
    def find(cls) -> "Project":
        """`HARNESS_PROJECT`, else the nearest folder upwards that has a catalogue, else the harness's own checkout.

        Raises UsageError where none of these has one.
        """
        named = os.environ.get("HARNESS_PROJECT")
        if named:
            if not (Path(named) / BAKE_FILE).is_file():
                raise UsageError(f"HARNESS_PROJECT names {named}, which has no {BAKE_FILE}.")
            return cls(Path(named).resolve())
        here = Path.cwd()
        for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
            if (folder / BAKE_FILE).is_file() and (folder / "scenarios").is_dir():
                return cls(folder)
        raise UsageError(
            f"No {BAKE_FILE} in {here} or above it.",
            "Run this inside a clone of the project, or set HARNESS_PROJECT to one.",
        )
