"""CSV (RFC 4180) with one row per launch, including pilots and rounds that don't count.

Each number that a script prints has a column with the median in a launch, or a column for each of its settings.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from harness.analysis.distribution import TIMED, order_phases
from harness.analysis.interference import describe_interference
from harness.analysis.printed import values
from harness.analysis.printed_settings import find_settings
from harness.analysis.quantities import growth
from harness.analysis.results import Results
from harness.analysis.rounds import compute_mean, compute_subtracted_share, select_counted
from harness.model.launch import Clock, Launch
from harness.model.scenario import NUMBERS
from harness.report.escape import escape_terminal

# characters at which a spreadsheet reads text as a formula, in normal and in East Asian full width
_FORMULA = tuple("=+-@＝＋－＠")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def render(results: Results) -> str:
    """Return the launches in the order in which they ended. Times are in seconds, and unknown values are empty."""
    run, launches = results.run, results.launches
    axes = list(dict.fromkeys(axis for launch in launches for axis in launch.cell.axes))
    phases = [*order_phases(name for launch in launches for name in launch.phases if name not in TIMED), *TIMED]
    # the names differ, so that CPU time isn't mistaken for wall-clock time
    per_step = "cpu_seconds_per_step" if run.plan.clock is Clock.CPU else "seconds_per_step"
    counted_ids = {id(launch) for launch in select_counted(run.plan, launches)}
    printed = dict(_list_printed(launches))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(
        [
            *("group", "round", "attempt", "order", "role", "counted", "scenario", "environment", "device"),
            *(escape_cell(f"axis:{axis}") for axis in axes),
            *("status", per_step, "taken", "steps", "samples", "disturbed", "started", "launch_seconds"),
            *(escape_cell(f"phase:{name}") for name in phases),
            *("cpu_seconds", "max_rss_bytes", "growth_bytes_per_call", "error"),
            *map(escape_cell, printed),
        ]
    )
    for launch in launches:
        numbers = [by_launch.get(id(launch), "") for by_launch in printed.values()]
        writer.writerow([*_make_row(launch, axes, phases, counts=id(launch) in counted_ids), *numbers])
    return text.getvalue()


def _list_printed(launches: Sequence[Launch]) -> Iterator[tuple[str, dict[int, float]]]:
    """Yield each printed number, or each of its settings, with its value by launch."""
    # an untrusted launch may have written anything
    by_name = [found for entry in launches if isinstance(found := entry.observations.get(NUMBERS), Mapping)]
    for quantity in dict.fromkeys(str(name) for found in by_name for name in found):
        numbers = {id(entry): found for entry in launches if (found := values(quantity, entry))}
        axis, places = find_settings(quantity, [entry for entry in launches if id(entry) in numbers]) or ("", {"": ()})
        for label, at in places.items():
            heading = f"{quantity} ({axis}={label})" if label else quantity
            yield heading, {key: median([found[place] for place in at] or found) for key, found in numbers.items()}


def escape_cell(text: str) -> str:
    """Return the text, with an apostrophe at its start if a spreadsheet would execute it as a formula."""
    line = escape_terminal(text)
    return f"'{line}" if line.startswith(_FORMULA) and not _NUMBER.fullmatch(line) else line


def _make_row(launch: Launch, axes: Iterable[str], phases: Iterable[str], *, counts: bool) -> list[object]:
    cell = launch.cell
    return [
        *(
            escape_cell(launch.group),
            launch.round,
            launch.attempt,
            launch.order,
            launch.role.value,
            "yes" if counts else "no",
        ),
        *(escape_cell(cell.scenario), escape_cell(cell.environment), cell.device.value),
        *(escape_cell(cell.axes.get(axis, "")) for axis in axes),
        *(
            launch.status.value,
            *((compute_mean(launch), compute_subtracted_share(launch)) if launch.steps else ("", "")),
        ),
        *(launch.steps, len(launch.samples)),
        *(escape_cell(describe_interference(launch)), escape_cell(launch.started), launch.seconds or ""),
        *(launch.phases.get(name, "") for name in phases),
        *(launch.resources.get(name, "") for name in ("cpu_seconds", "max_rss_bytes")),
        "" if (bytes_per_call := growth(launch)) is None else bytes_per_call,
        escape_cell(launch.error),
    ]
