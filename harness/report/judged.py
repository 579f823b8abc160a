"""The verdict on a patch as a small JSON document, for programs: `harness matrix --base REF --json`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from harness.analysis import patches
from harness.analysis.cells import cell_name
from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.analysis.work_equivalence import Work
from harness.model.launch import BROKEN
from harness.model.scenario import STEP
from harness.report.comparisons import ComparisonLine, can_regress, explain_withheld, list_all_lines, sort_by_size
from harness.report.escape import dump_json, escape_terminal
from harness.report.sections import measurement

#: The document has fewer bytes than this. The other limits are for characters of a text and entries of a list.
MOST_BYTES, MOST_CHARACTERS, MOST_ENTRIES = 2000, 150, 5


class PatchVerdict(StrEnum):
    """The verdict on a patch. INVALID: the times can't be compared, because the sides didn't do the same work."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNCLEAR = "unclear"
    INVALID = "invalid"


#: The first of these verdicts that a comparison has is the verdict on the patch.
_ORDER = (PatchVerdict.INVALID, PatchVerdict.SLOWER, PatchVerdict.FASTER, PatchVerdict.UNCLEAR, PatchVerdict.SAME)


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """A comparison: `ratio` is time(head) / time(base), and `interval` its interval, if there is one."""

    what: str
    verdict: PatchVerdict
    ratio: float
    interval: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class JudgedPatch:
    """The verdict on a patch. The deciding comparison has the `ratio` and the `interval`.

    `measurement` is the grade of the measurement, or empty. `comparisons` are the first ones, and `more` is the number
    of others.
    """

    verdict: PatchVerdict
    ratio: float | None
    interval: Sequence[float] | None
    measurement: str
    reasons: Sequence[str]
    comparisons: Sequence[JudgedLine]
    more: int
    run: str


def judge(results: Results) -> JudgedPatch:
    """Return the verdict of a run's comparisons of times along environments or versions.

    A side that failed or did other work makes it invalid. Otherwise, a slower comparison decides, then a faster one, an
    unclear one, and the same. If the measurement is poor, the verdict is unclear.
    """
    broken = [entry for entry in results.missing if entry.status in BROKEN and not entry.partial]
    reasons = [f"{cell_name(entry.cells[0])} {entry.status.value}: {entry.reason}" for entry in broken]
    lines: list[JudgedLine] = []
    comparisons = sort_by_size(line for line in list_all_lines(results) if can_regress(line.entry))
    for line in comparisons:
        # another quantity is more or less, which says neither that a patch is better nor that it is worse
        if not is_time(line.entry.of) and line.compared.verdict is not Verdict.DIFFERENT_WORK:
            continue
        name = line.name if line.entry.of == STEP else f"{line.name}, {line.entry.of}"
        verdict, own_reasons = _judge_line(results, line, name)
        ratio = line.compared.ratio
        ends = [round(ratio.interval.low, 4), round(ratio.interval.high, 4)] if ratio.interval else None
        lines.append(JudgedLine(escape_terminal(name, MOST_CHARACTERS), verdict, round(ratio.value, 4), ends))
        reasons += own_reasons
    deciding = next((line for verdict in _ORDER for line in lines if line.verdict is verdict), None)
    verdict = deciding.verdict if deciding and not broken else PatchVerdict.INVALID
    if not comparisons:
        reasons.append("no comparison has a result of both sides")
    elif not lines:
        verdict = verdict if broken else PatchVerdict.UNCLEAR
        reasons.append("no time was compared")
    elif results.is_poor and verdict is not PatchVerdict.INVALID:
        verdict = PatchVerdict.UNCLEAR
        reasons.insert(0, "the measurement is poor: measure again on an idle machine")
    return JudgedPatch(
        verdict,
        deciding.ratio if deciding else None,
        deciding.interval if deciding else None,
        results.quality.grade.value if results.quality else "",
        [escape_terminal(reason, MOST_CHARACTERS) for reason in dict.fromkeys(reasons)][:MOST_ENTRIES],
        lines[:MOST_ENTRIES],
        max(0, len(lines) - MOST_ENTRIES),
        results.run.shown_folder,
    )


def _judge_line(results: Results, line: ComparisonLine, name: str) -> tuple[PatchVerdict, Sequence[str]]:
    """Return the verdict on a comparison, with the reasons for an invalid or unclear one and what wasn't checked."""
    compared = line.compared
    if compared.verdict is Verdict.DIFFERENT_WORK:
        return PatchVerdict.INVALID, [f"{name}: the results differ: {compared.work.reason}"]
    if doubt := patches.find_cheat(results, compared):
        return PatchVerdict.INVALID, [f"{name}: {doubt}"]
    notes = []
    if compared.work.work is Work.NOT_CHECKED:
        notes.append(f"{name}: the results weren't compared, because the scenario has no bench.fingerprint")
    if compared.verdict is None:
        return PatchVerdict.UNCLEAR, [f"{name}: {explain_withheld([line])}", *notes]
    if compared.verdict is Verdict.UNCLEAR:
        notes.insert(0, f"{name}: {measurement.explain_unclear(results, compared)}")
    return PatchVerdict(compared.verdict.value), notes


def render(judged: JudgedPatch) -> str:
    """Return the document as one line of less than MOST_BYTES bytes. `more` counts left-out comparisons.

    If the document is too long even without comparisons, the last reasons are left out too.
    """
    document = asdict(judged)
    while len((text := dump_json(document, None)).encode()) >= MOST_BYTES and (
        entries := document["comparisons"] or document["reasons"]
    ):
        document["more"] += entries is document["comparisons"]
        entries.pop()
    return text
