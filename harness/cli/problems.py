"""Tells what is wrong with files, a line each, in the form that editors follow."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.model.errors import FileError, Problem


def lines(problems: Iterable[Problem]) -> list[str]:
    """`scenarios/x.py:12: what is wrong. What to write instead.`; a path is shown from here where it is below."""
    here = Path.cwd()
    return [
        str(replace(each, path=each.path.relative_to(here)) if each.path.is_relative_to(here) else each)
        for each in problems
    ]


def tell(broken: Mapping[str, FileError]) -> None:
    """Say on stderr what is wrong with scenarios that were left out."""
    for error in broken.values():
        print("\n".join(lines(error.problems)), file=sys.stderr)


def tell_refused(refused: Mapping[str, FileError]) -> None:
    """Say on stderr which scenarios do not run, and why."""
    tell(refused)
    if refused:
        names = " ".join(refused)
        print(f"Not run, because of problems in their files: {', '.join(refused)}. The others run.", file=sys.stderr)
        print(f"After fixing them, check with: harness scenarios check {names}", file=sys.stderr)
