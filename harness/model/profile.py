"""Profiles of a launch's first call or of its later calls, recorded by cProfile."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from harness.model.numbers import Count, Seconds, Some

SCHEMA = 1


class Part(StrEnum):
    """The profiled part of a launch: the first call, which includes the build, or later calls."""

    FIRST_CALL = "first call"
    STEADY = "steady"

    @property
    def file(self) -> str:
        """The name of the artifacts without the suffix, which is `.pstats` for tools and `.json` for harness."""
        return self.value.replace(" ", "-")


class Caller(NamedTuple):
    """One caller of a function: its index in the profile's functions, its number of calls of the function, and seconds.

    `own` is the time in the called function itself during these calls. `cumulative` includes the functions that it
    called.
    """

    place: int
    calls: Count
    own: Seconds
    cumulative: Seconds


class Function(NamedTuple):
    """One function of a profile. If it is written in C, `file` is `~`, and `name` describes it.

    `calls` is the number of calls, and `primitive` is the number without recursive calls. `own` is the time in the
    function itself, in seconds. `cumulative` includes the functions that it called.
    """

    file: str
    line: int
    name: str
    calls: Count
    primitive: Count
    own: Seconds
    cumulative: Seconds
    callers: Sequence[Caller] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile: the number of `calls`, the `steps` per call, the total `seconds`, and the functions.

    `plain_seconds` is the time of the same number of calls without the profiler, if it is known. `stacks` contains
    samples of the stack during separate later calls: seconds, and the indices of the functions, the outermost first.
    Stacks don't contain functions that are written in C.
    """

    part: Part
    calls: Some
    seconds: Seconds
    functions: Sequence[Function]
    steps: Some = 1
    plain_seconds: Seconds | None = None
    stacks: Sequence[tuple[Seconds, Sequence[int]]] = ()
    schema: int = SCHEMA

    @property
    def own(self) -> float:
        """The seconds in all functions. Shares are relative to it. `seconds` also includes the profiler's own time."""
        return sum(function.own for function in self.functions)
