"""The claims of upstream issues, and whether they hold here."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.claims import ClaimPlace, ClaimResult
from harness.analysis.results import Results
from harness.analysis.statistics import Difference
from harness.analysis.verdicts import Verdict
from harness.model.defaults import LEVEL
from harness.model.scenario import STEP, Cell, Claim
from harness.model.texts import counted, format_exact
from harness.report import format, names
from harness.report.blocks import (
    EVERYWHERE,
    FILES,
    REPORT,
    Block,
    Bold,
    Code,
    Column,
    Entry,
    Items,
    Link,
    Section,
    Text,
    Where,
    Words,
    tabulate,
)
from harness.report.comparisons import describe_deciding, describe_rounds_needed
from harness.report.phrases import capitalize, describe_longer, describe_pythons
from harness.report.sections.remarks import make_remark

#: The largest number of claims on the first screen, and of other environments per claim there. The table contains all.
SENTENCES, OTHERS = 5, 3

#: The largest number of rows in a terminal.
ROWS = 30

#: The outcomes in words, in the order in which they are counted.
WORDS = {
    ClaimOutcome.CONFIRMED: "confirmed",
    ClaimOutcome.LARGER: "confirmed, but larger",
    ClaimOutcome.SMALLER: "confirmed, but smaller",
    ClaimOutcome.NOT_SEEN: "not seen here",
    ClaimOutcome.OPPOSITE: "the opposite",
    ClaimOutcome.FIXED_BEFORE: "fixed before the oldest release",
    ClaimOutcome.UNCLEAR: "unclear",
    ClaimOutcome.DIFFERENT_WORK: "different work",
    ClaimOutcome.CANNOT_RUN: "cannot run here",
    ClaimOutcome.NOT_MEASURED: "not measured",
}


@dataclass(frozen=True, slots=True)
class _ClaimLine:
    """A claim in one environment (or pair of environments), which is a line of the table."""

    result: ClaimResult
    place: ClaimPlace


def make_head(results: Results) -> Iterator[Block]:
    """Yield the number of claims by outcome, and a sentence for each of the first claims."""
    claims = results.claims
    if len(claims) > 1:
        yield Text(count_outcomes(claims), where=EVERYWHERE)
    if claims:
        yield Items([describe_claim(results, result) for result in claims[:SENTENCES]], where=EVERYWHERE)
    if commands := list_bisect_commands(results)[:SENTENCES]:
        yield Text(f"To find the {'releases' if len(commands) > 1 else 'release'} with the fix:", where=REPORT)
        yield Code("\n".join(commands), where=REPORT)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the other claims, and a table of all claims in every environment."""
    claims = results.claims
    if not claims:
        return
    more_sentences = [describe_claim(results, result) for result in claims[SENTENCES:]]
    lines = [_ClaimLine(result, place) for result in claims for place in result.places]
    has_more = bool(more_sentences) or any(len(result.elsewhere) > OTHERS for result in claims)
    table = tabulate(
        "Claims of upstream issues and the measured values",
        _list_columns(results),
        lines,
        cell=lambda line: line.place.worse,
        where=FILES | Where.DETAILS if has_more else FILES,
        noun="result",
        is_searchable=True,
    )
    # in a terminal, the table doesn't repeat claims that the sentences describe completely
    short_table = _make_short_table(results, lines) if has_more else []
    yield Section(
        "Claims of upstream issues",
        "claims",
        [*([Items(more_sentences, where=FILES)] if more_sentences else []), table, *short_table],
    )


def _make_short_table(results: Results, lines: Sequence[_ClaimLine]) -> Iterator[Block]:
    """Yield the table for a terminal. If it has too many rows, each claim has only the row of its own environments."""
    own_lines = [line for line in lines if line.place is line.result.at]
    shown_lines = lines if len(lines) <= ROWS else own_lines[:ROWS]
    yield tabulate(
        "Claims of upstream issues", _list_columns(results), shown_lines, where=Where.TERMINAL, noun="result"
    )
    if len(shown_lines) < len(lines):
        text = f"{counted(len(lines) - len(shown_lines), 'more result', 'is')} in details.md and in report.html."
        yield Text(text, where=Where.TERMINAL)


