"""A question about two sides: measured side by side in one run, which continues until the answer is clear.

Searches and confirmations ask such questions. How the level is divided among the looks: analysis/looks.py.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_RunT = TypeVar("_RunT")
_AnswerT = TypeVar("_AnswerT")


class Question(Generic[_RunT, _AnswerT]):
    """A question with looks after the numbers of rounds in `looks`, until the answer is clear or no look is left.

    `measure(rounds, run)` continues the run so far (None before the first look) up to this number of rounds. `judge`
    returns the answer of a run, and whether more rounds wouldn't change it. `run`, `answer` and `rounds` are those of
    the last look; None and 0 before the first one.
    """

    def __init__(
        self,
        looks: Sequence[int],
        measure: Callable[[int, _RunT | None], _RunT],
        judge: Callable[[_RunT], tuple[_AnswerT, bool]],
    ) -> None:
        self.run: _RunT | None = None
        self.answer: _AnswerT | None = None
        self.rounds, self._is_clear = 0, False
        self._looks, self._measure, self._judge = list(looks), measure, judge

    @property
    def more(self) -> int:
        """The number of rounds from the last look to the next one; 0 if the answer is clear, or no look is left."""
        return self._looks[0] - self.rounds if self._looks and not self._is_clear else 0

    def look(self) -> _RunT:
        """Measure up to the next look, judge the run, and return it."""
        rounds = self._looks.pop(0)
        self.run = run = self._measure(rounds, self.run)
        self.answer, self._is_clear = self._judge(run)
        self.rounds = rounds
        return run
