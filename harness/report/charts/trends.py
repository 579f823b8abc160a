"""Charts of non-stationary steps: the time per step by the number of earlier steps."""

from collections.abc import Iterator

from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.tables import ScenarioTable
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.times import LOOKS, POINT
from harness.report.charts.vega import Picture, make_file_name

#: The largest number of drawn curves.
CURVES = len(LOOKS)

#: The height of the plot, in pixels.
HEIGHT = 200


def draw(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """Yield the chart of the cells with the largest trends; nothing if no cell has a trend."""
    cell_trends = [
        (names.name_measured(table, cell), cell.shape.trend)
        for cell in results.measured[table.scenario.name]
        if cell.shape.trend
    ]
    largest_trends = layout.select_farthest(cell_trends, lambda pair: max(pair[1].factor, 1.0 / pair[1].factor), CURVES)
    if not largest_trends:
        return
    picture_names = layout.make_distinct_names([name for name, _ in largest_trends], layout.SERIES_CHARACTERS)
    curves = dict(zip(picture_names, (trend for _, trend in largest_trends), strict=True))
    is_counted = all(trend.counted for trend in curves.values())
    stages = [(name, stage) for name, trend in curves.items() for stage in trend.stages]
    estimates = [Estimate(stage.seconds, 1) for _, stage in stages]
    unit, domain = format.unit([estimate.value for estimate in estimates], table.clock), axes.choose_domain(estimates)
    step = f"{table.clock.time} per step"
    text = "; ".join(f"{name}: {format.trend(trend, table.clock)}" for name, trend in curves.items())
    words = layout.escape_texts(
        f"{table.scenario.title}: {step} by the number of steps before it",
        [
            "Each mark is the mean over the launches, for one part of the launch.",
            layout.note_partial(len(curves), len(cell_trends), "cell", "those that change most"),
        ],
        f"{step}, {unit.symbol} (log scale)",
        f"Chart of the {step} of {table.scenario.name} by the number of earlier steps. {text}.",
    )
    points = [
        {"series": name, "steps": stage.step, "time": stage.seconds * unit.factor, "order": number}
        for number, (name, stage) in enumerate(stages)
    ]
    looks = layout.make_looks(
        "series", dict(zip(picture_names, LOOKS, strict=False)), ("shape", "color"), layout.make_legend(picture_names)
    )
    title = "earlier steps, including the warm-up" if is_counted else "earlier measured steps"
    channels = {
        "x": {"field": "steps", "type": "quantitative", "axis": {"title": title, "grid": False}},
        "y": {"field": "time", **layout.make_time_channel(domain, unit, words.axis)},
    }
    yield layout.make_picture(
        make_file_name(results, "trends", table.scenario),
        words,
        [
            layout.make_layer({"type": "line", "strokeWidth": 1.5}, points, **channels, color=looks["color"]),
            layout.make_layer({"type": "point", **POINT}, points, **channels, **looks),
        ],
        HEIGHT,
        table.clock.time,
    )
