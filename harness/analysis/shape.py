"""The shape of a launch's samples."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.launch import Launch

#: Mean and median of a launch's samples part by more than this share of the median: several modes.
PARTED = 0.10


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a cell's launches something holds for."""

    count: int
    of: int


def several_modes(launch: Launch) -> bool:
    """Whether the mean and the median of the launch's samples (seconds per step) differ by over 10 %.

    Timings of one process often switch between two speeds; a mean far from the median gives that away.
    """
    rates = [sample.seconds / sample.steps for sample in launch.samples if sample.steps]
    if not rates:
        return False
    return abs(launch.centre / statistics.median(rates) - 1.0) > PARTED if statistics.median(rates) > 0.0 else False


def modes(launches: Sequence[Launch]) -> Share:
    """How many of one cell's launches have several modes."""
    return Share(count=sum(several_modes(launch) for launch in launches), of=len(launches))
