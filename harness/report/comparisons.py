"""The comparisons of a table as named lines, and the counts of verdicts."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.answers import Finding
from harness.analysis.cell_index import Lookup
from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.comparisons import Compared, RoundsNeeded
from harness.analysis.results import Results
from harness.analysis.tables import Row, ScenarioTable
from harness.analysis.verdicts import Deciding, Verdict, Withheld, describe_too_few
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.scenario import BEFORE_AND_AFTER, ENVIRONMENT, GROWTH, SIDE, STEP, Cell, Comparison
from harness.report import format, names

#: Shown instead of a verdict.
NO_VERDICT = "no verdict"

#: Shown if even ten times as many rounds would probably not give a verdict.
TOO_CLOSE = "too close to the margin to settle"

#: The sentences about the intervals that decide verdicts, if several verdicts are judged together.
HOLM = (
    "Verdicts use Holm's procedure, whose intervals are narrower than those shown. If this decides a verdict, a remark "
    "shows the interval."
)

_INCONCLUSIVE = (
    *(NO_VERDICT, Verdict.UNCLEAR, Verdict.DIFFERENT_WORK),
    *(ClaimOutcome.UNCLEAR, ClaimOutcome.DIFFERENT_WORK, ClaimOutcome.CANNOT_RUN, ClaimOutcome.NOT_MEASURED),
)

# the order of the counts: differences first
_ORDER = (
    *(Verdict.SLOWER, Verdict.FASTER, Verdict.MORE, Verdict.LESS, Verdict.SAME),
    *(Verdict.UNCLEAR, Verdict.DIFFERENT_WORK, None),
)


@dataclass(frozen=True, slots=True)
class ComparisonLine:
    """One comparison of a table: its entry in the header, its row, and its name."""

    entry: Comparison
    table: ScenarioTable
    row: Row
    what: str
    compared: Compared

    @property
    def place(self) -> str:
        """The values that distinguish the row, such as `model small, fit`; empty in a table of one row."""
        return names.place(self.table, self.row, names.find_varying_axes(self.table))

    @property
    def name(self) -> str:
        """The row and the compared sides, such as `fit: graph vs eager, tf1.14`."""
        return f"{self.place}: {self.what}" if self.place else self.what

    @property
    def verdict(self) -> str:
        """The verdict, or NO_VERDICT."""
        return self.compared.verdict or NO_VERDICT


def list_lines(table: ScenarioTable) -> list[ComparisonLine]:
    """Return the table's comparisons, in the order of its rows and of its columns."""
    return [
        ComparisonLine(column.comparison, table, row, names.name_comparison(table, column), value.compared)
        for row in table.rows
        for column, value in table.values(row)
        if column.comparison and value.compared
    ]


def list_all_lines(results: Results) -> list[ComparisonLine]:
    """Return the comparisons of all tables of a run."""
    return [line for table in results.all_tables for line in list_lines(table)]


def can_regress(comparison: Comparison) -> bool:
    """Return whether a comparison is along environments or versions, so that a slower side is a regression."""
    versions = (comparison.against, comparison.plus) == BEFORE_AND_AFTER
    return comparison.along == ENVIRONMENT or (comparison.along == SIDE and versions)


def sort_by_size(lines: Iterable[ComparisonLine]) -> list[ComparisonLine]:
    """Sort comparisons: clear verdicts first, different work last, and otherwise by the ratio's distance from 1."""
    return sorted(
        lines,
        key=lambda line: (
            line.compared.verdict is Verdict.DIFFERENT_WORK,
            not is_settled(line.verdict),
            -line.compared.ratio.distance,
        ),
    )


def is_settled(verdict: str) -> bool:
    """Return whether a verdict, or the outcome of a claim, is conclusive."""
    return verdict not in _INCONCLUSIVE


def count_verdicts(verdicts: Iterable[Verdict | None]) -> str:
    """Return the count of each verdict: `3 slower, 2 unclear, 1 with no verdict`."""
    counts = Counter(verdicts)
    phrases = {None: "with no verdict", Verdict.DIFFERENT_WORK: "not comparable (different work)"}
    return ", ".join(f"{counts[verdict]} {phrases.get(verdict, verdict)}" for verdict in _ORDER if counts[verdict])


def explain_withheld(findings: Sequence[Finding | ComparisonLine], rows_text: str = "") -> str:
    """Return the reason for missing verdicts, as a clause. `rows_text` names the rows: `with fit and with predict`."""
    withheld = {finding.compared.withheld for finding in findings}
    start = f"no verdict {rows_text}".rstrip()
    if withheld == {Withheld.CONTROL}:
        return f"{start}, because two identical cells differed by more than the margin"
    if withheld == {Withheld.TREND}:
        return (
            f"{start}, because the time per step depends on the number of earlier steps, and too few steps can be "
            "compared"
        )
    if withheld == {Withheld.CONTENTION}:
        widest = format.rough_share(math.expm1(max(finding.compared.contention for finding in findings)))
        return f"{start}, because the correction for CPU contention may be off by {widest}"
    rounds = max(finding.compared.ratio.rounds for finding in findings)
    return f"{describe_too_few(rounds)} {rows_text}".rstrip() if rounds < FEWEST_ROUNDS else start


def describe_deciding(deciding: Deciding | None, *, of: str = STEP) -> str:
    """Return a remark with the interval that decides a verdict; empty if the shown interval has the same verdict."""
    if deciding is None:
        return ""
    interval = format.format_interval(deciding.interval) + (" B per call" if of == GROWTH else "")
    return f"decided by its {format.level(deciding.level)} interval: {interval}"


def describe_rounds_needed(lookup: Lookup, cell: Cell, rounds_needed: RoundsNeeded | None) -> str:
    """Return how many rounds in total would give an unclear comparison a verdict, or that it is TOO_CLOSE."""
    if rounds_needed is None:
        return ""
    if rounds_needed.is_likely:
        return f"{lookup.rounds_of(cell) + rounds_needed.rounds} rounds in total would probably give a verdict"
    return TOO_CLOSE
