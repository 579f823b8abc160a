"""uv: where it is, and how it is run so that nobody's settings change what it does."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from harness.model.errors import CannotRunHereError

#: Which of uv's variables keep their meaning: where packages and interpreters come from and are kept. All others
#: (constraints, dates, targets, chosen interpreters) would change what is installed.
_KEPT = (
    "UV_CACHE_DIR",
    "UV_CONCURRENT",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_HTTP",
    "UV_INDEX",
    "UV_INSECURE_HOST",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_OFFLINE",
    "UV_PYTHON_INSTALL",
    "UV_SYSTEM_CERTS",
)

#: Variables of other tools that uv or an interpreter would follow.
_DROPPED = ("CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


@cache
def find_uv() -> Path:
    """The uv program: the package's own, else the one on the PATH. Raises CannotRunHereError where there is none."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise CannotRunHereError(
            "uv, which makes environments and locks, is not on this machine.", "Get it with: python -m pip install uv"
        )
    return Path(found)


def environ() -> dict[str, str]:
    """Return the environment variables for uv: uv is on the PATH, and variables that change its results are removed."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED and (not name.startswith("UV_") or name.startswith(_KEPT))
    }
    path = [str(find_uv().parent), kept.get("PATH", os.defpath)]
    return kept | {"PATH": os.pathsep.join(path), "UV_NO_CONFIG": "1"}


def run_uv(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run uv to its end, with what it prints captured."""
    return subprocess.run(
        [str(find_uv()), *arguments],
        env=environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def last_words(printed: str, lines: int = 8) -> str:
    """The end of what uv printed, for an error."""
    return "\n".join([line.rstrip() for line in printed.splitlines() if line.strip()][-lines:])
