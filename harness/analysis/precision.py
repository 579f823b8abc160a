"""Which groups are measured well enough. It looks at the intervals' widths and never at what they say."""

import math
from collections.abc import Sequence

from harness.analysis.comparisons import half_widths_of
from harness.analysis.lookup import Lookup, lookup
from harness.analysis.statistics import combine
from harness.analysis.tables import layouts
from harness.model.launch import Launch
from harness.model.run import Group, Run

#: Looked at from round 3 on, a 95 % interval covered 90 to 92 %; from round 8 on, 93.5 to 95 % (`make simulate`).
FIRST_LOOK = 8


def widths(run: Run, launches: Sequence[Launch]) -> dict[str, float]:
    """By group, half the width of the widest interval of its comparisons, on the log scale; infinite before round 8.

    A group in which nothing can be compared has that of its cells' times instead; one without a number is left out.
    """
    found = lookup(run, launches)
    of_pairs: dict[str, float] = {}
    for layout in layouts(run, found):
        pairs = layout.pairs()
        for (cell, _), half in zip(pairs, half_widths_of(pairs, found), strict=True):
            if half is not None:
                name = found.groups[cell]
                of_pairs[name] = max(of_pairs.get(name, 0.0), half)
    result = {}
    for group in run.plan.groups:
        width = of_pairs.get(group.name, _of_times(group, found))
        if width is not None:
            result[group.name] = width if _rounds(group, found) >= FIRST_LOOK else math.inf
    return result


def _rounds(group: Group, found: Lookup) -> int:
    """How many rounds gave the group's cells numbers: of its best-measured cell."""
    return max((len(found.series.get(cell, ())) for cell in group.cells), default=0)


def _of_times(group: Group, found: Lookup) -> float | None:
    halves = [_half(list(found.series[cell].values())) for cell in group.cells if cell in found.series]
    return max(halves, default=None)


def _half(centres: Sequence[float]) -> float:
    ends = combine(centres).interval
    return math.log(ends.high / ends.low) / 2.0 if ends else math.inf
