"""Times commands, alone and in alternating pairs."""

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pairs:
    """The seconds of two pieces of work that were done by turns."""

    first: list[float]
    second: list[float]

    @property
    def ratio(self) -> float:
        """Return the median of first / second over pairs."""
        return statistics.median(a / b for a, b in zip(self.first, self.second, strict=True))

    def __str__(self) -> str:
        ratios = sorted(a / b for a, b in zip(self.first, self.second, strict=True))
        first, second = statistics.median(self.first), statistics.median(self.second)
        return (
            f"{first:.2f} s against {second:.2f} s, ratio {self.ratio:.3f} "
            f"({ratios[0]:.3f} to {ratios[-1]:.3f}, {len(ratios)} pairs)"
        )


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def pairs(first: Callable[[], object], second: Callable[[], object], count: int) -> Pairs:
    """Do both once without timing them, and then `count` timed pairs, whose order alternates."""
    first()
    second()
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(count):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append(seconds((first, second)[which]))
    return Pairs(*times)


def run(command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command without output. Raises CalledProcessError if it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **options)  # type: ignore[call-overload, no-any-return]
