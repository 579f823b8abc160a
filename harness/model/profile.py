"""Profiles of a launch's first call or of later calls, made by cProfile."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

SCHEMA = 1


class Part(StrEnum):
    """Profiled part: the first call, which builds, or later calls, which do the work."""

    FIRST_CALL = "first call"
    STEADY = "steady"

    @property
    def file(self) -> str:
        """Name of the artifacts without the ending: `.pstats` for people, `.json` for harness."""
        return self.value.replace(" ", "-")


class Caller(NamedTuple):
    """One caller of a function: its place among the profile's functions, the number of calls, and seconds.

    `own` is the time in the called function itself during these calls. `cumulative` includes the functions it called.
    """

    place: int
    calls: int
    own: float
    cumulative: float


class Function(NamedTuple):
    """One function of a profile. If it is written in C, `file` is `~`, and `name` describes it.

    `calls` is the number of calls, `primitive` without recursion. `own` are the seconds in the function itself, and
    `cumulative` the seconds including the functions it called.
    """

    file: str
    line: int
    name: str
    calls: int
    primitive: int
    own: float
    cumulative: float
    callers: Sequence[Caller] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile: the number of `calls`, the `steps` per call, the total `seconds`, and the functions.

    `plain_seconds` is the time of the same number of calls without the profiler, if it is known. `stacks` are samples
    of the stack during separate later calls: seconds, and the places of the functions, the outermost first. Functions
    written in C are missing.
    """

    part: Part
    calls: int
    seconds: float
    functions: Sequence[Function]
    steps: int = 1
    plain_seconds: float | None = None
    stacks: Sequence[tuple[float, Sequence[int]]] = ()
    schema: int = SCHEMA

    @property
    def own(self) -> float:
        """Seconds in all functions, the whole for shares. It is less than `seconds` by the profiler's own time."""
        return sum(function.own for function in self.functions)
