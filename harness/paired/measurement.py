"""Measures two environments side by side in one run, which continues until their difference is clear.

Searches and confirmations use it. How the level is divided among the looks: analysis/looks.py.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_RunT = TypeVar("_RunT")
_ResultT = TypeVar("_ResultT")


class PairedMeasurement(Generic[_RunT, _ResultT]):
    """A measurement with looks after the numbers of rounds in `looks`, until its result is clear or no look is left.

    `measure(rounds, run)` continues the run so far (None before the first look) up to this number of rounds. `judge`
    returns the result of a run, and whether more rounds wouldn't change it. After a look, the run has `rounds` rounds.
    """

    def __init__(
        self,
        looks: Sequence[int],
        measure: Callable[[int, _RunT | None], _RunT],
        judge: Callable[[_RunT], tuple[_ResultT, bool]],
    ) -> None:
        self.run: _RunT | None = None
        self.result: _ResultT | None = None
        self.rounds, self._is_clear = 0, False
        self._looks, self._measure, self._judge = list(looks), measure, judge

    @property
    def more(self) -> int:
        """The number of rounds from the last look to the next one; 0 if the result is clear, or no look is left."""
        return self._looks[0] - self.rounds if self._looks and not self._is_clear else 0

    def look(self) -> _RunT:
        """Measure up to the next look, judge the run, and return it."""
        rounds = self._looks.pop(0)
        self.run = run = self._measure(rounds, self.run)
        self.result, self._is_clear = self._judge(run)
        self.rounds = rounds
        return run
