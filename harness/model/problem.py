"""What is wrong with a file that someone wrote: where, what, and what to write instead."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a line of a file, counted from 1 (0: the whole file); `text` and `fix` are sentences."""

    path: Path
    line: int
    text: str
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.text}{f' {self.fix}' if self.fix else ''}"


class FileError(UsageError):
    """Files are wrong in one place or several: `problems`, by file and line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (str(problem.path), problem.line))
        super().__init__("\n".join(map(str, self.problems)))
