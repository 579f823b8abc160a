"""Forest plots of comparisons: one row per ratio on a log axis, with interval, verdict and margin.

A name is beside the plot or, if the plot would be too narrow, above its marks. So no text crosses the margin.
Forest plots are common in meta-analyses. Source: S. Lewis and M. Clarke, "Forest plots: trying to see the wood and the
trees", BMJ 322, 2001.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import GROWTH
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.vega import Picture, Words, make_file_name
from harness.report.comparisons import NO_VERDICT, ComparisonLine, is_settled

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

#: In pixels: the heights of a row whose name is beside the plot, and of a row whose name is above its marks; in the
#: latter, the distances of the name and of the marks from the middle of the row, and the part without marks.
BESIDE, ABOVE, UP, DOWN, NAME = 26, 42, 11, 9, 20

#: In pixels: the space at the right edge for a verdict, the space for a ratio and a verdict, and the narrowest plot.
_VERDICT, _BOTH, _PLOT = 76, 132, 220


@dataclass(frozen=True, slots=True)
class Ratio:
    """One row: its name, its ratio and its verdict."""

    name: str
    takes: Estimate
    verdict: str

    @property
    def size(self) -> str:
        """The ratio as text. If the first side is faster or takes less, it is turned round: `2.92×`, not `0.342×`."""
        is_turned = self.verdict in (Verdict.FASTER, Verdict.LESS)
        return format.factor(1.0 / self.takes.value if is_turned else self.takes.value)

    def __str__(self) -> str:
        is_difference = self.verdict != Verdict.SAME and is_settled(self.verdict)
        return f"{self.size}{' ' if is_difference else ', '}{self.verdict} ({self.name})"


def draw_answer(results: Results, rows: Sequence[Ratio], measured: str) -> Iterator[Picture]:
    """Yield the chart of the first screen; nothing without rows. It has no title, because it is below a sentence.

    `measured` is the axis title, such as `time of tf2.0 / time of tf1.14`.
    """
    if rows:
        margin, ratios = results.run.plan.margin, [row.takes for row in rows]
        cut_note = layout.note_cut(ratios, axes.choose_ratio_domain(ratios, margin))
        notes = " ".join(filter(None, [layout.note_marks(ratios, margin), cut_note]))
        words = layout.escape_texts(
            "",
            [],
            f"{measured} (log scale); {notes}",
            f"Chart of {counted(len(rows), 'comparison')}, {measured}: {_describe_extremes(rows)}.",
        )
        yield _make_picture("answer", words, rows, margin, names.measure(results.answers[0].table))


def draw_comparisons(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Picture]:
    """Yield the chart of the comparisons that are farthest from 1; nothing for fewer than 2."""
    equal_work = [line for line in compared if line.compared.verdict is not Verdict.DIFFERENT_WORK]
    if table.quantity == GROWTH or len(equal_work) < 2:
        return
    scenario, margin = table.scenario, results.run.plan.margin
    rows = layout.select_farthest(
        [Ratio(line.name, line.compared.ratio, line.verdict) for line in equal_work],
        lambda row: abs(math.log(row.takes.value)),
    )
    ratios = [row.takes for row in rows]
    different_count = len(compared) - len(equal_work)
    verb = "is" if different_count == 1 else "are"
    omitted_note = f"{counted(different_count, 'comparison')} of cells that did different work {verb} not shown."
    measure, advantage = names.measure(table), "is faster" if is_time(table.quantity) else "takes more"
    comparative = "takes longer" if is_time(table.quantity) else "takes more"
    words = layout.escape_texts(
        f"{names.name_table(table)}: which {advantage}, and by how much",
        [
            layout.note_marks(ratios, margin),
            layout.note_partial(len(rows), len(equal_work), "comparison", "those farthest from 1"),
            layout.note_cut(ratios, axes.choose_ratio_domain(ratios, margin)),
            omitted_note if different_count else "",
        ],
        f"{measure} of the first / {measure} of the second (log scale); right of 1: the first {comparative}",
        f"Chart of {counted(len(rows), 'comparison')} of {scenario.name}, {measure} of the first over {measure} of the "
        f"second: {_describe_extremes(rows)}.",
    )
    yield _make_picture(make_file_name("ratios", table), words, rows, margin, measure)


def _describe_extremes(rows: Sequence[Ratio]) -> str:
    return layout.describe_extremes(rows, lambda row: row.takes.value, str)


def _make_picture(name: str, words: Words, rows: Sequence[Ratio], margin: float, measure: str) -> Picture:
    drawn_names = layout.make_distinct_names([row.name for row in rows])
    rows = [replace(row, name=drawn_name) for row, drawn_name in zip(rows, drawn_names, strict=True)]
    # the page places the names again, for its own width
    room = layout.measure_room(drawn_names)
    beside = int(room + _PLOT + _BOTH)
    step = BESIDE if beside <= layout.WIDTH - layout.PADDING else ABOVE
    layers = _make_layers(rows, margin, layout.wrap_axis_title(words), room, beside)
    usermeta = {"beside": beside, "steps": {"beside": BESIDE, "above": ABOVE}}
    return layout.make_picture(name, words, layers, {"step": step}, measure, usermeta=usermeta)


def _make_layers(
    rows: Sequence[Ratio], margin: float, title: Sequence[str], room: float, beside: int
) -> list[Specification]:
    """Return the layers of the chart. Names take `room` pixels beside a plot with at least `beside` pixels."""

    def choose(if_beside: float | str, if_above: float | str) -> Specification:
        return {"expr": f"width >= {beside} ? {if_beside} : {if_above}"}

    def shift(mark: Specification) -> Specification:
        return {**mark, "yOffset": choose(0, DOWN)}

    domain = axes.choose_ratio_domain([row.takes for row in rows], margin)
    x = layout.make_ratio_channel(
        domain, title, layout.NARROW - 60, range=[choose(room, 8), choose(f"width - {_BOTH}", "width - 8")]
    )
    y = layout.make_row_channel([row.name for row in rows])
    row_names = [{"name": row.name} for row in rows]
    verdicts = {row.verdict for row in rows}
    by_verdict = {verdict: verdict_look for verdict, verdict_look in LOOKS.items() if verdict in verdicts}
    looks = layout.make_looks("verdict", by_verdict, ("shape", "stroke", "fill"), None)
    points = [({"name": row.name, "verdict": row.verdict}, row.takes) for row in rows]

    def make_channels(field: str) -> Specification:
        return {"y": y, "x": {"field": field, **x}}

    across = {"y": {**y, "bandPosition": 0}, "y2": {"field": "name", "bandPosition": 1}}
    bands = [
        {**layer, "mark": {**layer["mark"], "yOffset": choose(0, NAME)}, "encoding": {**layer["encoding"], **across}}
        for layer in layout.make_band(margin, domain, "x", x, row_names)
    ]
    grid = layout.make_layer(
        shift({"type": "rule", "color": layout.GRID}),
        row_names,
        y=y,
        x={"value": choose(room, 0)},
        x2={"value": choose(f"width - {_BOTH}", "width")},
    )
    estimates = layout.make_estimate_layers(
        points, domain, "x", make_channels, looks, point=POINT, field="ratio", cap=8
    )
    return [
        grid,
        *bands,
        *({**layer, "mark": shift(layer["mark"])} for layer in estimates),
        *_make_texts(rows, choose(0, -UP), choose(room, f"width - {_BOTH}"), y),
    ]


def _make_texts(
    rows: Sequence[Ratio], up: Specification, limit: Specification, y: Specification
) -> list[Specification]:
    """Return the layers with the names, the ratios and the verdicts of the rows, `up` pixels above their middle."""
    mark = {"type": "text", "align": "left", "baseline": "middle", "dy": up}
    row_names = [{"name": row.name} for row in rows]
    verdicts = [{"name": row.name, "told": row.verdict} for row in rows]
    return [
        layout.make_layer({**mark, "limit": limit}, row_names, y=y, x={"value": 0}, text={"field": "name"}),
        layout.make_end_layer([{"name": row.name, "told": row.size} for row in rows], left=_VERDICT, dy=up, y=y),
        layout.make_layer({**mark, "dx": 12 - _VERDICT}, verdicts, y=y, x={"value": "width"}, text={"field": "told"}),
    ]
