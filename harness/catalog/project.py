"""The project folder, which contains the catalogue's files."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness import package_data
from harness.model.errors import UsageError
from harness.model.scenario import FOLDERS

BAKE_FILE = "docker-bake.hcl"


@dataclass(frozen=True, slots=True)
class Project:
    """The folder that holds docker-bake.hcl, images/ and scenarios/.

    If the project is the one of harness, `own` is the user's folder of scenarios, which may not exist.
    """

    root: Path
    own: Path | None = None

    @property
    def bake_file(self) -> Path:
        """The catalogue of environments."""
        return self.root / BAKE_FILE

    @property
    def scenarios(self) -> Path:
        """The folder of the scenarios, with the kit and suites.toml."""
        return self.root / "scenarios"

    @property
    def scenario_folders(self) -> list[Path]:
        """The folders of the project's scenarios: `scenarios` and `scenarios/upstream`."""
        return [self.root / folder for folder in FOLDERS]

    @property
    def new_scenarios(self) -> Path:
        """The folder that a new scenario is written to."""
        return self.own or self.scenarios

    @property
    def is_installed(self) -> bool:
        """Whether its files belong to an installed wheel, which must not be changed."""
        return package_data.IS_INSTALLED and self.root == package_data.FOLDER

    @property
    def locks(self) -> Path:
        """The folder of the locks of the catalogue's environments."""
        return self.root / "images" / "locks"

    @classmethod
    def find(cls) -> "Project":
        """Return `HARNESS_PROJECT`, or the nearest parent folder with a catalogue, or the project of harness.

        The last one also has the scenarios in `./scenarios`. Raises UsageError if HARNESS_PROJECT has no catalogue.
        """
        named = os.environ.get("HARNESS_PROJECT")
        if named:
            if not (Path(named) / BAKE_FILE).is_file():
                raise UsageError(f"Invalid HARNESS_PROJECT {named}: {BAKE_FILE} isn't in this folder.")
            return cls(Path(named).resolve())
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / BAKE_FILE).is_file() and (folder / "scenarios").is_dir():
                return cls(folder)
        return cls(package_data.FOLDER, own=here / "scenarios")
