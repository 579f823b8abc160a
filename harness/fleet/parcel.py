"""The files that another machine gets to measure a shard: this harness, its project, and the named files."""

import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import DISTRIBUTION, shipped
from harness.catalog.project import Project
from harness.catalog.scenarios import load_scenario
from harness.session.request import EVENLY, Request

#: The parts of a project that are sent.
_PROJECT = ("docker-bake.hcl", "images", "scenarios", "templates")

#: Shell variables with the folders of the harness and the project in an unpacked parcel.
ENVIRON = {"PYTHONPATH": "$PWD/code", "HARNESS_PROJECT": "$PWD/project"}


@dataclass(frozen=True, slots=True)
class Parcel:
    """An archive (gzip), and the packages of this harness by their versions."""

    archive: bytes
    packages: Sequence[str]

    @property
    def name(self) -> str:
        """Another one for each content: 16 hexadecimal digits."""
        return hashlib.sha256(self.archive + "\n".join(self.packages).encode()).hexdigest()[:16]


def unpack(archive: bytes, folder: Path) -> None:
    """Write the plain files of an archive (gzip) into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        tar.extractall(folder, [each for each in tar if each.isfile() or each.isdir()], filter="data")


def packed(request: Request) -> tuple[Parcel, Request]:
    """Return the files to send, and the request with the paths that these have on the other machine."""
    project, buffer = Project.find(), io.BytesIO()
    typed = []
    # of no time and of nobody, so that the same files are the same archive
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(path: Path, name: str) -> None:
            archive.add(path, name, filter=_plain)

        add(Path(shipped.__file__).parent, "code/harness")
        if not shipped.IS_INSTALLED:  # else they are in it
            for name in (*_PROJECT, "requirements.txt"):
                add(shipped.FOLDER / name, f"code/{name}")
        for name in _PROJECT:
            if (project.root / name).exists():
                add(project.root / name, f"project/{name}")
        for text in request.scenarios:
            path = Path(text)
            if text.endswith(".py"):
                for each in [path, *(path.parent / file for file in load_scenario(path).files)]:
                    add(each, f"typed/{each.name}")
            typed.append(f"typed/{path.name}" if text.endswith(".py") else text)
        if request.balance not in (None, EVENLY):
            for name in ("run.json", "launches.jsonl"):
                add(request.balance / name, f"balance/{name}")
        packages = _packages()
        listed = "\n".join(packages).encode()
        info = tarfile.TarInfo("packages.txt")
        info.size = len(listed)
        archive.addfile(info, io.BytesIO(listed))
    balance = request.balance if request.balance in (None, EVENLY) else Path("balance")
    there = replace(request, scenarios=typed, balance=balance)
    # without the time that gzip would put into it
    import gzip  # noqa: PLC0415 - nothing else needs it

    return Parcel(gzip.compress(buffer.getvalue(), 6, mtime=0), packages), there


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in info.name or info.issym() or info.islnk():
        return None
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def _packages() -> list[str]:
    """Return the packages that this harness requires, with dependencies, at the versions installed here."""
    from importlib import metadata  # noqa: PLC0415 - takes long

    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    left = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    while left:
        each = left.pop()
        if each.name in found or (each.marker and not each.marker.evaluate({"extra": ""})):
            continue
        found[each.name] = metadata.version(each.name)
        left += [Requirement(text) for text in metadata.requires(each.name) or ()]
    return sorted({f"{name}=={version}" for name, version in found.items()})
