"""Where the harness keeps what can be made again."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """The user's cache folder for the harness; `HARNESS_CACHE_DIR` names another."""
    named = os.environ.get("HARNESS_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("harness"))


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
