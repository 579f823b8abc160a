"""Releases: in which releases the time changed, as a sentence, and as the rows of the first table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.charts.releases import CURVES, ReleasePoint, have_separate_intervals, make_series
from harness.report.comparisons import list_lines
from harness.report.phrases import capitalize

#: The largest number of lines that the sentence describes.
LINES = 3

#: The words for the ratios of a stretch to the baseline.
_WORDS = {Verdict.SLOWER: "slower", Verdict.FASTER: "faster", Verdict.MORE: "more", Verdict.LESS: "less"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Adjacent releases with the same verdict, between which no change is shown."""

    points: Sequence[ReleasePoint]
    verdict: Verdict | None

    @property
    def name(self) -> str:
        """The releases: `tf2.0`, `tf2.16 and tf2.17`, or `tf2.2 to tf2.15`."""
        environments = [point.environment for point in self.points]
        return joined(environments) if len(environments) < 3 else f"{environments[0]} to {environments[-1]}"

    @property
    def ratios(self) -> str:
        """The range of ratios, above 1: `13.6× to 13.9×`."""
        turned = self.verdict in (Verdict.FASTER, Verdict.LESS)
        ratios = [(point.takes.inverse if turned else point.takes).value for point in self.points]
        return " to ".join(dict.fromkeys(map(format.factor, (min(ratios), max(ratios)))))


def find_lines(results: Results) -> Mapping[str, Sequence[ReleasePoint]]:
    """Return the lines over releases of the main comparison, farthest from 1 first; empty for several scenarios.

    The result is also empty if the comparison has too few releases for a line.
    """
    if not results.answers or results.has_several_scenarios or results.machines:
        return {}
    answer = results.answers[0]
    lines = [line for line in list_lines(answer.table) if line.entry == answer.comparison]
    series = make_series(results, answer.table, lines)
    return dict(sorted(series.items(), key=lambda entry: -max(point.takes.distance for point in entry[1])))


def split_line(points: Sequence[ReleasePoint], margin: float) -> list[Stretch]:
    """Return the stretches of a line, in the order of the releases. The baseline isn't in a stretch.

    Changes up to `margin` (log scale) don't end a stretch.
    """
    groups: list[list[ReleasePoint]] = []
    for point in (candidate for candidate in points if candidate.line):
        if groups and _is_same(groups[-1][-1], point, margin):
            groups[-1].append(point)
        else:
            groups.append([point])
    return [Stretch(group, _get_verdict(group[0])) for group in groups]


def _is_same(previous: ReleasePoint, point: ReleasePoint, margin: float) -> bool:
    """Return whether no change is shown from one release to the next."""
    verdict = _get_verdict(point)
    change = abs(math.log(point.takes.value / previous.takes.value))
    is_changed = change > margin and have_separate_intervals(previous.takes, point.takes)
    return verdict == _get_verdict(previous) and not (verdict and is_changed)


def _get_verdict(point: ReleasePoint) -> Verdict | None:
    """Return the verdict if it is a difference."""
    verdict = point.line.compared.verdict if point.line else None
    return verdict if verdict in _WORDS else None


def find_changes(results: Results) -> list[ReleasePoint]:
    """Return the points at which a line changes, in the order of the lines and of the releases."""
    changes = []
    for points in find_lines(results).values():
        previous: Verdict | None = None
        for stretch in split_line(points, results.margin):
            if stretch.verdict or previous:
                changes.append(stretch.points[0])
            previous = stretch.verdict
    return changes


def describe(results: Results) -> str:
    """Return a sentence on the releases in which the time changed; empty without a line over releases."""
    lines = find_lines(results)
    clauses = [
        ": ".join(filter(None, [name if len(lines) > 1 else "", _describe_line(results, points)]))
        for name, points in lines.items()
    ]
    more_count = min(len(clauses), CURVES) - LINES
    more = f" The chart has {counted(more_count, 'more line')}." if more_count > 0 else ""
    return " ".join(f"{capitalize(clause) if len(lines) == 1 else clause}." for clause in clauses[:LINES]) + more


def _describe_line(results: Results, points: Sequence[ReleasePoint]) -> str:
    """Return a clause: `slower than tf1.14 in tf2.0 (2.55×); no clear difference in tf2.1`."""
    stretches, base = split_line(points, results.margin), results.run.reference
    measure = next(names.measure(point.line.table) for point in points if point.line)
    parts: list[str] = []
    for verdict, word in _WORDS.items():
        places = [f"{stretch.name} ({stretch.ratios})" for stretch in stretches if stretch.verdict is verdict]
        noun = f" {measure}" if verdict in (Verdict.MORE, Verdict.LESS) else ""
        if places:
            parts.append(f"{word}{noun}{'' if parts else f' than {base}'} in {joined(places)}")
    same, unclear = f"the same within {format.share(results.run.plan.margin)}", "no clear difference"
    others: dict[str, list[str]] = {same: [], unclear: []}
    for stretch in (stretch for stretch in stretches if not stretch.verdict):
        verdicts = {point.line.compared.verdict for point in stretch.points if point.line}
        others[same if verdicts == {Verdict.SAME} else unclear].append(stretch.name)
    return "; ".join([*parts, *(f"{words} in {joined(places)}" for words, places in others.items() if places)])
