"""How to read a report: the meaning of its numbers, said once at its end.

report.md has only a line. The explanations are in details.md and on the page.
"""

from collections.abc import Iterator, Sequence

from harness.analysis.quantities import PIECE
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.defaults import ALPHA, FEWEST_ROUNDS, LEVEL
from harness.model.scenario import GROWTH, PERCENTILES
from harness.model.texts import joined
from harness.report import format
from harness.report.blocks import Items, Section, Text, Where
from harness.report.comparisons import HOLM, ComparisonLine, list_all_lines
from harness.report.format import marks
from harness.report.sections import claims, untimed
from harness.report.sections.remarks import NOT_CHECKED, describe_work
from harness.report.sections.timeline import format_round_range
from harness.report.sections.times import MARKS

#: The explanation of verdicts with few rounds.
ALIKE = "With fewer than {} rounds, intervals assume that launches vary equally, and verdicts need a ratio beyond 1.5×."

_MODERATED = "The variance of a ratio is adjusted towards the variance of its group (Smyth 2004)."

_ROUNDS = (
    "Each round runs every cell once, in a fresh process and in random order. Times have "
    f"{format.level(LEVEL)} intervals over the rounds, which include variation that cancels out in ratios."
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section for readers of report.md, and the section with all explanations."""
    lines = list_all_lines(results)
    sentences = list(_list_sentences(results, lines))
    if sentences:
        looks = list(_describe_looks(results, lines))
        texts = [Text(text, where=Where.PASTE) for text in (_summarize(results, lines), *looks)]
        yield Section("How to read this", "reading", texts)
        yield Section("Explanations", "explanations", [Items([*sentences, *looks])])


def _summarize(results: Results, lines: Sequence[ComparisonLine]) -> str:
    """Return what somebody must know who sees only report.md."""
    level = format.level(LEVEL)
    if not lines:
        return f"Intervals have {level} confidence."
    is_within = any(line.compared.verdict in (Verdict.SAME, Verdict.UNCLEAR) for line in lines)
    margin = f" “Same”: within {format.share(results.run.plan.margin)}." if is_within else ""
    return f"Intervals of a table together: {level} confidence.{margin}"


def _list_sentences(results: Results, lines: Sequence[ComparisonLine]) -> Iterator[str]:
    level = format.level(LEVEL)
    if results.tables:
        yield _ROUNDS
    if results.claims:
        yield claims.EXPLANATION
    if not lines:
        return
    margin = format.share(results.run.plan.margin)
    quantities = {line.table.quantity for line in lines}
    yield (
        "A ratio is the first value divided by the second. In a plot, ● is the ratio, ─ its interval, and │ is 1. All "
        f"intervals of ratios in one table together have at least {level} confidence, and so do its verdicts."
    )
    yield (
        f"A verdict describes the first side. Differences below {margin} are “same”, or “unclear” if the interval "
        "allows more."
    )
    if GROWTH in quantities:
        yield (
            "Memory growth has differences instead of ratios: the bytes per call that the first cell keeps, minus the "
            f"bytes that the second cell keeps. The margin is {format.bytes_(PIECE)} over the later half of the calls."
        )
    if shares := [f"{name} ({format.share(PERCENTILES[name])})" for name in PERCENTILES if name in quantities]:
        yield (
            f"{joined(shares)}: this share of the single steps of a launch took at most this long. Each launch has one "
            "value. CPU contention isn't subtracted."
        )
    yield from _explain_intervals(results, lines)
    seen = {mark for table in results.all_tables for *_, value in table.times() for mark in marks(value, table.clock)}
    yield from (f"{mark} {name}: {explanation}" for mark, (name, explanation) in MARKS.items() if mark in seen)
    if any(untimed.make_remark(results, line.compared) for line in lines):
        yield untimed.LEGEND
    if any(describe_work(results, line.compared) == NOT_CHECKED for line in lines):
        yield "Work not checked: the launches recorded nothing that shows whether both cells did the same work."


def _explain_intervals(results: Results, lines: Sequence[ComparisonLine]) -> Iterator[str]:
    with_interval = [line for line in lines if line.compared.ratio.interval]
    if any(line.compared.ratio.rounds < FEWEST_ROUNDS for line in with_interval):
        yield ALIKE.format(FEWEST_ROUNDS)
    # Holm's procedure judges the comparisons of a table together
    if len(with_interval) > len({id(line.table) for line in with_interval}):
        yield f"{HOLM} {_MODERATED}"


def _describe_looks(results: Results, compared: Sequence[ComparisonLine]) -> Iterator[str]:
    """Yield explanations if verdicts were computed more than once during the run, because this changes their level."""
    run, looks = results.run, [results.found.look(line.compared.cell) for line in compared]
    previous = [f"after {format_round_range(sorted(set(look.values())))}" for look in run.looks]
    shares = sorted({look.share for look in looks})
    reduced = [format.share(ALPHA * share) for share in shares if share < 1.0]
    if previous and reduced:
        levels = " to ".join(dict.fromkeys((reduced[0], format.share(ALPHA * shares[-1]))))
        yield (
            f"This run was reported {joined(previous)}, and then continued. Its verdicts now use a level of {levels} "
            f"instead of {format.share(ALPHA)}, so that all of its reports together have a wrong verdict in at most "
            f"{format.share(ALPHA)} of runs."
        )
    elif reduced:
        levels = " to ".join(dict.fromkeys((reduced[0], reduced[-1])))
        yield (
            "A group ended when the outcomes of its claims were clear. After the first check of a group, its verdicts "
            f"use a level of {levels} instead of {format.share(ALPHA)}, so that all checks together show a wrong "
            f"outcome in at most {format.share(ALPHA)} of runs."
        )
    if run.plan.precision and any(look.settled for look in looks):
        yield (
            f"A group ended when the interval of each comparison was within ±{format.share(run.plan.precision)} or its "
            "verdict was clear. If a verdict became clear with a wider interval, this interval has the level at which "
            "the verdict became clear."
        )
