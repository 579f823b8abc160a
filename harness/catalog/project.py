"""The project folder: where the catalogue's files lie."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness import shipped
from harness.model.errors import UsageError
from harness.model.scenario import FOLDERS

BAKE_FILE = "docker-bake.hcl"


@dataclass(frozen=True, slots=True)
class Project:
    """The folder that holds docker-bake.hcl, images/ and scenarios/.

    `own` is a second folder of scenarios, the user's, where the first is the harness's own; it need not exist.
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
        """The folders that the project's scenarios lie in, `scenarios` and below it those of upstream issues."""
        return [self.root / folder for folder in FOLDERS]

    @property
    def new_scenarios(self) -> Path:
        """The folder that a new scenario is written to."""
        return self.own or self.scenarios

    @property
    def is_installed(self) -> bool:
        """Whether its files are those of an installed wheel, which nothing may write to."""
        return shipped.IS_INSTALLED and self.root == shipped.FOLDER

    @property
    def locks(self) -> Path:
        """The folder of the locks of the catalogue's environments."""
        return self.root / "images" / "locks"

    @classmethod
    def find(cls) -> "Project":
        """`HARNESS_PROJECT`, else the nearest folder upwards that has a catalogue, else what comes with the harness.

        To the last the scenarios in `./scenarios` are added. Raises UsageError where HARNESS_PROJECT has no catalogue.
        """
        named = os.environ.get("HARNESS_PROJECT")
        if named:
            if not (Path(named) / BAKE_FILE).is_file():
                raise UsageError(f"HARNESS_PROJECT names {named}, which has no {BAKE_FILE}.")
            return cls(Path(named).resolve())
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / BAKE_FILE).is_file() and (folder / "scenarios").is_dir():
                return cls(folder)
        return cls(shipped.FOLDER, own=here / "scenarios")