def _list_columns(results: Results) -> list[Column[_ClaimLine]]:
    return [
        Column("issue", lambda line: line.result.claim.issue.short, is_label=True),
        Column("claim", lambda line: line.result.claim.reported, where=~Where.TERMINAL),
        Column("machine", lambda line: line.result.machine, is_optional=True, is_label=True),
        Column("where", lambda line: _name_place(line.place)),
        Column(
            "claimed",
            lambda line: format_claimed(line.result.claim),
            is_number=True,
            legend=_CLAIMED,
            where=~Where.TERMINAL,
        ),
        Column("measured", lambda line: Entry(format_measured(line.place), cells=line.place.cells), is_number=True),
        Column("outcome", lambda line: WORDS[line.place.outcome], is_verdict=True, legend=_OUTCOME),
        Column("remarks", lambda line: _make_remarks(results, line), is_optional=True),
    ]


_CLAIMED = "Claimed and measured: the ratio of the worse side to the other side, or the amount of the worse side."
_OUTCOME = (
    "Smaller: the whole interval is below the claimed value. Larger: the whole interval is above it. Not seen: the "
    "interval shows that the difference is within the margin, or far below the claimed value."
)


#: The explanation of the intervals and outcomes of claims.
EXPLANATION = (
    f"All intervals of a scenario's claims about one quantity together have {format.level(LEVEL)} confidence. "
    f"{_CLAIMED} {_OUTCOME}"
)


def count_outcomes(claims: Sequence[ClaimResult]) -> str:
    """Return a sentence that counts the claims by outcome.

    For example, `Of 3 claims of upstream issues: 2 confirmed, 1 not seen here.`
    """
    outcomes = Counter(result.at.outcome for result in claims)
    listing = ", ".join(f"{outcomes[outcome]} {words}" for outcome, words in WORDS.items() if outcomes[outcome])
    fixed_count = sum(result.fixed is not None for result in claims)
    fixed_note = f"; {fixed_count} of them not seen in a later release" if fixed_count else ""
    return f"Of {counted(len(claims), 'claim')} of upstream issues: {listing}{fixed_note}."


def describe_claim(results: Results, result: ClaimResult) -> Words:
    """Describe one claim: its outcome in the claimed environment, and in others. The issue is a link."""
    claim = result.claim
    outcome, details = describe_outcome(results, result)
    statement = f" reports: {claim.reported.rstrip('.')}. "
    verdict = capitalize(outcome) if results.is_poor else Bold(capitalize(outcome))
    return [Link(claim.issue.short, claim.issue.url), statement, verdict, details]


def list_bisect_commands(results: Results) -> list[str]:
    """Return a command that finds the release with the fix, for each issue with a claim that was fixed."""
    exact_names = {environment.name: environment.exact for environment in results.run.environments}
    commands = []
    for result in results.claims:
        if result.fixed and result.last_seen:
            issue = result.claim.issue
            cells = {
                (entry.scenario.name, entry.at.worse.anywhere) for entry in results.claims if entry.claim.issue == issue
            }
            axes = [word for axis, value in result.at.worse.anywhere.axes.items() for word in ("-a", f"{axis}={value}")]
            cell = ["-s", result.scenario.name, *axes] if len(cells) > 1 else []
            ends = ["--bad", exact_names[result.last_seen.environment], "--good", exact_names[result.fixed.environment]]
            commands.append(shlex.join(["harness", "bisect", issue.short, *cell, "--find-fix", *ends]))
    return list(dict.fromkeys(commands))


def format_claim(results: Results, result: ClaimResult) -> str:
    """Return the sentence of `describe_claim` as plain text, without a link."""
    return "".join(part if isinstance(part, str) else part.text for part in describe_claim(results, result))


def describe_outcome(results: Results, result: ClaimResult) -> tuple[str, str]:
    """Return the outcome of a claim, and a text with the claimed and measured values and the other environments."""
    claimed_place, claim = result.at, result.claim
    finding = _describe_place(results, result, claimed_place) if claimed_place.estimate else claimed_place.why
    parts = [f": {finding}." if finding else "."]
    if result.fixed:
        parts.append(
            f"Not seen in {_name_place(result.fixed)}, {format_measured(result.fixed)}; {result.fixed_between}."
        )
    if claim.fixed:
        parts.append(f"Reported as fixed in {claim.fixed}.")
    elsewhere = [place for place in result.elsewhere if place is not result.fixed]
    parts += [f"In {_name_place(place)}: {_describe_elsewhere(place)}." for place in elsewhere[:OTHERS]]
    if len(elsewhere) > OTHERS:
        parts.append(f"{counted(len(elsewhere) - OTHERS, 'more environment', 'is')} in the table.")
    return WORDS[claimed_place.outcome], " ".join(parts)


