"""A table's comparisons as lines, and how many of each verdict there are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.comparisons import Compared, Withheld
from harness.analysis.moderation import FEWEST
from harness.analysis.tables import Row, Table
from harness.analysis.verdicts import Verdict
from harness.report import format, grid, names

#: The heading over what is remarked of a line; the remarks are the templates' sentences.
REMARKS = "remarks"

# as they are counted: what somebody looks for first
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNCLEAR, Verdict.DIFFERENT_WORK)


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each verdict occurs, those that do; `none` have none."""

    verdicts: Sequence[tuple[str, int]]
    none: int

    @property
    def total(self) -> int:
        """How many comparisons were counted."""
        return sum(count for _, count in self.verdicts) + self.none


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison: its row's labels, what stands against what, and the percentage.

    `gain` is empty where the two did different work: then it means nothing.
    """

    labels: Sequence[str]
    what: str
    gain: str
    compared: Compared

    @property
    def cells(self) -> list[str]:
        """The line's cells, but for the remarks, which are sentences."""
        return [*self.labels, self.what, self.gain, self.compared.verdict or ""]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All comparisons of one table, row by row.

    `labels` are the headings of what tells the rows apart. `judged` of them got their verdicts together, or had them
    withheld by the control; `moderated`: their variances lent one another degrees of freedom. `too_few_rounds`: that is
    why none of those that did the same work has a verdict, said once and not in every line.
    """

    labels: Sequence[str]
    lines: Sequence[Line]
    tally: Tally
    judged: int
    moderated: bool
    too_few_rounds: bool = False

    @property
    def headings(self) -> list[str]:
        """Over the lines' cells."""
        return [*self.labels, "comparison", "difference", "verdict"]


def tally(verdicts: Iterable[Verdict | None]) -> Tally:
    """Count verdicts."""
    counts = Counter(verdicts)
    return Tally([(verdict.value, counts[verdict]) for verdict in _ORDER if counts[verdict]], counts[None])


def too_few_rounds(found: Iterable[Compared]) -> bool:
    """Whether no comparison has a verdict for lack of rounds, those of different work left aside."""
    withheld = {each.withheld for each in found if each.verdict is not Verdict.DIFFERENT_WORK}
    return withheld == {Withheld.FEW_ROUNDS}


def comparisons(table: Table) -> Comparisons | None:
    """The table's comparisons, in the order of its rows and of its columns; None where it has none."""
    axes, rounds = names.varying(table), table.rounds
    whats = {index: names.what(table, head) for index, head in enumerate(table.columns) if head.other}
    lines = [line for row in table.rows for line in _lines(grid.labels(table, row, axes), row, whats, rounds)]
    if not lines:
        return None
    judged = sum(line.compared.judged for line in lines)
    return Comparisons(
        labels=[*(["device"] if table.several_devices else []), *axes],
        lines=lines,
        tally=tally(line.compared.verdict for line in lines),
        judged=judged,
        moderated=judged >= FEWEST,
        too_few_rounds=too_few_rounds(line.compared for line in lines),
    )


def _lines(labels: Sequence[str], row: Row, whats: Mapping[int, str], rounds: int) -> list[Line]:
    found = ((what, row.values[index].compared) for index, what in whats.items())
    return [Line(labels, what, _gain(each, rounds), each) for what, each in found if each]


def _gain(compared: Compared, rounds: int) -> str:
    if compared.verdict is Verdict.DIFFERENT_WORK:
        return ""
    return " ".join(filter(None, [format.gain(compared.estimate), format.fewer(compared.estimate, rounds)]))
