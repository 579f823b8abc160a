"""Measures two environments side by side in one run, which continues until their difference is clear.

Searches and confirmations use it. How the level is divided among the looks: analysis/looks.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_RunT = TypeVar("_RunT")
_ResultT = TypeVar("_ResultT")


@dataclass(slots=True)
class PairedMeasurement(Generic[_RunT, _ResultT]):
    """A measurement with looks after the numbers of rounds in `looks`, until its result is clear or no look is left.

    `measure(rounds, run)` continues the run so far (None before the first look) up to this number of rounds. `judge`
    returns the result of a run, and whether more rounds wouldn't change it. After a look, the run has `rounds` rounds.
    """

    looks: Sequence[int]
    measure: Callable[[int, _RunT | None], _RunT]
    judge: Callable[[_RunT], tuple[_ResultT, bool]]
    run: _RunT | None = None
    result: _ResultT | None = None
    rounds: int = 0
    is_clear: bool = False

    @property
    def more(self) -> int:
        """The number of rounds from the last look to the next one; 0 if the result is clear, or no look is left."""
        next_look = next((rounds for rounds in self.looks if rounds > self.rounds), self.rounds)
        return 0 if self.is_clear else next_look - self.rounds

    def look(self) -> _RunT:
        """Measure up to the next look, judge the run, and return it."""
        rounds = self.rounds + self.more
        self.run = run = self.measure(rounds, self.run)
        self.result, self.is_clear = self.judge(run)
        self.rounds = rounds
        return run
