"""Files as tar archives: what goes into a container, and what comes out of one."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import IO, cast

from harness.backends.artifacts import Artifacts, Collector

#: The user `harness` of the images.
UID = 1000


def pack(files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> bytes:
    """A tar archive of the files and folders, all owned by the images' user."""
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(parents | set(folders)):
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for name, content in files.items():
            tar.addfile(_entry(name, tarfile.REGTYPE, 0o644, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    entry.uid = entry.gid = UID
    return entry


def unpack(chunks: Iterable[bytes]) -> Artifacts:
    """The regular files in a tar archive of one folder, read as it comes and no further than the limits."""
    collector = Collector()
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|") as tar:
            for member in tar:
                if member.isdir():
                    continue
                name = member.name.partition("/")[2] or member.name  # without the folder's own name
                if collector.full(name, member.size):
                    break
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    collector.refuse(name, "no regular file")
                else:
                    collector.add(name, content.read())
    except tarfile.TarError as error:
        collector.refuse("the archive", str(error))
    return collector.artifacts()


class _Chunks:
    """Chunks of bytes with the one method of a file that a reader of tar streams calls."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def read(self, size: int) -> bytes:
        parts, have = [self._rest], len(self._rest)
        while have < size and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]
