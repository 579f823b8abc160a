"""Results that charts are made of."""

from collections.abc import Iterator, Sequence
from typing import Any

from harness.analysis.results import Results
from harness.model.scenario import Cell
from harness.report.charts import forest, sweeps, times
from harness.report.charts.vega import Picture
from harness.report.comparisons import list_lines
from tests.factories import PHASES, cell, cells, rounds, run, scenario

#: Strings that would do harm: a script, an end of the element, a terminal's colours, lines, a mark that turns letters.
HOSTILE = "<script>alert(1)</script>]]>\"'& \x1b[31mred\x1b[0m\nnext\r\u202eturned | `x` " + "long " * 40


def results(seconds: dict[Cell, float] | None = None, *, count: int = 5, spread: float = 0.01) -> Results:
    """Two calls in two environments and two modes, with a control: eager mode is slower, and TF 2 slower still."""
    if seconds is None:
        times = (10, 20, 10.1, 27, 8, 15, 8, 21)
        seconds = dict(zip(cells(calls=("fit", "train_on_batch")), (seconds / 1000 for seconds in times), strict=True))
    controls = {value: seconds[value] for value in (cell(), cell(call="train_on_batch")) if value in seconds}
    launches = rounds(seconds, count, spread, controls=controls, phases=PHASES)
    return Results(run(seconds, controlled=True), launches)


def hostile() -> Results:
    """Every name of the scenario, and each of its values, would do harm."""
    calls = [HOSTILE + end for end in "ab"]
    axes = {"call": calls, "mode": ["graph", HOSTILE]}
    strange = scenario(HOSTILE, title=HOSTILE, axes=axes, default={})
    members = [
        Cell(HOSTILE, environment, cell().device, {"call": call, "mode": mode})
        for call in calls
        for environment in ("tf1.14", "tf2.0")
        for mode in axes["mode"]
    ]
    seconds = {member: 0.01 + 0.001 * index for index, member in enumerate(members)}
    phases = {HOSTILE: 1.0, **PHASES}
    return Results(run(seconds, scenarios=[strange]), rounds(seconds, phases=phases))


def many(count: int) -> Results:
    """So many rows, with two cells each: the later ones are slower, and their modes farther apart."""
    calls = [f"call{index:03}" for index in range(count)]
    wide = scenario(axes={"call": calls, "mode": ["graph", "eager"]}, default={}, compare=scenario().compare[1:2])
    seconds = {
        Cell("step", "tf1.14", cell().device, {"call": call, "mode": mode}): 0.01 + slower * (0.001 + index / 1e4)
        for index, call in enumerate(calls)
        for slower, mode in enumerate(("graph", "eager"))
    }
    return Results(run(seconds, scenarios=[wide]), rounds(seconds, spread=0.001, phases=PHASES))


def drawn(measured: Results) -> Iterator[Picture]:
    for table in measured.tables:
        yield from forest.draw_comparisons(measured, table, list_lines(table))
        yield from times.draw(table)
        yield from sweeps.draw(table, [sweep for owner, sweep in measured.sweeps if owner is table])


def kind(chart: Picture) -> str:
    return chart.name.partition("-")[0]


def picture(measured: Results, wanted: str) -> Picture:
    (chart,) = (entry for entry in drawn(measured) if kind(entry) == wanted)
    return chart


def values(chart: Picture, mark: str) -> Sequence[dict[str, Any]]:
    panel = chart.specification.get("concat", [chart.specification])[0]
    layers = [entry for entry in panel["layer"] if entry["mark"]["type"] == mark]
    return [value for layer in layers for value in layer["data"]["values"]]


def round_numbers(value: Any) -> Any:
    """Nine digits of each number: the last ones of sums and exponentials differ between machines."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: round_numbers(item) for key, item in value.items()}
    return [round_numbers(entry) for entry in value] if isinstance(value, list | tuple) else value
