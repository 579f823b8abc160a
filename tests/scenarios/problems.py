"""The problems that are found in a scenario's header."""

from pathlib import Path

import pytest

from harness.model.errors import FileError
from harness.scenarios.header import parse


def read_problems(header: str, old: str, new: str) -> list[str]:
    """Return the problems of a header after a change, each with the text of its line."""
    assert old in header
    text = header.replace(old, new, 1)
    with pytest.raises(FileError) as caught:
        parse(text, Path("step.py"))
    assert all(problem.path == Path("step.py") for problem in caught.value.problems)
    lines = text.split("\n")
    return [
        f"{lines[problem.line - 1].lstrip('# ')} | {problem.text} {problem.fix}".strip()
        for problem in caught.value.problems
    ]


def read_changes(header: str, changes: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the problems of a header after each of these changes."""
    return {f"{old} → {new}".replace("\n", " / "): read_problems(header, old, new) for old, new in changes}
