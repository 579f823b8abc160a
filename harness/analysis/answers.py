"""Answers: results of the comparisons in each scenario's header, in a form that sentences can use."""

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
    """The result of one row: the time of the answer's subject divided by the time of its base, and the verdict.

    For memory growth, `ratio` is the difference: the growth of the subject minus the growth of the base. `verdict`
    describes the subject.
    """

    row: Row
    ratio: Estimate
    verdict: Verdict | None
    compared: Compared


@dataclass(frozen=True, slots=True)
class Answer:
    """One comparison, for a sentence such as: `subject` takes 1.2 times as long as `base`.

    In a comparison of environments, subject and base are environments. Otherwise, they are values of the axis
    `comparison.along`. `context` contains the environment and the compared axes that are equal on both sides.
    `subject_has` and `base_has` contain the values of other compared axes in which the sides differ. `findings` are
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
        """The row axes that have the same value in all findings, with this value."""
        first, *others = (finding.row.axes for finding in self.findings)
        return {axis: first[axis] for axis in self.table.row_axes if all(axes[axis] == first[axis] for axes in others)}

    @property
    def is_decided(self) -> bool:
        """Whether at least one row has a clear verdict: faster, slower, more, less or the same."""
        return any(finding.verdict not in (None, Verdict.UNCLEAR, Verdict.DIFFERENT_WORK) for finding in self.findings)

    @property
    def distance(self) -> float:
        """The largest distance of a ratio from 1, on the log scale, among rows that did the same work; or 0."""
        return max(
            (finding.ratio.distance for finding in self.findings if finding.verdict is not Verdict.DIFFERENT_WORK),
            default=0.0,
        )


def answers(table: ScenarioTable) -> list[Answer]:
    """Return an answer for each comparison of the table that has a ratio, by machine, most important first.

    Comparisons with a clear verdict in at least one row come first. Otherwise, the order is the header's order. Among
    the comparisons of one entry, those whose ratios are farthest from 1 come first.
    """
    entries = list(table.scenario.compare)
    unsorted_answers = [
        _make_answer(table, column.comparison, index, column, machine)
        for index, column in enumerate(table.columns)
        for machine in dict.fromkeys(row.machine for row in table.rows if row.values[index].compared)
        if column.comparison
    ]
    return sorted(
        unsorted_answers, key=lambda answer: (not answer.is_decided, entries.index(answer.comparison), -answer.distance)
    )


def describes_cell(entry: Comparison) -> bool:
    """Return whether the subject of an answer is the first cell of the comparison rather than the other cell.

    Along releases, versions and devices, the subject is always the side that isn't the baseline.
    """
    return entry.along in (DEVICE, ENVIRONMENT, SIDE)


def interleave_answers(answered: Sequence[Sequence[Answer]]) -> list[Answer]:
    """Return the answers of several tables by rank: the first answers of all tables, then the second ones.

    Among the answers of the same rank, clear answers come first.
    """
    ranks = ([answer for answer in rank if answer is not None] for rank in zip_longest(*answered))
    return [answer for rank in ranks for answer in sorted(rank, key=lambda candidate: not candidate.is_decided)]


def _make_answer(table: ScenarioTable, entry: Comparison, index: int, column: ScenarioColumn, machine: str) -> Answer:
    assert column.other is not None, "a column with a comparison has two sides"
    is_about_cell = describes_cell(entry)
    findings = []
    for row in (table_row for table_row in table.rows if table_row.machine == machine):
        if compared := row.values[index].compared:
            ratio, verdict = compared.ratio, compared.verdict
            if not is_about_cell:
                ratio, verdict = ratio.inverse, verdict and verdict.turned
            findings.append(Finding(row, ratio, verdict, compared))
    sides = (column.side, column.other) if is_about_cell else (column.other, column.side)
    subject, base = (side.values for side in sides)
    differing_axes = [axis for axis in subject if subject[axis] != base[axis]]
    return Answer(
        table=table,
        comparison=entry,
        subject=subject[entry.along],
        base=base[entry.along],
        context={axis: subject[axis] for axis in (ENVIRONMENT, *table.column_axes) if axis not in differing_axes},
        subject_has=[subject[axis] for axis in differing_axes if axis != entry.along],
        base_has=[base[axis] for axis in differing_axes if axis != entry.along],
        findings=sorted(findings, key=lambda finding: finding.ratio.value),
    )
