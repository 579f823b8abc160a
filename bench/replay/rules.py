"""Rules that search a replay's time series for slowdowns: the rule of harness, and the rules of other tools.

Like a nightly job, a rule gets the values of a series up to each nightly run. It reports slowdowns as pairs: the number
of nightly runs that it had, and the index of the first slower one. harness uses the ratio to the baseline. The other
tools don't have a baseline, so they get the times. They also get the ratios, to separate the rule from its input.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from harness.history.states import State, judge_all
from harness.model.defaults import CONFIRMATIONS
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


def harness_reports(series: Series, states: Sequence[State], count: int) -> Iterator[Report]:
    """Return the slowdowns with one of these states in a series of a history with `count` series."""
    for nights in range(FIRST, len(series.points) + 1):
        cut = Series(series.key, series.points[:nights])
        # a share of the budget has the threshold of the whole budget for all series
        (judgement,) = judge_all([cut], confirmations=CONFIRMATIONS / count)
        for change, finding in zip(judgement.changes, judgement.findings, strict=True):
            if finding.state in states and change.ratio > 1.0:
                yield nights, change.index


def otava_rule(p: float, least: float) -> Rule:
    """Return apache-otava's rule, with a significance and a smallest change."""

    def rule(values: Sequence[float]) -> Iterator[Report]:
        from otava.analysis import compute_change_points  # noqa: PLC0415 - slow

        times = [math.exp(value) for value in values]
        for count in range(FIRST, len(times) + 1):
            points, _ = compute_change_points(times[:count], window_len=50, max_pvalue=p, min_magnitude=least)
            yield from ((count, int(point.index)) for point in points if point.stats.mean_2 > point.stats.mean_1)

    return rule


def last_value(share: float) -> Rule:
    """Return the rule that reports a value that is more than a share above the one before, as TorchBench does (7 %)."""

    def rule(values: Sequence[float]) -> Iterator[Report]:
        for index in range(FIRST - 1, len(values)):
            if values[index] - values[index - 1] > math.log1p(share):
                yield index + 1, index

    return rule


def rustc_perf(values: Sequence[float]) -> Iterator[Report]:
    """Report a change that is an outlier among earlier changes: above Q3 + 3 IQR of their sizes, as rustc-perf does."""
    for index in range(FIRST - 1, len(values)):
        sizes = np.abs(np.diff(values[max(0, index - 100) : index]))
        first, third = np.quantile(sizes, [0.25, 0.75])
        if values[index] - values[index - 1] > third + 3.0 * (third - first):
            yield index + 1, index


def pelt(values: Sequence[float]) -> Iterator[Report]:
    """Report the increases among the best segments of constant level, with a penalty of 3 log n variances per segment.

    The variance is estimated from differences, which steps hardly affect. Source: R. Killick et al.,
    "Optimal detection of changepoints with a linear computational cost", JASA 107, 2012. Here, all segments are tried.
    """
    for count in range(FIRST, len(values) + 1):
        y = np.asarray(values[:count])
        penalty = 3.0 * math.log(count) * float(np.median(np.diff(y) ** 2)) / (2.0 * 0.455)
        best, starts = [0.0], [0]
        for end in range(1, count + 1):
            losses = [best[start] + float(((y[start:end] - y[start:end].mean()) ** 2).sum()) for start in range(end)]
            starts.append(int(np.argmin(losses)))
            best.append(losses[starts[-1]] + penalty)
        places, end = [], count
        while end := starts[end]:
            places.append(end)
        edges = [0, *places[::-1], count]
        for before, at, after in zip(edges, edges[1:], edges[2:], strict=False):
            if y[at:after].mean() > y[before:at].mean():
                yield count, at


#: The rules of other tools that run in this interpreter.
RULES: dict[str, Rule] = {
    "otava, its defaults": otava_rule(0.001, 0.0),
    "otava, p < 1e-5 and 3 %": otava_rule(1e-5, 0.03),
    "10 % over the last value": last_value(0.10),
    "7 % over the last value (TorchBench)": last_value(0.07),
    "rustc-perf": rustc_perf,
    "PELT": pelt,
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
