"""The answers as the parts of sentences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis.answers import Answer, Finding
from harness.analysis.comparisons import Withheld
from harness.analysis.cover import Box, cover
from harness.analysis.verdicts import Verdict
from harness.model.cell import Cell
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT
from harness.report import format, names

#: How many sentences the answer has at most.
SENTENCES = 3

#: A part's rows are named where so many names are enough, else counted; and so many values of an axis in a name.
NAMES, VALUES = 2, 3

#: What a part is where its rows have no verdict.
NO_VERDICT = "no verdict"

# in the order in which a sentence tells them: what somebody looks for first
_ORDER = (
    *(verdict.value for verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNCLEAR)),
    NO_VERDICT,
    Verdict.DIFFERENT_WORK.value,
)


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one answer that have the same verdict, `kind`: `rows` of them, which `names` names.

    `low` to `high` say how many times as long the subject takes, of `faster` rows how many times as fast it is;
    `most` names the row that is farthest, `interval` is that of a single row. Without names there are too many to
    tell, or they are all rows. `withheld` says why these rows have no verdict, where it is for one reason.
    """

    kind: str
    rows: int
    names: Sequence[str]
    low: str
    high: str
    most: str
    interval: str
    withheld: Withheld | None


@dataclass(frozen=True, slots=True)
class Sentence:
    """The parts of one answer: what `subject` is, set against `base`, in `rows` rows, one part for each verdict.

    `subject_has` and `base_has` are what differs beside, their Python versions among it. `where` is the scenario's name
    and what all rows share, and `lead` what a picked comparison is called; both are empty after a sentence with the
    same. `margin` is a share.
    """

    subject: str
    subject_has: Sequence[str]
    base: str
    base_has: Sequence[str]
    pythons: tuple[str, str] | None
    rows: int
    parts: Sequence[Part]
    where: str
    lead: str
    margin: float


def sentences(run: Run, answered: Sequence[Answer]) -> list[Sentence]:
    """The answers furthest from "as long", as many as are shown, in the tables' order.

    A scenario's second answer comes after the first one of every other scenario: each of them asks something else.
    """
    furthest = sorted(range(len(answered)), key=lambda index: -_distance(answered[index]))
    told_before: Counter[str] = Counter()
    turns: dict[int, int] = {}
    for index in furthest:
        name = answered[index].table.scenario.name
        turns[index] = told_before[name]
        told_before[name] += 1
    kept = sorted(furthest, key=turns.__getitem__)[:SENTENCES]
    told = [_sentence(run, answered[index]) for index in sorted(kept)]
    # one after the other, what they share is told at the first
    places = [""] + [each.where for each in told]
    return [
        replace(each, where="", lead="") if each.where == before else each
        for each, before in zip(told, places, strict=False)
    ]


def _distance(answer: Answer) -> float:
    """How far the farther end of the answer's range lies from 1, as a factor; 1 where no row did the same work."""
    ratios = [each.ratio.value for each in answer.findings if each.verdict is not Verdict.DIFFERENT_WORK]
    return max((max(ratio, 1.0 / ratio) for ratio in ratios), default=1.0)


def _sentence(run: Run, answer: Answer) -> Sentence:
    scenario = answer.table.scenario
    subject, base = _sides(run, answer)
    shared = {**answer.context, **answer.common}
    words = [scenario.name, *(names.label(scenario, axis, value) for axis, value in shared.items())]
    kinds = [each.verdict.value if each.verdict else NO_VERDICT for each in answer.findings]
    return Sentence(
        subject=subject,
        subject_has=answer.subject_has,
        base=base,
        base_has=answer.base_has,
        # where they differ the answer goes along environments, and is about what stands before "against"
        pythons=answer.findings[0].compared.pythons,
        rows=len(answer.findings),
        parts=[
            _part(answer, kind, [each for each, its in zip(answer.findings, kinds, strict=True) if its == kind])
            for kind in _ORDER
            if kind in kinds
        ],
        where=", ".join(words),
        lead=answer.comparison.name if answer.comparison.pick else "",
        margin=run.plan.margin,
    )


def _sides(run: Run, answer: Answer) -> tuple[str, str]:
    """What subject and base are called: environments by their TensorFlow, as far as that tells them apart."""
    scenario, along = answer.table.scenario, answer.comparison.along
    if along != ENVIRONMENT:
        return names.label(scenario, along, answer.subject), names.label(scenario, along, answer.base)
    known = {each.name: each for each in run.environments}
    sides = (answer.subject, answer.base)
    if not all(side in known for side in sides):
        return sides
    for called in (lambda each: f"TensorFlow {each.tensorflow}", lambda each: each.title):
        titles = [called(each) for each in known.values()]
        if all(titles.count(called(known[side])) == 1 for side in sides):
            return called(known[answer.subject]), called(known[answer.base])
    return sides


def _part(answer: Answer, kind: str, findings: Sequence[Finding]) -> Part:
    """One part of the findings, which go from the lowest ratio to the highest."""
    faster = kind == Verdict.FASTER.value
    ratios = [each.ratio.inverse if faster else each.ratio for each in findings]
    low, high = (ratios[-1], ratios[0]) if faster else (ratios[0], ratios[-1])
    apart = format.times(low) != format.times(high)
    reasons = {each.compared.withheld for each in findings}
    return Part(
        kind=kind,
        rows=len(findings),
        names=_names(answer, findings) if len(findings) < len(answer.findings) else [],
        low=format.times(low),
        high=format.times(high),
        most=_place(answer, findings, findings[0] if faster else findings[-1]) if apart else "",
        interval=format.between(ratios[0].interval) if len(findings) == 1 else "",
        withheld=reasons.pop() if len(reasons) == 1 else None,
    )


def _names(answer: Answer, findings: Sequence[Finding]) -> list[str]:
    """Names for some of the answer's rows, empty where these would be too many."""
    boxes, left = cover(_cells(answer, findings), _cells(answer, answer.findings), limit=NAMES)
    if left or any(len(values) > VALUES for box in boxes for values in box.values.values()):
        return []
    return [_name(answer, box) for box in boxes]


def _cells(answer: Answer, findings: Iterable[Finding]) -> list[Cell]:
    """A cell of each finding, in the table's order."""
    found = {id(each.row): each.compared.cell for each in findings}
    return [found[id(row)] for row in answer.table.rows if id(row) in found]


def _name(answer: Answer, box: Box) -> str:
    scenario, values = answer.table.scenario, box.values
    return ", ".join(
        "/".join(names.label(scenario, axis, value) if axis in scenario.axes else value for value in values[axis])
        for axis in _ordered(answer, values)
    )


def _ordered(answer: Answer, values: Mapping[str, object]) -> list[str]:
    """The axes of a box: the device first, then in the table's order."""
    return sorted(values, key=lambda axis: answer.table.row_axes.index(axis) if axis in answer.table.row_axes else -1)


def _place(answer: Answer, findings: Sequence[Finding], finding: Finding) -> str:
    """The row by its values of the axes in which the part's rows differ."""
    rows = [each.row for each in findings]
    axes = [axis for axis in answer.table.row_axes if len({row.axes[axis] for row in rows}) > 1]
    return names.place(answer.table, finding.row, axes)
