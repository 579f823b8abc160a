"""Forest plots of comparisons: one row per ratio on a log axis, with interval, verdict and margin.

Forest plots are common in meta-analyses. Source: S. Lewis and M. Clarke, "Forest plots: trying to see the wood and the
trees", BMJ 322, 2001.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import GROWTH
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.vega import Picture, make_file_name
from harness.report.comparisons import NO_VERDICT, ComparisonLine

#: Shape, outline and fill of each verdict. They also differ in black and white.
LOOKS = {
    Verdict.SLOWER.value: ("triangle-right", layout.VERMILION, layout.VERMILION),
    Verdict.FASTER.value: ("triangle-left", layout.BLUE, layout.BLUE),
    Verdict.MORE.value: ("triangle-right", layout.VERMILION, layout.VERMILION),
    Verdict.LESS.value: ("triangle-left", layout.BLUE, layout.BLUE),
    Verdict.SAME.value: ("circle", layout.GREEN, layout.GREEN),
    Verdict.UNCLEAR.value: ("circle", layout.INK, "white"),
    NO_VERDICT: ("diamond", layout.INK, "white"),
}

#: How the point of a ratio is drawn.
POINT: Specification = {"size": 70, "strokeWidth": 1.5, "opacity": 1}

# the space in pixels at the right edge for the longest ratio, and for a ratio together with its verdict
_RATIO, _BOTH = 70, 150


@dataclass(frozen=True, slots=True)
class Ratio:
    """One row: its name, its ratio and its verdict."""

    name: str
    takes: Estimate
    verdict: str

    def __str__(self) -> str:
        return f"{format.factor(self.takes.value)}, {self.verdict} ({self.name})"


def draw_comparisons(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Picture]:
    """Yield the chart of the comparisons that are farthest from 1; nothing if no compared cells did equal work."""
    if table.quantity == GROWTH:
        return
    scenario, control = table.scenario, results.found_of(table.quantity).control
    control_ratio = control.estimate if control and control.estimate.interval else None
    equal_work = [line for line in compared if line.compared.verdict is not Verdict.DIFFERENT_WORK]
    if not equal_work:
        return
    rows = _select_farthest([Ratio(line.name, line.compared.ratio, line.verdict) for line in equal_work])
    ratios, margin = [row.takes for row in rows], results.run.plan.margin
    domain = axes.choose_ratio_domain([*ratios, *([control_ratio] if control_ratio else [])], margin)
    bars_note = "Bars: confidence intervals." if any(ratio.interval for ratio in ratios) else layout.NO_INTERVALS
    control_note = (
        f" Dotted lines: two identical cells (the A/A control), {format.format_interval(control_ratio.interval)}×."
        if control_ratio
        else ""
    )
    different_count = len(compared) - len(equal_work)
    verb = "is" if different_count == 1 else "are"
    omitted_note = f"{counted(different_count, 'comparison')} of cells that did different work {verb} not shown."
    measure, advantage = names.measure(table), "is faster" if is_time(table.quantity) else "takes more"
    comparative = "takes longer" if is_time(table.quantity) else "takes more"
    words = layout.escape_texts(
        f"{names.name_table(table)}: which {advantage}, and by how much",
        [
            f"{bars_note} Grey band: differences below {format.share(margin)} aren't reported.{control_note}",
            layout.note_partial(len(rows), len(equal_work), "comparison", "those farthest from 1"),
            layout.note_cut(ratios, domain),
            omitted_note if different_count else "",
        ],
        f"{measure} of the first / {measure} of the second (log scale); right of 1: the first {comparative}",
        f"Chart of {counted(len(rows), 'comparison')} of {scenario.name}, {measure} of the first over {measure} of the "
        f"second: {layout.describe_extremes(rows, lambda row: row.takes.value, str)}.",
    )
    name = make_file_name(results, "ratios", scenario, names.make_suffix(table))
    layers = _make_layers(rows, domain, margin, control_ratio, layout.wrap_axis_title(words))
    yield layout.make_picture(name, words, layers, measure=measure)


def _select_farthest(rows: Sequence[Ratio]) -> list[Ratio]:
    """Return the rows that the chart shows, with unique names."""
    farthest = layout.select_farthest(rows, lambda row: abs(math.log(row.takes.value)))
    return [
        replace(row, name=name)
        for row, name in zip(farthest, layout.make_distinct_names([row.name for row in farthest]), strict=True)
    ]


def _make_layers(
    rows: Sequence[Ratio], domain: Interval, margin: float, control: Estimate | None, title: Sequence[str]
) -> list[Specification]:
    """Return the layers of the chart. `control` is the ratio of the A/A control, if it has an interval."""
    x = layout.make_ratio_channel(domain, title, layout.NARROW)
    y = layout.make_row_channel([row.name for row in rows])
    verdicts = {row.verdict for row in rows}
    by_verdict = {verdict: verdict_look for verdict, verdict_look in LOOKS.items() if verdict in verdicts}
    looks = layout.make_looks("verdict", by_verdict, ("shape", "stroke", "fill"), None)
    control_ends = axes.clip_interval(control.interval, domain).caps if control and control.interval else ()
    points = [({"name": row.name, "verdict": row.verdict}, row.takes) for row in rows]

    def make_channels(field: str) -> Specification:
        return {"y": y, "x": {"field": field, **x}}

    return [
        *layout.make_band(margin, domain, "x", x),
        layout.make_layer(
            {"type": "rule", "color": layout.INK, "strokeDash": [2, 3]},
            [{"at": end} for end in control_ends],
            x={"field": "at", **x},
        ),
        *layout.make_estimate_layers(points, domain, "x", make_channels, looks, point=POINT, field="ratio", cap=8),
        *layout.make_heading_layers([{"name": row.name} for row in rows], free=_BOTH, y=y),
        layout.make_end_layer([{"name": row.name, "told": row.verdict} for row in rows], left=_RATIO, y=y),
        layout.make_end_layer([{"name": row.name, "told": format.factor(row.takes.value)} for row in rows], y=y),
    ]
