"""What a check found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """Whether a finding disturbs measuring; what could not be read is unknown, and never good."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report.

    The template makes `facts` into the value and, where the level is not good, into the advice, by macros that the
    name chooses: `CPU quota` has `cpu_quota_value`, `cpu_quota_advice` and `cpu_quota_command`. `kind` stands for the
    name there, where several findings have the same macros.
    """

    name: str
    level: Level
    facts: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    @property
    def macro(self) -> str:
        """How the names of its macros begin."""
        return (self.kind or self.name).lower().replace(" ", "_")


def graded(value: float, warn: float, bad: float) -> Level:
    """Good below `warn`, bad from `bad` on."""
    if value < warn:
        return Level.GOOD
    return Level.WARN if value < bad else Level.BAD
