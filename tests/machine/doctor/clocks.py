"""Clocks that go on when they are told to."""

from collections.abc import Iterable


class DoctorClock:
    """Each reading is `step` seconds after the last one; work takes what it is told to, one after another."""

    def __init__(self, step: float = 1e-7, blocks: Iterable[float] = ()) -> None:
        self.now = 0.0
        self.step = step
        self._blocks = iter(blocks)

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def work(self, size: int) -> None:
        """Take the next time, or a microsecond a unit where no more are given."""
        self.now += next(self._blocks, size * 1e-6)
