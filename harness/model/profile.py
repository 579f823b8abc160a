"""Profiles: what cProfile saw of a launch's first call, or of later ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

SCHEMA = 1


class Part(StrEnum):
    """What was profiled: the first call, which builds, or later calls, which do the work."""

    FIRST_CALL = "first call"
    STEADY = "steady"

    @property
    def file(self) -> str:
        """The name of its artifacts without the ending: `.pstats` for people, `.json` for the harness."""
        return self.value.replace(" ", "-")


class Caller(NamedTuple):
    """Another function's calls of one: the caller's place among the profile's functions, how many, and seconds.

    `own` is the time in the function itself during these calls, `cumulative` with all that it called.
    """

    place: int
    calls: int
    own: float
    cumulative: float


class Function(NamedTuple):
    """One function of a profile. For what is written in C `file` is `~`, and `name` says what it is.

    `calls` is how often it was called, `primitive` without recursion; `own` are seconds in the function itself,
    `cumulative` seconds with all that it called.
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
    """What one profile holds: of how many `calls`, how many `steps` each took, how many `seconds` all.

    `plain_seconds` is what as many calls took without the profiler, where that is known. `stacks` are samples of the
    stack, of later calls in as many of their own: seconds, and the places of the functions on it, the outermost first.
    Functions written in C are not on it.
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
        """Seconds in all functions: what shares are of. It is less than `seconds` by what the profiler itself took."""
        return sum(function.own for function in self.functions)
