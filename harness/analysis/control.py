"""The A/A control: the reference against itself, so that a run shows what it calls a difference where there is none."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.rounds import centre, gave_number
from harness.analysis.statistics import Estimate, student, variance
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class Control:
    """time(second launch) / time(first launch) of the groups' control cells, pooled over `groups` groups."""

    estimate: Estimate
    groups: int

    def beyond(self, margin: float) -> bool:
        """Whether the whole interval lies outside `margin` (log scale): then the run calls nothing a difference."""
        ends = self.estimate.interval
        return ends is not None and (math.log(ends.low) > margin or math.log(ends.high) < -margin)


def beyond(controls: Iterable[Control | None], margin: float) -> bool:
    """Whether one of the controls lies beyond `margin` (log scale)."""
    return any(each.beyond(margin) for each in controls if each)


def control(counting: Sequence[Launch]) -> Control | None:
    """The control of the launches that count; None where no round has two numbers of one cell.

    Of a round in several blocks it is that of the block with both: the others have the control cell once, to be
    compared with that block's cells.
    """
    numbers = [launch for launch in counting if gave_number(launch)]
    measured = {_place(each): math.log(centre(each)) for each in numbers if each.role is Role.MEASURE}
    logs: dict[str, list[float]] = defaultdict(list)
    for each in numbers:
        if each.role is Role.CONTROL and _place(each) in measured:
            logs[each.group].append(math.log(centre(each)) - measured[_place(each)])
    return pooled(list(logs.values())) if logs else None


def _place(launch: Launch) -> tuple[str, int, int, Cell]:
    """What a control shares with the launch that it is compared with."""
    return launch.group, launch.round, launch.block, launch.cell


def pooled(pairs: Sequence[Sequence[float]]) -> Control:
    """The control from log(control / measure) of every round, group by group (at least one of each).

    The mean over groups of the mean over rounds, with the interval m ± t·√(Σ s²/n)/G: the groups' variances s² may
    differ, so t has the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of estimates of
    variance components", Biometrics Bulletin 2, 1946. Groups with one such round are left out, and where there are no
    others there is no interval.
    """
    # one whose control kept failing has no spread, and must not take away what the others show
    groups = [logs for logs in pairs if len(logs) > 1] or pairs
    mean = fmean(map(fmean, groups))
    rounds = max(len(logs) for logs in groups)
    parts = [(variance(logs) / len(logs), len(logs) - 1) for logs in groups if len(logs) > 1]
    if not parts:
        return Control(Estimate.from_log(mean, rounds), len(groups))
    total = math.fsum(part for part, _ in parts)
    freedom = total**2 / math.fsum(part**2 / d for part, d in parts) if total > 0.0 else 1.0
    half = student(freedom) * math.sqrt(total) / len(groups)
    return Control(Estimate.from_log(mean, rounds, half), len(groups))
