"""Commands that tests run as processes."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT


def run_harness(
    *arguments: str, cwd: Path = ROOT, environ: Mapping[str, str] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `harness` of this clone with these variables and `environ`, by default the variables of this process."""
    command = [sys.executable, "-m", "harness", *arguments]
    environ = {**(os.environ if environ is None else environ), "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)


def read_until(lines: Iterable[str] | None, text: str) -> str:
    """Return what a process prints up to a line with a text."""
    output = ""
    for line in lines or ():
        output += line
        if text in line:
            return output
    pytest.fail(f"{text} is in no line:\n{output}")


def git(folder: Path, *arguments: str | Path) -> str:
    """Return what a command of git prints."""
    options = ("-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", folder, *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
