"""Errors that users may see: sentences with an exit code.

Every problem that a user can cause or see is raised as a `HarnessError`. The command line prints it to stderr and exits
with the exit code of the error. A traceback means a bug in harness.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from harness.model.texts import escape


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    CELLS_FAILED = 1
    USAGE = 2
    NOTHING_SELECTED = 3
    CANNOT_RUN_HERE = 4
    SLOWER = 5
    # the verdicts, only with --exit-verdict
    VERDICT_FASTER = 10
    VERDICT_SLOWER = 11
    VERDICT_SAME = 12
    VERDICT_UNCLEAR = 13
    VERDICT_INVALID = 14
    DEFECT = 70
    INTERRUPTED = 130


class HarnessError(Exception):
    """An error with a message, which names the problem and its place, and with advice.

    `message` may have several lines. `advice` says what to do next, and may be empty.
    """

    exit = Exit.CANNOT_RUN_HERE

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}" if self.advice else self.message


class UsageError(HarnessError):
    """Error for a command line that isn't valid, or that names an invalid file."""

    exit = Exit.USAGE


class DamagedError(UsageError):
    """Error for a corrupt file of harness; `why` is a clause."""

    def __init__(self, where: object, why: str) -> None:
        super().__init__(
            f"{where} is damaged: {escape(why)}.",
            "It was edited, or another version of harness wrote it. Restore it from a copy.",
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a line of a file. Lines are counted from 1 (0: the whole file). `text` and `fix` are sentences."""

    path: Path
    line: int
    text: str
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.text}{f' {self.fix}' if self.fix else ''}"


class FileError(UsageError):
    """Error for files that aren't valid. `problems` contains each problem, sorted by file and line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (str(problem.path), problem.line))
        super().__init__("\n".join(map(str, self.problems)))


class NothingSelectedError(HarnessError):
    """Error for a valid selection that contains no cell."""

    exit = Exit.NOTHING_SELECTED


class CannotRunHereError(HarnessError):
    """Error for something that this machine doesn't have: Docker Engine, a base image or disk space."""

    exit = Exit.CANNOT_RUN_HERE


@contextmanager
def explain_unwritable(what: object, advice: str = "") -> Iterator[None]:
    """Turn an OSError of the block into CannotRunHereError: `what` cannot be written, with the reason and advice."""
    try:
        yield
    except OSError as error:
        raise CannotRunHereError(f"{what} cannot be written: {error.strerror}.", advice) from None


class DefectError(HarnessError):
    """Error for a bug in harness."""

    exit = Exit.DEFECT


class NothingPreparedError(CannotRunHereError):
    """Error for a run whose environments can't be prepared on this machine."""


class UnavailableError(HarnessError):
    """Error for an environment that can't be prepared on this machine.

    The cells of the environment become `not available`, and other cells are measured.
    """
