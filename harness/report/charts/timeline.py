"""Run timeline: the launches in order of time, each compared with the mean of its cell. Noisy launches are marked."""

import math
from collections.abc import Iterator, Sequence

from harness.analysis.distribution import quantile, step_seconds
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.analysis.timeline import TimedLaunch
from harness.model.launch import Clock, Role
from harness.model.texts import counted
from harness.report import format
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.vega import Picture, make_file_name

#: The largest number of drawn launches.
LAUNCHES = 200

#: The plot's height, and the smallest distance of its ticks, in pixels.
HEIGHT, APART = 150, 22.0

#: Shape, outline and fill of each kind of launch. They also differ in black and white.
LOOKS = {
    "launch": ("circle", layout.BLUE, layout.BLUE),
    "A/A control": ("diamond", layout.INK, "white"),
    "disturbed": ("triangle-up", layout.VERMILION, layout.VERMILION),
    "not counted: its round was repeated": ("square", layout.FAINT, "white"),
}
_MEASURED, _CONTROL, _DISTURBED, _REPEATED = LOOKS


def draw(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """Yield the chart of the launches that are farthest from their cells' means; nothing for fewer than 2 launches."""
    launches, margin, scenario = results.timeline(table), results.run.plan.margin, table.scenario
    if len(launches) < 2:
        return
    drawn_launches = layout.select_farthest(launches, lambda timed: abs(math.log(timed.factor)), LAUNCHES)
    outside_count = sum(abs(math.log(timed.factor)) > math.log1p(margin) for timed in drawn_launches)
    disturbed_count, margin_text = sum(timed.has_interference for timed in drawn_launches), format.share(margin)
    words = layout.escape_texts(
        f"{scenario.title}: each launch compared with the mean of its cell",
        [
            f"Marks: the {table.clock.time} per step of a launch. Bars: p10 to p90 of its samples. "
            f"Grey band: within {margin_text} of the mean.",
            layout.note_partial(
                len(drawn_launches), len(launches), "launch", "those farthest from the means of their cells"
            ),
        ],
        "launches in order of time",
        f"Chart of {counted(len(drawn_launches), 'launch')} of {scenario.name} in order of time: "
        f"{outside_count or 'none'} more than {margin_text} from the mean of its cell, "
        f"{disturbed_count or 'none'} disturbed.",
    )
    yield layout.make_picture(
        make_file_name(results, "course", scenario),
        words,
        _make_layers(drawn_launches, len(launches), margin, layout.wrap_axis_title(words), table.clock),
        HEIGHT,
    )


def _make_layers(
    launches: Sequence[TimedLaunch], total: int, margin: float, title: Sequence[str], clock: Clock
) -> list[Specification]:
    ranges = [_compute_range(timed) for timed in launches]
    estimates = [Estimate(timed.factor, 1, sample_range) for timed, sample_range in zip(launches, ranges, strict=True)]
    domain = axes.choose_ratio_domain(estimates, margin)
    y = layout.make_ratio_channel(domain, f"{clock.time} / mean of its cell", HEIGHT, APART)
    x = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [0, total + 1], "nice": False},
        "axis": {"title": title, "grid": False, "tickMinStep": 1, "format": ",d"},
    }
    points = [{"place": timed.place, "kind": _find_kind(timed)} for timed in launches]
    found_kinds = {_find_kind(timed) for timed in launches}
    kinds = {kind: kind_look for kind, kind_look in LOOKS.items() if kind in found_kinds}
    looks = layout.make_looks("kind", kinds, ("shape", "stroke", "fill"), layout.make_legend(list(kinds)))
    bars = [
        (point, axes.clip_interval(sample_range, domain)) for point, sample_range in zip(points, ranges, strict=True)
    ]
    return [
        *layout.make_band(margin, domain, "y", y),
        layout.make_layer(
            {"type": "rule", "strokeWidth": 1},
            [{**point, "low": bar.low, "high": bar.high} for point, bar in bars if bar.high > bar.low],
            x=x,
            y={"field": "low", **y},
            y2={"field": "high"},
            stroke=looks["stroke"],
        ),
        layout.make_layer(
            {"type": "point", "size": 28, "strokeWidth": 1, "opacity": 1},
            [{**point, "factor": timed.factor} for point, timed in zip(points, launches, strict=True)],
            x=x,
            y={"field": "factor", **y},
            **looks,
        ),
    ]


def _find_kind(timed: TimedLaunch) -> str:
    if timed.has_interference:
        return _DISTURBED
    if not timed.counted:
        return _REPEATED
    return _CONTROL if timed.launch.role is Role.CONTROL else _MEASURED


def _compute_range(timed: TimedLaunch) -> Interval:
    sorted_times = sorted(step_seconds(timed.launch))
    # at least a tiny number, because a sample of zero seconds has no logarithm
    low, high = (max(quantile(sorted_times, share) / timed.mean, 1e-300) for share in (0.1, 0.9))
    return Interval(low, high)
