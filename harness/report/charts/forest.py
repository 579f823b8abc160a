"""Ratios on a log axis, a line each, with interval, verdict and the margin as a band: for comparisons and for effects.

The picture is a forest plot, as meta-analyses have it: S. Lewis and M. Clarke, "Forest plots: trying to see the wood
and the trees", BMJ 322, 2001.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words

#: What stands beside a line that has no verdict.
NO_VERDICT = "no verdict"

#: For each verdict its shape, the colour of its outline, and that of its inside.
Looks = Mapping[str, tuple[str, str, str]]


def looks(*, left: Verdict, right: Verdict) -> Looks:
    """What verdicts look like, told apart in black and white too: triangles point to where such a ratio lies."""
    colours = {Verdict.FASTER: layout.BLUE, Verdict.SLOWER: layout.VERMILION}
    return {
        right.value: ("triangle-right", colours[right], colours[right]),
        left.value: ("triangle-left", colours[left], colours[left]),
        Verdict.SAME.value: ("circle", layout.GREEN, layout.GREEN),
        Verdict.UNCLEAR.value: ("circle", layout.INK, "white"),
        NO_VERDICT: ("diamond", layout.INK, "white"),
    }


# 1.5 from 0.6667
_FACTOR = "format(max(datum.value, 1 / datum.value), '.3~g')"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: its name, which is its own, its ratio, its verdict, and the ratio as text."""

    name: str
    estimate: Estimate
    verdict: str
    told: str


def domain(estimates: Sequence[Estimate], margin: float) -> Interval:
    """From where to where the axis goes; the margin (a share) is on it."""
    return axes.domain(estimates, around=(1.0 / (1.0 + margin), 1.0 + margin))


def cut(estimates: Sequence[Estimate], shown: Interval) -> int:
    """How many intervals reach beyond the axis."""
    return sum(len(axes.bar(each.interval, shown).caps) < 2 for each in estimates if each.interval)


def mark(above: str, below: str, equal: str = "equal") -> str:
    """The expression that labels a mark: `equal`, or so many times, and what a ratio above and below 1 means."""
    return f"abs(log(datum.value)) < 1e-9 ? '{equal}' : {_FACTOR} + (datum.value > 1 ? '× {above}' : '× {below}')"


def specification(
    words: Words,
    entries: Sequence[Entry],
    *,
    shown: Interval,
    margin: float,
    label: str,
    looks: Looks,
    dotted: Interval | None = None,
) -> Specification:
    """The chart as Vega-Lite. `label` is an expression for the axis's marks, `dotted` an interval to draw across."""
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [shown.low, shown.high], "nice": False},
        "axis": {
            "title": words.axis,
            "values": axes.ratio_marks(shown, layout.WIDTH),
            "labelExpr": label,
            "grid": False,
        },
    }
    y = layout.lines([entry.name for entry in entries])
    verdicts = [verdict for verdict in looks if any(entry.verdict == verdict for entry in entries)]
    shapes, strokes, fills = zip(*(looks[verdict] for verdict in verdicts), strict=True)
    bars = [(entry, axes.bar(entry.estimate.interval, shown)) for entry in entries if entry.estimate.interval]

    def by_verdict(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": verdicts, "range": list(range_)}
        return {"field": "verdict", "type": "nominal", "scale": scale, "legend": None}

    def at(field: str) -> dict[str, Any]:
        return {"field": field, **x}

    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "rect", "color": layout.BAND},
                [{"low": max(shown.low, 1.0 / (1.0 + margin)), "high": min(shown.high, 1.0 + margin)}],
                x=at("low"),
                x2={"field": "high"},
            ),
            layout.layer({"type": "rule", "color": layout.FAINT}, [{"at": 1.0}], x=at("at")),
            layout.layer(
                {"type": "rule", "color": layout.INK, "strokeDash": [2, 3]},
                [{"at": end} for end in (axes.bar(dotted, shown).caps if dotted else ())],
                x=at("at"),
            ),
            layout.layer(
                {"type": "rule", "strokeWidth": 1.5},
                [
                    {"name": entry.name, "verdict": entry.verdict, "low": each.low, "high": each.high}
                    for entry, each in bars
                ],
                y=y,
                x=at("low"),
                x2={"field": "high"},
                stroke=by_verdict(strokes),
            ),
            layout.layer(
                {"type": "tick", "orient": "vertical", "size": 8, "thickness": 1.5},
                [
                    {"name": entry.name, "verdict": entry.verdict, "at": cap}
                    for entry, each in bars
                    for cap in each.caps
                ],
                y=y,
                x=at("at"),
                color=by_verdict(strokes),
            ),
            layout.layer(
                {"type": "point", "size": 70, "strokeWidth": 1.5, "opacity": 1},
                [{"name": entry.name, "verdict": entry.verdict, "ratio": entry.estimate.value} for entry in entries],
                y=y,
                x=at("ratio"),
                shape=by_verdict(shapes),
                stroke=by_verdict(strokes),
                fill=by_verdict(fills),
            ),
            layout.beside([(entry.name, entry.verdict) for entry in entries], y=y),
            layout.beside([(entry.name, entry.told) for entry in entries], y=y, pixels=72),
        ],
    )