def _describe_place(results: Results, result: ClaimResult, place: ClaimPlace) -> str:
    """Describe a result: `in tf2.2, predict takes 12.3× (11.9 to 12.8) as long as model (rows one); claimed: …`."""
    claim, scenario, better = result.claim, result.scenario, place.better
    has_two_environments = better is not None and better.environment != place.environment

    def name_side(cell: Cell) -> str:
        axes = [axis for axis in claim.worse.axes if better is None or place.worse.axes[axis] != better.axes[axis]]
        labels = names.list_labels(scenario, {axis: cell.axes[axis] for axis in axes})
        return " ".join([*([cell.environment] if has_two_environments else []), *labels])

    decision = describe_deciding(place.compared.deciding) if place.compared else ""
    worse, amount = name_side(place.worse), _format_amount(place, decision)
    if better is None:
        subject = {STEP: "a step"}.get(claim.of, claim.of) if claim.seconds else "each call"
        statement = f"{subject}{f' of {worse}' if worse else ''} {'takes' if claim.seconds else 'keeps'} {amount}"
    elif claim.of == STEP:
        statement = f"{worse} takes {amount} {describe_longer(results.run.plan.clock)} as {name_side(better)}"
    else:
        statement = f"{claim.of} of {worse} is {amount} the value of {name_side(better)}"
    condition = ", ".join(names.list_labels(scenario, claim.when))
    machine = f"on {result.machine}, " if result.machine else ""
    environment = "" if has_two_environments else f"in {place.environment}, "
    finding = f"{machine}{environment}{statement}{f' ({condition})' if condition else ''}"
    origin = f" ({claim.origin})" if claim.origin else ""
    reason = _explain_unclear(results, place, claim) if place.outcome is ClaimOutcome.UNCLEAR else place.why
    versions = describe_pythons(place.compared.pythons) if place.compared else ""
    return "; ".join(filter(None, [finding, versions, f"claimed: {format_claimed(claim)}{origin}", reason]))


def _describe_elsewhere(place: ClaimPlace) -> str:
    outcome = WORDS[place.outcome].removesuffix(" here")
    detail = format_measured(place) if place.estimate else place.why
    return f"{outcome}, {detail}" if detail else outcome


def _explain_unclear(results: Results, place: ClaimPlace, claim: Claim) -> str:
    """Explain why a claim has no clear outcome, and how many rounds would give one."""
    smallest = format_exact(claim.range[0])
    bound = (
        f"at most {_format_value(place.at_most, place)}, below the claimed {smallest}"
        if place.at_most is not None
        else ""
    )
    reason = place.why or describe_rounds_needed(results.found_of(claim.of), place.worse, place.settling)
    return "; ".join(filter(None, [bound, reason]))


def _make_remarks(results: Results, line: _ClaimLine) -> str:
    place, claim = line.place, line.result.claim
    parts = [place.why if place.outcome is not ClaimOutcome.UNCLEAR else _explain_unclear(results, place, claim)]
    compared = place.compared
    if compared and compared.verdict not in (Verdict.UNCLEAR, Verdict.DIFFERENT_WORK) and not place.why:
        parts.append(make_remark(results, compared, of=claim.of))
    elif compared:
        parts.append(describe_pythons(compared.pythons))
    parts.append(line.result.fixed_between if place is line.result.fixed else "")
    return "; ".join(filter(None, parts))


def format_claimed(claim: Claim) -> str:
    """Return the claimed range: `50 to 300×`, `5 to 20 s`, `1,000 to 20,000 B per call`."""
    low, high = map(format_exact, claim.range)
    return f"{low} to {high}{'×' if claim.ratio else ' s' if claim.seconds else ' B per call'}"


def format_measured(place: ClaimPlace) -> str:
    """Return the measured value with its interval: `12.3× (11.9 to 12.8)`; empty if there is no value."""
    return "" if place.outcome is ClaimOutcome.DIFFERENT_WORK else _format_amount(place)


def _format_amount(place: ClaimPlace, decision: str = "") -> str:
    """Return the measured value with its interval and the remark `decision`; empty if there is no value."""
    if place.estimate is None:
        return ""
    interval_text = "; ".join(filter(None, [format.bounds(place.estimate), decision]))
    return f"{_format_value(place.estimate.value, place)}{f' ({interval_text})' if interval_text else ''}"


def _format_value(value: float, place: ClaimPlace) -> str:
    if place.better:
        return format.factor(value)
    return f"{format.number(value)} {'B' if isinstance(place.estimate, Difference) else 's'}"


def _name_place(place: ClaimPlace) -> str:
    """Return the environment of a result, or both environments if it compares two."""
    other = place.better.environment if place.better else place.environment
    return place.environment if other == place.environment else f"{place.environment} vs {other}"
