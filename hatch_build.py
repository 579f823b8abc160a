"""The package's data (the top-level files that the harness reads, as `harness/_data/`), and its readme and addresses.

HARNESS_REPOSITORY is the address of the repository. By default, it is the repository of the GitHub workflow.
"""

import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SHIPPED = ("docker-bake.hcl", "docs/stored.json", "images", "scenarios", "templates")

#: The folder of the locks. They share most hashes, so one archive has 25 % of their size. harness/project.py unpacks
#: it.
LOCKS = "images/locks"

#: A link to a file of the repository, or a picture from there.
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")

#: A picture in two files, one for each color scheme, and the address of one of them.
_PICTURE = re.compile(r"<picture>.*?</picture>\n?", re.S)

#: The badges, which only GitHub shows.
_BADGES = re.compile(r'^<a href="\.\./\.\./.*\n\n?', re.M)
_SOURCE = re.compile(r'\b(src|srcset)="(?!https?:)([^"]+)"')


def readme(text: str, repository: str) -> str:
    """README.md for an index's page, which has no files beside it: with whole addresses, or without these links."""

    def link(match: re.Match[str]) -> str:
        mark, shown, path = match.groups()
        return f"{mark}[{shown}]({repository}/{'raw' if mark else 'blob'}/HEAD/{path})" if repository else shown

    def picture(match: re.Match[str]) -> str:
        return _SOURCE.sub(rf'\1="{repository}/raw/HEAD/\2"', match.group()) if repository else ""

    return _LINK.sub(link, _PICTURE.sub(picture, _BADGES.sub("", text)))


class Metadata(MetadataHookInterface):
    """The metadata that depend on the address of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description and the addresses, for every build."""
        server, name = (os.environ.get(f"GITHUB_{each}", "") for each in ("SERVER_URL", "REPOSITORY"))
        repository = os.environ.get("HARNESS_REPOSITORY") or (f"{server}/{name}" if server and name else "")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, repository.rstrip("/"))}
        pages = {"Source": "", "Documentation": "/tree/HEAD/docs", "Changelog": "/blob/HEAD/CHANGELOG.md"}
        metadata["urls"] = {page: f"{repository}{path}" for page, path in pages.items() if repository}


class PackageData(BuildHookInterface[Any]):
    """An editable installation gets no copy: it reads the files where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the data files, before the wheel is built."""
        if version == "editable":
            return
        root, self._scratch = Path(self.root), tempfile.mkdtemp()
        archive = Path(self._scratch) / "locks.tar.xz"
        with tarfile.open(archive, "w:xz") as tar:
            for path in sorted((root / LOCKS).iterdir()):
                tar.add(path, path.name, filter=anonymous)
        names = [name for name in SHIPPED if name != "images"]
        names += [f"images/{path.name}" for path in (root / "images").iterdir() if path != root / LOCKS]
        build_data["force_include"] |= {name: f"harness/_data/{name}" for name in names}
        build_data["force_include"][str(archive)] = "harness/_data/images/locks.tar.xz"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the archive, after the wheel is built."""
        if version != "editable":
            shutil.rmtree(self._scratch)


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove what depends on the time and the user, so that every build gives the same archive."""
    return info.replace(mtime=0, mode=0o644, uid=0, gid=0, uname="", gname="", deep=False)
