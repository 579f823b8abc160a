"""A package index of the tests' own, on this machine: a few empty packages that appeared when a test says so."""

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests import webserver

JSON = "application/vnd.pypi.simple.v1+json"


class PackageIndex:
    """`folder` holds the files. `asked` counts the questions; `yanked` has reasons, by file.

    `accounts` has the user and password of each question with both.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uploads: dict[str, str] = {}
        self.yanked: dict[str, str] = {}
        self.asked = 0
        self.accounts: list[str] = []
        self.url = ""

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a process whose uv takes packages from here alone."""
        return {
            "UV_DEFAULT_INDEX": f"{self.url}/simple",
            **{"UV_NO_CACHE": "1", "UV_HTTP_RETRIES": "0", "NO_PROXY": "127.0.0.1"},
        }

    def add(
        self,
        name: str,
        uploaded: str = "2022-02-02T17:03:00Z",
        requires: Sequence[str] = (),
        text: str = "",
        others: Mapping[str, bytes] | None = None,
    ) -> Path:
        """A wheel of this name, such as tensorflow-2.7.1-cp38-cp38-manylinux2014_x86_64; `text` is its module's.

        `others` are further files.
        """
        package, version = name.split("-")[:2]
        info = f"{package}-{version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {package}", f"Version: {version}"]
        tag = "-".join(name.split("-")[2:])
        texts = {
            f"{package}.py": text,
            f"{info}/METADATA": "\n".join([*lines, *(f"Requires-Dist: {require}" for require in requires)]) + "\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        files = {**{member: inside.encode() for member, inside in texts.items()}, **(others or {})}
        record = [f"{member},sha256={_digest(inside)},{len(inside)}" for member, inside in files.items()]
        path = self.folder / f"{name}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for member, inside in files.items():
                wheel.writestr(member, inside)
            wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
        self.uploads[path.name] = uploaded
        return path

    def add_source(
        self, name: str, uploaded: str = "2022-02-02T17:03:00Z", *, others: Mapping[str, str] | None = None
    ) -> Path:
        """The source of a package that says what it needs, such as numpy-1.17.3: nothing is built to learn that.

        `others` are further files, or another PKG-INFO.
        """
        package, version = name.split("-")
        about = f"Metadata-Version: 2.2\nName: {package}\nVersion: {version}\n"
        path = self.folder / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as source:
            for member, text in {"PKG-INFO": about, **(others or {})}.items():
                info = tarfile.TarInfo(f"{name}/{member}")
                info.size = len(text.encode())
                source.addfile(info, io.BytesIO(text.encode()))
        self.uploads[path.name] = uploaded
        return path

    def project(self, name: str) -> bytes | None:
        """What the index says of a package, None where it has none."""
        paths = [path for path in sorted(self.folder.iterdir()) if _package(path) == name]
        files = [
            {
                "filename": path.name,
                "url": f"{self.url}/files/{path.name}",
                "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                **({"upload-time": self.uploads[path.name]} if self.uploads[path.name] else {}),
                **({"yanked": self.yanked[path.name]} if path.name in self.yanked else {}),
            }
            for path in paths
        ]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files}).encode() if files else None


def make_lock(*files: Path) -> str:
    """Return the lines of a lock that names these files."""
    lines = []
    for path in files:
        version = path.name.removesuffix(".tar.gz").split("-")[1]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{_package(path)}=={version} \\\n    --hash=sha256:{digest}\n")
    return "".join(lines)


@contextmanager
def serving(folder: Path) -> Iterator[PackageIndex]:
    """An index that answers until the end of the block."""
    folder.mkdir()
    index = PackageIndex(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked += 1
            if account := self.headers.get("Authorization"):
                index.accounts.append(base64.b64decode(account.removeprefix("Basic ")).decode())
            kind, _, name = self.path.strip("/").partition("/")
            body = index.project(name) if kind == "simple" else (folder / name).read_bytes()
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", JSON if kind == "simple" else "application/octet-stream")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def do_HEAD(self) -> None:
            self.send_response(405)
            self.end_headers()

    with webserver.serving(Handler) as index.url:
        yield index


def _package(path: Path) -> str:
    return path.name.split("-")[0].replace("_", "-").lower()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
