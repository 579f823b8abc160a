"""Packs the files that another machine needs to measure a shard: harness, its project, and files of the request."""

import io
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from harness import DISTRIBUTION, package_data
from harness.model.errors import CannotRunHereError
from harness.model.scenario import Scenario
from harness.project import Project
from harness.session.options import EVENLY
from harness.session.request import Request
from harness.store.folder import RUN_MOST

#: The parts of a project that are sent.
_PROJECT_FILES = ("docker-bake.hcl", "images", "scenarios", "templates")

#: The maximum size of launches.jsonl in bytes. A launch takes about 3 KB.
LAUNCHES_MOST = 8 * 1024**3
#: Limits for an unpacked archive: the number of files, their total bytes, and the parts of a path. Two files have their
#: own limits in bytes.
MOST_FILES, MOST_BYTES, MOST_DEEP = 1_000_000, 2 * LAUNCHES_MOST, 32
MOST_OF_FILE = {"run.json": RUN_MOST, "launches.jsonl": LAUNCHES_MOST}


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Write the plain files in an archive (gzip) to a new folder. The folder appears only if all files were written.

    The archive may come from another machine. Raises CannotRunHereError if it is corrupt, exceeds the limits for
    received folders, or can't be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    parent = folder.parent.parent
    with tempfile.TemporaryDirectory(dir=parent, prefix=".unpacking-", ignore_cleanup_errors=True) as temporary:
        part = Path(temporary, "unpacked")
        part.mkdir()
        try:
            with tarfile.open(fileobj=archive, mode="r|gz") as tar:
                _extract(tar, part)
        except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
            raise CannotRunHereError(f"The received archive can't be unpacked: {error}.") from None
        if folder.exists():
            raise CannotRunHereError(f"The received archive can't be unpacked, because {folder} exists.")
        part.rename(folder)


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Extract the members in order. Raises ValueError for the first member beyond a limit, or an error of tarfile."""
    files = size = 0
    for member in tar:
        files, size = files + 1, size + member.size
        path, name = PurePosixPath(member.name), f"{member.name[:100]!a}"
        if files > MOST_FILES:
            raise ValueError(f"it has more than {MOST_FILES:,} files")
        if size > MOST_BYTES or member.size > MOST_OF_FILE.get(path.name, MOST_BYTES):
            raise ValueError(f"it is too large at {name}")
        if len(path.parts) > MOST_DEEP:
            raise ValueError(f"{name} is more than {MOST_DEEP} folders deep")
        if member.isfile() or member.isdir():
            tar.extract(member, folder, filter="data")


def pack(request: Request, scenarios: Iterable[Scenario]) -> tuple[bytes, Request]:
    """Return an archive (gzip) of the files to send, and the request with the paths of these files.

    The archive has the folders `code` and `project`, and `packages.txt` with the packages that harness requires.
    """
    project, buffer = Project.find(), io.BytesIO()
    names, balance = [], request.balance
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:

        def select(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
            return None if "__pycache__" in file.name or file.issym() or file.islnk() else file

        add = partial(archive.add, filter=select)
        add(Path(package_data.__file__).parent, "code/harness")
        if not package_data.IS_INSTALLED:  # an installed package contains these files
            for name in (*_PROJECT_FILES, "requirements.txt"):
                add(package_data.FOLDER / name, f"code/{name}")
        for name in _PROJECT_FILES:
            if (project.root / name).exists():
                add(project.root / name, f"project/{name}")
        if project.is_installed:
            add(project.locks, "project/images/locks")
        for scenario in scenarios if request.scenarios else ():
            if scenario.path.parent in project.scenario_folders:
                names.append(scenario.path.stem)
                continue
            # the user's own scenarios too, because the other machine has only the project
            folder = f"typed/{scenario.path.stem}"
            for file in (scenario.path.name, *scenario.files):
                add(scenario.path.parent / file, f"{folder}/{file}")
            names.append(f"{folder}/{scenario.path.name}")
        if balance not in (None, EVENLY):
            for name in ("run.json", "launches.jsonl"):
                add(balance / name, f"balance/{name}")
            balance = Path("balance")
        packages = "\n".join(_list_packages()).encode()
        info = tarfile.TarInfo("packages.txt")
        info.size = len(packages)
        archive.addfile(info, io.BytesIO(packages))
    return buffer.getvalue(), replace(request, scenarios=names, balance=balance)


def _list_packages() -> list[str]:
    """Return the packages that harness requires, with dependencies, at the versions installed here."""
    from importlib import metadata  # noqa: PLC0415 - slow to import

    from packaging.requirements import Requirement

    versions: dict[str, str] = {}
    pending = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    while pending:
        requirement = pending.pop()
        if requirement.name in versions or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        versions[requirement.name] = metadata.version(requirement.name)
        pending += [Requirement(text) for text in metadata.requires(requirement.name) or ()]
    return sorted({f"{name}=={version}" for name, version in versions.items()})
