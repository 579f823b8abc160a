"""Results of checks: a value, its level, and advice."""

from dataclasses import dataclass
from enum import StrEnum

#: The text for a value that the kernel doesn't report, as in most containers and virtual machines.
NOT_SHOWN = "this system doesn't report it"


class Level(StrEnum):
    """How much a finding affects measurements. A value that can't be read is unknown, never good."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the doctor's report. The fields are also the keys in the JSON report.

    `value` is the finding. `advice`, in sentences, and `command` are empty if there is no problem.
    """

    name: str
    value: str
    level: Level
    advice: str
    command: str


def make_result(name: str, level: Level, value: str | None, advice: str = "", command: str = "") -> CheckResult:
    """Return the result of a check. A value of None means that the system doesn't report it.

    If the level is good or unknown, the advice is left out.
    """
    if value is None:
        level, value = Level.UNKNOWN, NOT_SHOWN
    if level not in (Level.WARN, Level.BAD):
        advice = command = ""
    return CheckResult(name, value, level, advice, command)


def grade(value: float, warn: float, bad: float) -> Level:
    """Return the level of a value: good below `warn`, bad from `bad` on."""
    if value < warn:
        return Level.GOOD
    return Level.WARN if value < bad else Level.BAD
