"""How a run went: its launches in order of time, each compared with the mean of its cell, and which were disturbed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.shape import quantile
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.timeline import Moment
from harness.model.launch import Role
from harness.model.scenario import Scenario
from harness.model.texts import counted
from harness.report import format
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words

#: More launches than these are not drawn.
LAUNCHES = 200

#: Pixels: the plot's height, and how far apart its marks lie at least.
HEIGHT, APART = 150, 22.0

#: For each kind of launch its shape, its colour, and that of its inside: told apart in black and white too.
LOOKS = {
    "launch": ("circle", layout.BLUE, layout.BLUE),
    "A/A control": ("diamond", layout.INK, "white"),
    "disturbed": ("triangle-up", layout.VERMILION, layout.VERMILION),
    "not counted: its round was repeated": ("square", layout.FAINT, "white"),
}
_MEASURED, _CONTROL, _DISTURBED, _REPEATED = LOOKS


@dataclass(frozen=True, slots=True)
class LaunchMark:
    """One launch: its place, its kind, and, as factors of its cell's mean, its centre and p10 to p90 of its samples."""

    place: int
    kind: str
    factor: float
    samples: Interval


@dataclass(frozen=True, slots=True)
class Course:
    """The launches that are drawn, at least two, in order of time, of `of`. `margin` is a share."""

    rows: Sequence[LaunchMark]
    of: int
    margin: float

    @property
    def kinds(self) -> list[str]:
        """The kinds that occur, in their order."""
        occurring = {row.kind for row in self.rows}
        return [kind for kind in LOOKS if kind in occurring]

    @property
    def shown(self) -> Interval:
        """From where to where the axis of factors goes."""
        estimates = [Estimate(row.factor, 1, row.samples) for row in self.rows]
        return axes.domain(estimates, around=(1.0 / (1.0 + self.margin), 1.0 + self.margin))

    @property
    def apart(self) -> int:
        """How many launches lie farther from their cell's mean than the margin."""
        return sum(abs(math.log(row.factor)) > math.log1p(self.margin) for row in self.rows)

    @property
    def disturbed(self) -> int:
        """How many launches were disturbed."""
        return sum(row.kind == _DISTURBED for row in self.rows)


def course(moments: Sequence[Moment], margin: float) -> Course | None:
    """What is drawn of a table's launches: those farthest from their cells' means; None of fewer than two."""
    if len(moments) < 2:
        return None
    kept = [moments[index] for index in layout.farthest([abs(math.log(each.factor)) for each in moments], LAUNCHES)]
    return Course(
        [LaunchMark(each.place, _kind(each), each.factor, _samples(each)) for each in kept], len(moments), margin
    )


def words(chart: Course, scenario: Scenario) -> Words:
    """What stands around the chart."""
    margin = format.share(chart.margin)
    return Words(
        f"{scenario.title}: each launch compared with the mean of its cell",
        [
            "Marks: the time per step of a launch. Bars: p10 to p90 of its samples. "
            f"Grey band: within {margin} of the mean.",
            layout.some(len(chart.rows), chart.of, "launch", "those farthest from the means of their cells"),
        ],
        "launches in order of time",
        f"Chart of {counted(len(chart.rows), 'launch')} of {scenario.name} in order of time: {chart.apart or 'none'} "
        f"more than {margin} from the mean of its cell, {chart.disturbed or 'none'} disturbed.",
    )


def specification(chart: Course, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    shown, kinds = chart.shown, chart.kinds
    shapes, strokes, fills = zip(*(LOOKS[kind] for kind in kinds), strict=True)
    y = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [shown.low, shown.high], "nice": False},
        "axis": {
            "title": "time / mean of its cell",
            "values": axes.ratio_marks(shown, HEIGHT, APART),
            "labelExpr": axes.RATIO,
            "grid": False,
        },
    }
    x = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [0, chart.of + 1], "nice": False},
        "axis": {"title": layout.axis_title(words), "grid": False, "tickMinStep": 1, "format": ",d"},
    }

    def by_kind(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": kinds, "range": list(range_)}
        return {"field": "kind", "type": "nominal", "scale": scale, **layout.legend(kinds)}

    def at(field: str) -> dict[str, Any]:
        return {"field": field, **y}

    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "rect", "color": layout.BAND},
                [{"low": max(shown.low, 1.0 / (1.0 + chart.margin)), "high": min(shown.high, 1.0 + chart.margin)}],
                y=at("low"),
                y2={"field": "high"},
            ),
            layout.layer({"type": "rule", "color": layout.FAINT}, [{"at": 1.0}], y=at("at")),
            layout.layer(
                {"type": "rule", "strokeWidth": 1},
                [
                    {"place": row.place, "kind": row.kind, "low": each.low, "high": each.high}
                    for row in chart.rows
                    if (each := axes.bar(row.samples, shown)).high > each.low
                ],
                x=x,
                y=at("low"),
                y2={"field": "high"},
                stroke=by_kind(strokes),
            ),
            layout.layer(
                {"type": "point", "size": 28, "strokeWidth": 1, "opacity": 1},
                [{"place": row.place, "kind": row.kind, "factor": row.factor} for row in chart.rows],
                x=x,
                y=at("factor"),
                shape=by_kind(shapes),
                stroke=by_kind(strokes),
                fill=by_kind(fills),
            ),
        ],
        height=HEIGHT,
    )


def _kind(moment: Moment) -> str:
    if moment.disturbed:
        return _DISTURBED
    if not moment.counts:
        return _REPEATED
    return _CONTROL if moment.launch.role is Role.CONTROL else _MEASURED


def _samples(moment: Moment) -> Interval:
    rates = sorted(sample.seconds / sample.steps for sample in moment.launch.samples if sample.steps)
    # a timer that saw no time in a sample is no factor
    low, high = (max(quantile(rates, share) / moment.mean, 1e-300) for share in (0.1, 0.9))
    return Interval(low, high)
