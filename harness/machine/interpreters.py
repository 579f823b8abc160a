"""Python interpreters on this machine, by version.

Where one is found follows from the process's environment alone (PATH, HOME, PYENV_ROOT, …).
"""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.machine.uv import last_words, run_uv
from harness.model.errors import UnavailableError

#: Prints what an interpreter is. For any Python, however old.
_PROBE = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2], sys.executable)"

#: Yields interpreters that may be Python X.Y.
Search = Callable[[str], Iterator[Path]]


def find_python(version: str, searches: Sequence[Search] | None = None) -> Path:
    """A CPython X.Y that runs. Raises UnavailableError, with the ways to get one, where there is none.

    `searches` are tried in order; by default what is here, then what uv can fetch.
    """
    reasons = []
    for search in searches if searches is not None else (installed, from_uv):
        try:
            for candidate in search(version):
                if (python := probe(candidate, version)) is not None:
                    return python
        except UnavailableError as error:
            reasons.append(error.message)
    because = "".join(f"\n{reason}" for reason in reasons)
    raise UnavailableError(
        f"Python {version} is not on this machine.{because}",
        f"Get it with `pyenv install {version}` or `conda create -n python{version} python={version}`,"
        " or run in containers: --backend docker",
    )


def probe(candidate: Path, version: str) -> Path | None:
    """The interpreter that `candidate` runs, if it is CPython of this version: a pyenv shim may be none, or another."""
    try:
        printed = subprocess.run(
            [str(candidate), "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None
    implementation, found, executable = [*printed.strip().split(maxsplit=2), "", "", ""][:3]
    return Path(executable) if (implementation, found) == ("CPython", version) else None


def installed(version: str) -> Iterator[Path]:
    """Interpreters whose names allow the version: pyenv's, asdf's, uv's, those on the PATH, conda's environments."""
    from findpython.providers import ALL_PROVIDERS

    # `python` and `python3` may be any version, and there are many: those that name the version come first
    unsure = []
    for kind in ALL_PROVIDERS.values():
        provider = kind.create()
        for found in provider.find_pythons() if provider is not None else ():
            if found.executable.name == f"python{version}":
                yield found.executable
            elif found.executable.name in ("python", f"python{version.partition('.')[0]}"):
                unsure.append(found.executable)
    yield from _conda(version)
    yield from unsure


def _conda(version: str) -> Iterator[Path]:
    """Conda's environments, active or not: conda writes each one's folder into this file."""
    try:
        folders = (Path.home() / ".conda" / "environments.txt").read_text(encoding="utf-8").split("\n")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return
    for folder in folders:
        python = Path(folder.strip()) / "bin" / f"python{version}"
        if folder.strip() and python.exists():
            yield python


def from_uv(version: str) -> Iterator[Path]:
    """What uv has, or can download: 3.8 and later. Raises UnavailableError with its words where it cannot."""
    fetched = run_uv(["python", "install", "--no-bin", version])
    if fetched.returncode:
        raise UnavailableError(f"uv cannot fetch it: {last_words(fetched.stderr, 2)}")
    found = run_uv(["python", "find", "--system", "--no-project", "--no-python-downloads", version])
    if found.returncode == 0:
        yield Path(found.stdout.strip())
