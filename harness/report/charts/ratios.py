"""The main picture: each comparison's ratio with its interval, the margin as a band, and the A/A control."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict
from harness.report import format
from harness.report.charts import forest, layout
from harness.report.charts.forest import NO_VERDICT, Entry
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.comparisons import Comparisons, Line

#: A ratio above 1 is faster.
LOOKS = forest.looks(left=Verdict.SLOWER, right=Verdict.FASTER)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison: time(other) / time(cell), above 1 when what stands before "against" is faster.

    `gain` is the same as the source's percentage.
    """

    name: str
    estimate: Estimate
    verdict: str
    gain: str


@dataclass(frozen=True, slots=True)
class Ratios:
    """The comparisons that are drawn, at least one, in the table's order, `of` so many that did the same work.

    `different` did not, and are not drawn. `margin` is a share, 0.03 for 3 %; `control` is the A/A control's ratio
    where it has an interval.
    """

    rows: Sequence[Ratio]
    of: int
    different: int
    margin: float
    control: Estimate | None

    @property
    def shown(self) -> Interval:
        """From where to where the axis goes."""
        estimates = [row.estimate for row in self.rows] + ([self.control] if self.control else [])
        return forest.domain(estimates, self.margin)

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        return forest.cut([row.estimate for row in self.rows], self.shown)

    @property
    def resolved(self) -> str:
        """The control's difference as a percentage, with its interval."""
        return format.gain(self.control) if self.control else ""

    @property
    def slowest(self) -> Ratio:
        """The one with the lowest ratio."""
        return min(self.rows, key=lambda row: row.estimate.value)

    @property
    def fastest(self) -> Ratio:
        """The one with the highest ratio."""
        return max(self.rows, key=lambda row: row.estimate.value)


def ratios(view: Comparisons, control: Estimate | None, margin: float) -> Ratios | None:
    """What is drawn of a table's comparisons: those farthest from 1; None where none did the same work."""
    # two entries of a header may ask for the same comparison
    lines = {(line.compared.cell, line.compared.other): line for line in reversed(view.lines)}
    same = [line for line in reversed(lines.values()) if line.compared.verdict is not Verdict.DIFFERENT_WORK]
    if not same:
        return None
    kept = [same[index] for index in layout.farthest([_distance(line) for line in same])]
    names = layout.distinct([", ".join([*line.labels, line.what]) for line in kept])
    return Ratios(
        rows=[
            Ratio(name, line.compared.estimate, line.compared.verdict or NO_VERDICT, line.gain)
            for name, line in zip(names, kept, strict=True)
        ],
        of=len(same),
        different=len(lines) - len(same),
        margin=margin,
        control=control if control and control.interval else None,
    )


def specification(chart: Ratios, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    return forest.specification(
        words,
        [Entry(row.name, row.estimate, row.verdict, row.gain) for row in chart.rows],
        shown=chart.shown,
        margin=chart.margin,
        label=forest.mark("faster", "slower"),
        looks=LOOKS,
        dotted=chart.control.interval if chart.control else None,
    )


def _distance(line: Line) -> float:
    return abs(math.log(line.compared.estimate.value))
