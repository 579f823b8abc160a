"""What accounts for a gap: the effect of each change, and of two together, with intervals and the margin as a band."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict
from harness.report.attribution import AttributionView, Line
from harness.report.charts import forest, layout
from harness.report.charts.forest import NO_VERDICT, Entry
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words

#: A factor above 1 takes longer.
LOOKS = forest.looks(left=Verdict.FASTER, right=Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class Factor:
    """One effect: how many times as long it takes, `×1.77`; `together`: it is the additional factor of two changes."""

    name: str
    estimate: Estimate
    verdict: str
    told: str
    together: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects that are drawn, at least one, in the table's order, of `of`. `margin` is a share."""

    rows: Sequence[Factor]
    of: int
    margin: float
    device: str

    @property
    def shown(self) -> Interval:
        """From where to where the axis goes."""
        return forest.domain([row.estimate for row in self.rows], self.margin)

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        return forest.cut([row.estimate for row in self.rows], self.shown)

    @property
    def pairs(self) -> bool:
        """Whether some are of two changes together."""
        return any(row.together for row in self.rows)

    @property
    def least(self) -> Factor:
        """The one with the lowest factor."""
        return min(self.rows, key=lambda row: row.estimate.value)

    @property
    def most(self) -> Factor:
        """The one with the highest factor."""
        return max(self.rows, key=lambda row: row.estimate.value)


def effects(view: AttributionView, margin: float) -> Effects:
    """What is drawn of a scenario's effects: those farthest from 1."""
    kept = [view.lines[index] for index in layout.farthest([_distance(line) for line in view.lines])]
    names = layout.distinct([line.term for line in kept])
    return Effects(
        rows=[
            Factor(name, line.estimate, line.verdict or NO_VERDICT, f"×{line.factor}", line.depends is not None)
            for name, line in zip(names, kept, strict=True)
        ],
        of=len(view.lines),
        margin=margin,
        device=view.device,
    )


def specification(chart: Effects, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    return forest.specification(
        words,
        [Entry(row.name, row.estimate, row.verdict, row.told) for row in chart.rows],
        shown=chart.shown,
        margin=chart.margin,
        label=forest.mark("longer", "shorter"),
        looks=LOOKS,
    )


def _distance(line: Line) -> float:
    return abs(math.log(line.estimate.value))
