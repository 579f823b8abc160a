"""The project folder, which contains the catalog's files."""

import hashlib
import os
import re
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import package_data
from harness.files import get_cache_dir
from harness.model.environment import X86_64
from harness.model.errors import UsageError, explain_unwritable
from harness.model.scenario import FOLDERS

BAKE_FILE = "docker-bake.hcl"

#: The heading of a table `tool.harness`, or of a table in it.
_TABLE = re.compile(rb"(?m)^[ \t]*\[\[?[ \t]*tool[ \t]*\.[ \t]*harness[ \t]*[\].]")


@dataclass(frozen=True, slots=True)
class Project:
    """The folder that holds docker-bake.hcl, images/ and scenarios/.

    If this is harness's own project, `own` is the user's folder of scenarios, which may be missing. `architecture` is
    the architecture of the processor that runs the environments.
    """

    root: Path
    own: Path | None = None
    architecture: str = X86_64

    @property
    def bake_file(self) -> Path:
        """The file with the catalog of environments."""
        return self.root / BAKE_FILE

    @property
    def gpu_code_file(self) -> Path:
        """The file with the GPU code in the wheels of the catalog's environments."""
        return self.root / "images" / "gpu-code.json"

    @property
    def scenarios(self) -> Path:
        """The folder with the scenarios, the kit and suites.toml."""
        return self.root / "scenarios"

    @property
    def scenario_folders(self) -> list[Path]:
        """The folders with the project's scenarios: `scenarios` and `scenarios/upstream`."""
        return [self.root / folder for folder in FOLDERS]

    @property
    def new_scenarios(self) -> Path:
        """The folder that a new scenario is written to."""
        return self.own or self.scenarios

    @property
    def is_installed(self) -> bool:
        """Whether the project's files belong to an installed wheel, and so must not be changed."""
        return package_data.IS_INSTALLED and self.root == package_data.FOLDER

    @property
    def locks(self) -> Path:
        """The folder with the locks of the catalog's environments. A wheel has an archive, which the cache unpacks."""
        folder = self.root / "images" / "locks"
        archive = folder.with_name("locks.tar.xz")
        return _unpack(archive) if self.is_installed and archive.is_file() else folder

    @classmethod
    def find(cls) -> "Project":
        """Return the project that is used in the current folder.

        This is `HARNESS_PROJECT`, or the nearest parent folder with a catalog, or harness's own project, extended by
        the scenarios in `./scenarios`. Raises UsageError if HARNESS_PROJECT has no catalog.
        """
        if path := os.environ.get("HARNESS_PROJECT"):
            if not (Path(path) / BAKE_FILE).is_file():
                raise UsageError(f"Invalid HARNESS_PROJECT {path}: {BAKE_FILE} isn't in this folder.")
            return cls(Path(path).resolve())
        current = Path.cwd()
        for folder in (current, *current.parents):
            if (folder / BAKE_FILE).is_file() and (folder / "scenarios").is_dir():
                return cls(folder)
        return cls(package_data.FOLDER, own=current / "scenarios")


def find_settings_file() -> Path | None:
    """Return harness.toml, or pyproject.toml with a table `tool.harness`, for the current folder; None without one.

    It is in the current folder, or in a parent folder of the same git repository. The path is relative.
    """
    folders = [Path.cwd(), *Path.cwd().parents]
    top = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    for path in (folder / name for folder in folders[: top + 1] for name in ("harness.toml", "pyproject.toml")):
        if path.is_file() and (path.name == "harness.toml" or _TABLE.search(path.read_bytes())):
            return Path(os.path.relpath(path))
    return None


@cache
def _unpack(archive: Path) -> Path:
    """Return the folder in the cache with the files of an archive. Raises CannotRunHereError if it isn't writable."""
    folder = get_cache_dir() / "catalog" / hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        with explain_unwritable(f"The folder {folder}", "To use another folder, set HARNESS_CACHE_DIR."):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=folder.parent) as unfinished, tarfile.open(archive) as tar:
                tar.extractall(Path(unfinished, "locks"), filter="data")
                with suppress(OSError):  # another process has unpacked it in the meantime
                    Path(unfinished, "locks").rename(folder)
    return folder
