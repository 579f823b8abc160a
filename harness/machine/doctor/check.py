"""A check: what was found, how bad that is, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

#: What is said in place of a value that the kernel keeps to itself, as in most containers and virtual machines.
NOT_SHOWN = "this system does not show it"


class Level(StrEnum):
    """Whether a finding disturbs measuring; what could not be read is unknown, and never good."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the doctor's report, in the keys of its JSON.

    `value` says what was found; `advice`, in sentences, what to change, and `command` what to type for that, both empty
    where nothing is known to be wrong. `facts` are the numbers behind it, JSON values only.
    """

    name: str
    value: str
    level: Level
    advice: str
    command: str
    facts: Mapping[str, Any]


def checked(
    name: str, level: Level, value: str | None, facts: Mapping[str, Any], *, advice: str = "", command: str = ""
) -> CheckResult:
    """A check's outcome. A value of None is one that this system does not show; advice is kept where it is needed."""
    if value is None:
        level, value = Level.UNKNOWN, NOT_SHOWN
    if level not in (Level.WARN, Level.BAD):
        advice = command = ""
    return CheckResult(name, value, level, advice, command, facts)


def graded(value: float, warn: float, bad: float) -> Level:
    """Good below `warn`, bad from `bad` on."""
    if value < warn:
        return Level.GOOD
    return Level.WARN if value < bad else Level.BAD


def short(value: float) -> str:
    """Two digits: `0.42`, `12`, `130`."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def gibibytes(count: float) -> str:
    """Bytes of memory: `7.8 GiB`."""
    return f"{count / 2**30:.1f} GiB"
