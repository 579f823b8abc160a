"""Two environments side by side: what rounds of them show, look by look.

Everything that is measured is asked of a `Probe`, so that a search can be tried without measuring.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

from harness.analysis.verdicts import shown_alpha
from harness.model.texts import counted

#: After so many rounds in all, two environments that are measured side by side are judged: more are measured only while
#: they are neither shown to differ nor to be the same. Each of these looks is made at `LOOK_ALPHA`, so that the
#: intervals of all looks together hold the truth with 95 % (Bonferroni).
LOOKS = (3, 5, 8, 13, 21, 34)
LOOK_ALPHA = shown_alpha(len(LOOKS))


@dataclass(frozen=True, slots=True)
class LookResult:
    """What so many rounds of two environments show, the newer against the older.

    `value`, `low` and `high` are their ratio with its interval at 1 - `LOOK_ALPHA` (or, if `is_ratio` is False, their
    difference in bytes per call); `what` says the value in a clause. `floor` is the largest difference that counts as
    none, on the scale of the search. `remark` is what has to be known beside the numbers, such as different work.
    `pythons` are the two interpreters' versions if they differ.
    """

    value: float
    low: float
    high: float
    rounds: int
    floor: float
    what: str
    remark: str = ""
    is_ratio: bool = True
    pythons: tuple[str, str] | None = None

    @property
    def step(self) -> float:
        """The step on the scale of the search: the log of the ratio, or the difference."""
        return self._scaled(self.value)

    @property
    def is_step(self) -> bool:
        """Whether they are shown to differ: the interval leaves none out, and the value is beyond the margin."""
        is_apart = self._scaled(self.low) > 0.0 or self._scaled(self.high) < 0.0
        return is_apart and abs(self.step) > self.floor

    @property
    def is_same(self) -> bool:
        """Whether they are shown to be the same: the whole interval is within the margin."""
        return -self.floor < self._scaled(self.low) and self._scaled(self.high) < self.floor

    @property
    def relation(self) -> str:
        """What the two do: `differ`, `do not differ`, or `are not shown to differ`."""
        return "differ" if self.is_step else "do not differ" if self.is_same else "are not shown to differ"

    @property
    def words(self) -> str:
        """All of it in a clause: `tf2.1 takes ×17.6 the time of tf2.0 (16.3 to 18.9, 3 rounds: slower)`."""
        number = "{:.3g}" if self.is_ratio else "{:+,.0f}"
        low, high = number.format(self.low), number.format(self.high)
        ends = ("faster", "slower") if self.is_ratio else ("less", "more")
        shown = ends[self.step > 0.0] if self.is_step else "same" if self.is_same else "unclear"
        return f"{self.what} ({low} to {high}, {counted(self.rounds, 'round')}: {self.remark or shown})"

    def _scaled(self, value: float) -> float:
        return (math.log(value) if value > 0.0 else -math.inf) if self.is_ratio else value


class MeasuredEnvironments(Protocol):
    """What a run of some environments told, by what -e takes."""

    def differences(self, text: str, fixed: str) -> list[float]:
        """The log of value(text) / value(fixed), or their difference, of each round that has both."""

    def why_not(self, text: str) -> str:
        """Why an environment gave no number; empty where it gave one."""

    def judged(self, text: str, fixed: str) -> LookResult | None:
        """What is shown of an environment against another; None where no round has both."""

    def after(self, earlier: Self) -> Self:
        """The rounds of both, the earlier ones first, to be judged together."""


class Probe(Protocol):
    """Measures environments for a search, and makes them; `spent` are the seconds that launches took until now."""

    spent: float

    def measure(self, kind: str, texts: Sequence[str], rounds: int, *, verdict: bool = False) -> MeasuredEnvironments:
        """So many rounds of these environments."""

    def why_not(self, text: str, *, alone: bool = True) -> str:
        """Make an environment; why it cannot be had, empty where it can."""

    def estimated(self, environments: int, rounds: int, *, verdict: bool = False) -> float:
        """What so many rounds of so many environments would take, in seconds."""


class Looks:
    """Two environments, the older first, that are measured until they are shown to differ, or to be the same.

    `judged` is what all rounds until now show; None before any show something.
    """

    def __init__(self, kind: str, texts: tuple[str, str]) -> None:
        self.judged: LookResult | None = None
        self._kind, self._texts = kind, texts
        self._left = [last - first for first, last in pairwise((0, *LOOKS))]
        self._taken: MeasuredEnvironments | None = None

    @property
    def more(self) -> int:
        """How many rounds the next look needs; 0 if there is none: the answer is clear, or this was the last."""
        is_clear = self.judged is not None and (self.judged.is_step or self.judged.is_same)
        return self._left[0] if self._left and not is_clear else 0

    def seconds(self, probe: Probe) -> float:
        """What the next look would take."""
        return probe.estimated(len(self._texts), self.more, verdict=True)

    def look(self, probe: Probe) -> MeasuredEnvironments:
        """Measure the next rounds, and judge all. Returns the new ones."""
        new = probe.measure(self._kind, self._texts, self._left.pop(0), verdict=True)
        self._taken = new.after(self._taken) if self._taken else new
        self.judged = self._taken.judged(self._texts[1], self._texts[0])
        return new
