"""Rules that search a replay's time series for slowdowns: the rule of harness, and the rules of other tools.

Like a nightly job, a rule gets the values of a series up to each nightly run. It reports slowdowns as pairs: the number
of nightly runs that it had, and the index of the first slower one. harness uses the ratio to the baseline. The other
tools don't have a baseline, so they get the times. They also get the ratios, to separate the rule from its input.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterator, Sequence

from harness.history.states import State, judge_series
from harness.model.history import Series

#: The smallest number of nightly runs that a rule gets: harness needs three on either side of a change.
FIRST = 6

#: The largest distance in nightly runs between a change and a report that counts as its detection.
NEAR = 2

Report = tuple[int, int]
#: A rule on log values, such as log ratios.
Rule = Callable[[Sequence[float]], Iterator[Report]]

_ASV = """
import json, sys
from asv.step_detect import detect_regressions, detect_steps
first, all_values = json.load(sys.stdin)
reports = []
for values in all_values:
    reports.append([])
    for count in range(first, len(values) + 1):
        jumps = detect_regressions(detect_steps(values[:count]), 0.05)[2] or []
        reports[-1] += [(count, after) for _, after, _, _ in jumps]
print(json.dumps(reports))
"""


def harness_reports(series: Series) -> Iterator[Report]:
    """Return the slowdowns that the history suspects."""
    for count in range(FIRST, len(series.points) + 1):
        judgement = judge_series(Series(series.key, series.points[:count]))
        for change, finding in zip(judgement.changes, judgement.findings, strict=True):
            if finding.state is State.SUSPECTED and change.ratio > 1.0:
                yield count, change.index


def otava_rule(p: float, least: float) -> Rule:
    """Return apache-otava's rule, with a significance and a smallest change."""

    def rule(values: Sequence[float]) -> Iterator[Report]:
        from otava.analysis import compute_change_points  # noqa: PLC0415 - slow

        times = [math.exp(value) for value in values]
        for count in range(FIRST, len(times) + 1):
            points, _ = compute_change_points(times[:count], window_len=50, max_pvalue=p, min_magnitude=least)
            yield from ((count, int(point.index)) for point in points if point.stats.mean_2 > point.stats.mean_1)

    return rule


def last_value(values: Sequence[float]) -> Iterator[Report]:
    """Report a value that is more than 10 % above the one before."""
    for index in range(FIRST - 1, len(values)):
        if values[index] - values[index - 1] > math.log(1.10):
            yield index + 1, index


#: The rules of other tools that run in this interpreter.
RULES: dict[str, Rule] = {
    "otava, its defaults": otava_rule(0.001, 0.0),
    "otava, p < 1e-5 and 3 %": otava_rule(1e-5, 0.03),
    "10 % over the last value": last_value,
}
ASV = "asv, 5 %"


def asv_reports(python: str, values: Sequence[Sequence[float]]) -> list[list[Report]]:
    """Return the reports of asv's own code for several series, from an interpreter that has asv."""
    document = json.dumps([FIRST, [[math.exp(value) for value in row] for row in values]])
    process = subprocess.run([python, "-c", _ASV], input=document, check=True, capture_output=True, text=True)
    return [[(count, index) for count, index in report] for report in json.loads(process.stdout)]


def distinct(reports: Sequence[Report]) -> list[Report]:
    """Return the first report of each change."""
    first: list[Report] = []
    for report in reports:
        if all(abs(report[1] - other) > NEAR for _, other in first):
            first.append(report)
    return first


def is_hit(report: Report, at: int) -> bool:
    """Return whether a report detects the change at `at`. A report from before the change is a false alert."""
    count, index = report
    return abs(index - at) <= NEAR and count > at


def delay(reports: Sequence[Report], at: int) -> int | None:
    """Return after how many nightly runs a change at `at` was reported (1: after its own), or None.

    `reports` are all reports of a rule: a `distinct` one may be a false alert near the change, before it.
    """
    return next((report[0] - at for report in reports if is_hit(report, at)), None)
