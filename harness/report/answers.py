"""The answers as the parts of sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.answers import Answer, Finding
from harness.analysis.verdicts import Verdict
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT
from harness.report import format, names
from harness.report.comparisons import Tally, tally

#: How many sentences the answer has at most.
SENTENCES = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """The parts of one answer: `subject` takes `low` to `high` times as long as `base`, in `where`.

    `subject_has` and `base_has` are what differs beside, their Python versions among it. `numbers` of the `rows` rows
    did the same work on both sides, and only these are in the range; `low_at` and `high_at` name the extreme rows
    where there are several rows, and `interval` is that of a single number. `verdicts` counts all rows, by what
    `subject` is.
    """

    lead: str
    subject: str
    subject_has: Sequence[str]
    base: str
    base_has: Sequence[str]
    pythons: tuple[str, str] | None
    where: str
    rows: int
    numbers: int
    low: str
    low_at: str
    high: str
    high_at: str
    interval: str
    verdicts: Tally


def sentences(run: Run, answered: Sequence[Answer]) -> list[Sentence]:
    """The answers furthest from "as long", as many as are shown, in the tables' order."""
    kept = sorted(range(len(answered)), key=lambda index: -_distance(answered[index]))[:SENTENCES]
    return [_sentence(run, answered[index]) for index in sorted(kept)]


def _distance(answer: Answer) -> float:
    """How far the farther end of the answer's range lies from 1, as a factor."""
    ratios = [finding.ratio.value for finding in _comparable(answer)]
    return max((max(ratio, 1.0 / ratio) for ratio in ratios), default=1.0)


def _comparable(answer: Answer) -> list[Finding]:
    """The findings whose numbers mean something: both sides did the same work, as far as is known."""
    return [finding for finding in answer.findings if finding.verdict is not Verdict.DIFFERENT_WORK]


def _sentence(run: Run, answer: Answer) -> Sentence:
    scenario, along, several = answer.table.scenario, answer.comparison.along, len(answer.findings) > 1
    titles = {known.name: known.title for known in run.environments} if along == ENVIRONMENT else {}
    shared = {**answer.context, **answer.common}
    words = [scenario.name, *(names.label(scenario, axis, value) for axis, value in shared.items())]
    numbers = _comparable(answer)
    low, high = (numbers[0], numbers[-1]) if numbers else (None, None)
    return Sentence(
        lead=answer.comparison.name if answer.comparison.pick else "",
        subject=titles.get(answer.subject) or names.label(scenario, along, answer.subject),
        subject_has=answer.subject_has,
        base=titles.get(answer.base) or names.label(scenario, along, answer.base),
        base_has=answer.base_has,
        # where they differ the answer goes along environments, and is about what stands before "against"
        pythons=answer.findings[0].compared.pythons,
        where=", ".join(words),
        rows=len(answer.findings),
        numbers=len(numbers),
        low=format.times(low.ratio) if low else "",
        low_at=_place(answer, low) if low and several else "",
        high=format.times(high.ratio) if high else "",
        high_at=_place(answer, high) if high and several else "",
        interval=format.between(numbers[0].ratio.interval) if len(numbers) == 1 else "",
        verdicts=tally(finding.verdict for finding in answer.findings),
    )


def _place(answer: Answer, finding: Finding) -> str:
    """The row's values that the answer's rows do not share."""
    axes = [axis for axis in answer.table.row_axes if axis not in answer.common]
    return names.place(answer.table, finding.row, axes)
