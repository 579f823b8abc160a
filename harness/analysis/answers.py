"""Answers: the comparisons that each scenario's header asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from harness.analysis.columns import ScenarioColumn
from harness.analysis.comparisons import Compared
from harness.analysis.statistics import Estimate
from harness.analysis.tables import Row, ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import DEVICE, ENVIRONMENT, SIDE, Comparison


@dataclass(frozen=True, slots=True)
class Finding:
    """The ratio of one row: the time of the answer's subject divided by the time of its base, and the subject.

    For memory growth, it is the difference: the growth of the subject minus the growth of the base.
    """

    row: Row
    ratio: Estimate
    verdict: Verdict | None
    compared: Compared

    @property
    def distance(self) -> float:
        """The distance of the ratio from 1, on the log scale. For a difference, its distance from 0."""
        return self.ratio.distance


@dataclass(frozen=True, slots=True)
class Answer:
    """One column as a sentence: `subject` takes a multiple of the time of `base`.

    For a comparison of environments, these are environments. Otherwise, they are values of the axis `comparison.along`.
    `context` has what both sides have in common: the environment, and the compared axes that are equal on both sides.
    `subject_has` and `base_has` are the values of the other compared axes in which the sides differ. `findings` are
    sorted by ratio, lowest first, and come from one machine.
    """

    table: ScenarioTable
    comparison: Comparison
    subject: str
    base: str
    context: Mapping[str, str]
    subject_has: Sequence[str]
    base_has: Sequence[str]
    findings: Sequence[Finding]

    @property
    def common(self) -> dict[str, str]:
        """The row axes in which all findings agree."""
        first, *rest = (finding.row.axes for finding in self.findings)
        return {axis: first[axis] for axis in self.table.row_axes if all(o[axis] == first[axis] for o in rest)}

    @property
    def is_decided(self) -> bool:
        """Whether some row has a conclusive verdict: faster, slower or the same; more or less."""
        return any(finding.verdict not in (None, Verdict.UNCLEAR, Verdict.DIFFERENT_WORK) for finding in self.findings)

    @property
    def distance(self) -> float:
        """The largest distance of a row's ratio from 1, on the log scale; 0 if no row did the same work."""
        return max(
            (finding.distance for finding in self.findings if finding.verdict is not Verdict.DIFFERENT_WORK),
            default=0.0,
        )


def answers(table: ScenarioTable) -> list[Answer]:
    """Return an answer for each comparison of the table that has a ratio, by machine, most important first.

    Comparisons that are settled in some row come first. The others are in the header's order. Within an entry of the
    header, the results that are farthest from equal come first.
    """
    entries = list(table.scenario.compare)
    unordered = [
        _answer(table, head.comparison, index, head, machine)
        for index, head in enumerate(table.columns)
        for machine in dict.fromkeys(row.machine for row in table.rows if row.values[index].compared)
        if head.comparison
    ]
    return sorted(
        unordered, key=lambda answer: (not answer.is_decided, entries.index(answer.comparison), -answer.distance)
    )


def describes_cell(entry: Comparison) -> bool:
    """Return whether the subject of an answer is the comparison's own cell, and not the other cell.

    A newer release or version, or the other device than the baseline, is the subject, whichever of the two is faster.
    """
    return entry.along in (DEVICE, ENVIRONMENT, SIDE)


def interleave_answers(answered: Sequence[Sequence[Answer]]) -> list[Answer]:
    """Return the answers of several tables by rank: the first answers of all tables, then the second ones.

    Conclusive answers come first.
    """
    turns = ([answer for answer in turn if answer is not None] for turn in zip_longest(*answered))
    return [answer for turn in turns for answer in sorted(turn, key=lambda candidate: not candidate.is_decided)]


def _answer(table: ScenarioTable, entry: Comparison, index: int, head: ScenarioColumn, machine: str) -> Answer:
    assert head.other is not None, "a column with a comparison has two sides"
    is_about_cell = describes_cell(entry)
    findings = []
    for row in (table_row for table_row in table.rows if table_row.machine == machine):
        compared = row.values[index].compared
        if compared and is_about_cell:
            findings.append(Finding(row, compared.ratio, compared.verdict, compared))
        elif compared:
            findings.append(
                Finding(row, compared.ratio.inverse, compared.verdict and compared.verdict.turned, compared)
            )
    sides = (head.side, head.other) if is_about_cell else (head.other, head.side)
    subject, base = (side.values for side in sides)
    differing = [axis for axis in subject if subject[axis] != base[axis]]
    return Answer(
        table=table,
        comparison=entry,
        subject=subject[entry.along],
        base=base[entry.along],
        context={axis: subject[axis] for axis in (ENVIRONMENT, *table.column_axes) if axis not in differing},
        subject_has=[subject[axis] for axis in differing if axis != entry.along],
        base_has=[base[axis] for axis in differing if axis != entry.along],
        findings=sorted(findings, key=lambda finding: finding.ratio.value),
    )
