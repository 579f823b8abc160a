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
