"""Finds uv, and runs it without user settings that would change its results."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from harness.files import get_cache_dir
from harness.model.errors import CannotRunHereError
from harness.model.texts import remove_password

#: Prefixes of uv's variables that are kept: sources and storage of packages and interpreters. uv's other variables
#: (constraints, dates, targets, chosen interpreters) would change the installed packages.
_KEPT_PREFIXES = (
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

#: Variables for the code of a package during a build, besides uv's variables and the language.
_BUILD_NAMES = {
    *("PATH", "HOME", "TMPDIR", "LANG", "TZ", "XDG_CACHE_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("LD_LIBRARY_PATH", "NETRC"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
}

#: Names of uv's variables with the user and the password of an index.
_SECRET = re.compile(r"_(?:USERNAME|PASSWORD|TOKEN)$")

#: Variables of other tools that uv or an interpreter would follow. With COLUMNS, uv breaks the lines of its errors.
_DROPPED_NAMES = ("COLUMNS", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


@cache
def find_uv() -> Path:
    """Return the uv program from the Python package, or from the PATH. Raises CannotRunHereError if it is missing."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        path = shutil.which("uv")
    if path is None:
        raise CannotRunHereError(
            "uv, which creates environments and lock files, isn't installed on this machine.",
            "To install uv: python -m pip install uv",
        )
    return Path(path)


def make_environ() -> dict[str, str]:
    """Return the environment variables for uv. uv is on the PATH, and variables that change its results are removed."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in _DROPPED_NAMES and (not name.startswith("UV_") or name.startswith(_KEPT_PREFIXES))
    }
    path = [str(find_uv().parent), environ.get("PATH", os.defpath)]
    return _choose_folders(environ) | environ | {"PATH": os.pathsep.join(path), "UV_NO_CONFIG": "1"}


def _choose_folders(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which uv stores its files in HARNESS_CACHE_DIR, if it can't write to its usual folders.

    An existing folder of interpreters remains in use, because uv can also read them from a read-only folder.
    """
    if not environ.get("HARNESS_CACHE_DIR"):
        return {}
    cache = f"{environ.get('XDG_CACHE_HOME') or '~/.cache'}/uv"
    interpreters = f"{environ.get('XDG_DATA_HOME') or '~/.local/share'}/uv/python"
    folder, chosen = get_cache_dir().absolute() / "uv", {}
    if not is_writable(cache):
        chosen["UV_CACHE_DIR"] = str(folder / "cache")
    if not (os.path.isdir(os.path.expanduser(interpreters)) or is_writable(interpreters)):  # noqa: PTH111, PTH112
        chosen["UV_PYTHON_INSTALL_DIR"] = str(folder / "python")
    return chosen


def is_writable(folder: str) -> bool:
    """Return whether this process can write to a folder, which may start with `~`, or create it."""
    # in contrast to pathlib, these functions don't raise errors for a folder that can't be entered, or without a home
    path = os.path.expanduser(folder)  # noqa: PTH111
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120
    return os.access(path or ".", os.W_OK | os.X_OK)


def make_build_environ(*, with_passwords: bool = False) -> dict[str, str]:
    """Return the environment variables for uv while it runs the code of packages, which must not see secrets.

    Tokens and the addresses of agents are omitted. Addresses have no user and password, unless uv needs them to
    download packages (`with_passwords`).
    """
    environ = {
        name: value for name, value in make_environ().items() if name in _BUILD_NAMES or name.startswith(("LC_", "UV_"))
    }
    if with_passwords:
        return environ
    return {name: remove_password(value) for name, value in environ.items() if not _SECRET.search(name)}


def run_uv(arguments: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv with a text as its input, wait until it ends, and capture its output.

    It may build old source packages to read their metadata.
    """
    return subprocess.run(
        [str(find_uv()), *arguments],
        env=make_build_environ(with_passwords=True),
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def get_last_lines(output: str, lines: int = 8) -> str:
    """Return the last lines of uv's output, for an error. Passwords in addresses are removed."""
    # uv repeats an invalid address, whose password can contain a slash
    output = remove_password(re.sub(r"(?<=invalid value ')[^']*@", "", output))
    return "\n".join([line.rstrip() for line in output.splitlines() if line.strip()][-lines:])
