"""Python interpreters on this machine, by version.

The search depends only on the environment variables of this process (PATH, HOME, PYENV_ROOT, …).
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.machine.uv import get_last_lines, run_uv
from harness.model.backend import Supply
from harness.model.errors import UnavailableError

#: A program that prints an interpreter's implementation, version and path. It runs on any Python version.
_PROBE = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2], sys.executable)"

#: A function that yields interpreters that may be Python X.Y.
Search = Callable[[str], Iterator[Path]]


def find_python(version: str, searches: Sequence[Search] | None = None) -> Path:
    """Return a working CPython X.Y. Raises UnavailableError, with commands to install it, if it is missing.

    `searches` are tried in order. By default, these are the installed interpreters, and then uv's downloads.
    """
    reasons = []
    for search in searches if searches is not None else (find_installed, install_with_uv):
        try:
            for candidate in search(version):
                if (python := probe(candidate, version)) is not None:
                    return python
        except UnavailableError as error:
            reasons.append(error.message)
    details = "".join(f"\n{reason}" for reason in reasons)
    raise UnavailableError(
        f"Python {version} isn't installed on this machine.{details}",
        f"Install it with `pyenv install {version}` or `conda create -n python{version} python={version}`, or measure "
        "in containers: --backend docker",
    )


def find_supply(version: str) -> Supply:
    """Return whether CPython X.Y is installed here, or whether uv can download it for this system."""
    try:
        find_python(version, [find_installed])
    except UnavailableError:
        # the list of downloads is built into uv, so this works offline
        downloads = run_uv(["python", "list", "--only-downloads", "--offline", f"cpython-{version}"])
        return Supply.POSSIBLE if downloads.stdout.strip() else Supply.NONE
    return Supply.HERE


def probe(candidate: Path, version: str) -> Path | None:
    """Return the interpreter that `candidate` starts if it is CPython of this version, otherwise None.

    For example, a shim of pyenv may start another version.
    """
    try:
        output = subprocess.run(
            [str(candidate), "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None
    implementation, actual, executable = [*output.strip().split(maxsplit=2), "", "", ""][:3]
    return Path(executable) if (implementation, actual) == ("CPython", version) else None


def find_installed(version: str) -> Iterator[Path]:
    """Yield interpreters that may have the version, from pyenv, asdf, uv, the PATH and conda's environments."""
    from findpython.providers import ALL_PROVIDERS

    # try names with the version first, because `python` and `python3` can be any version
    unversioned = []
    for kind in ALL_PROVIDERS.values():
        provider = kind.create()
        for interpreter in provider.find_pythons() if provider is not None else ():
            if interpreter.executable.name == f"python{version}":
                yield interpreter.executable
            elif interpreter.executable.name in ("python", f"python{version.partition('.')[0]}"):
                unversioned.append(interpreter.executable)
    yield from _find_conda(version)
    yield from unversioned


def _find_conda(version: str) -> Iterator[Path]:
    """Yield the interpreters of conda's environments, whose folders conda lists in a file."""
    try:
        folders = (Path.home() / ".conda" / "environments.txt").read_text(encoding="utf-8").split("\n")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return
    for folder in folders:
        python = Path(folder.strip()) / "bin" / f"python{version}"
        if folder.strip() and python.exists():
            yield python


def install_with_uv(version: str) -> Iterator[Path]:
    """Yield uv's interpreter, which uv may download (3.8 and later). Raises UnavailableError with uv's message."""
    installation = run_uv(["python", "install", "--no-bin", version])
    if installation.returncode:
        raise UnavailableError(f"uv cannot download it: {_explain_failure(installation.stderr)}")
    process = run_uv(["python", "find", "--system", "--no-project", "--no-python-downloads", version])
    if process.returncode == 0:
        yield Path(process.stdout.strip())


def _explain_failure(output: str) -> str:
    """Return the address of a failed download, and the last cause in uv's output."""
    last_line = get_last_lines(output, 1).strip().removeprefix("cause: ").removeprefix("error: ")
    address = re.search(r"Failed to download `(\S+)`", output)
    if address is None:
        return last_line
    return f"{address[1]}: {last_line}.\nTo download it from a mirror, set UV_PYTHON_INSTALL_MIRROR."
