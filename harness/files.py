"""Files that are written whole or not at all, and the user's folders: for what can be made again, and what cannot.

Below every other folder, as it knows none of them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which takes its place when the block ends; nothing is left where it raises.

    A reader of `path` sees the old file or the new one, never a part. The folder is made. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, data: str | bytes, *, synced: bool = False) -> None:
    """Write a file, text as UTF-8, as `replacing` does; `synced`: it is on the disk first. Raises OSError."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def cache_dir() -> Path:
    """The user's cache folder for the harness; `HARNESS_CACHE_DIR` names another."""
    named = os.environ.get("HARNESS_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("harness")


def data_dir() -> Path:
    """The user's folder for what the harness keeps and cannot make again; `HARNESS_DATA_DIR` names another."""
    named = os.environ.get("HARNESS_DATA_DIR")
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_data_path("harness")
