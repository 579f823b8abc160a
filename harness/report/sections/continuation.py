"""Why a run ended, the rounds that it still needs for clear verdicts, and the command that continues it."""

import shlex
from collections.abc import Iterator, Sequence

from harness.analysis.cell_index import Lookup
from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.comparisons import RoundsNeeded
from harness.analysis.results import Results
from harness.analysis.rounds import budget_seconds, find_granted_share
from harness.analysis.verdicts import POWER
from harness.model.launch import Status
from harness.model.run import Plan, Run, StopReason
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report.blocks import FILES, REPORT, Block, Code, Text
from harness.report.comparisons import TOO_CLOSE, ComparisonLine, is_settled, list_all_lines
from harness.report.format import duration, share
from harness.report.sections import headline, timeline
from harness.report.sections.run_info import suggest_rounds

#: The largest number of unclear comparisons that are named.
NAMES = 2


def make_suggestion(results: Results) -> Iterator[Block]:
    """Yield how many rounds would give unclear comparisons or claims a verdict, with the duration and the command.

    The command continues only the groups of these comparisons, and the duration is theirs.

    The suggested number is likely to be enough for half of the comparisons for which any number is likely to be enough.
    Remarks in the tables have the number for each comparison. If the groups of these comparisons can't be continued,
    for example because they ended at the run's precision, the text suggests a new run.
    """
    needs = _list_rounds_needed(results)
    open_needs = [(lookup, cell, rounds_needed) for lookup, cell, rounds_needed in needs if rounds_needed]
    if not open_needs:
        return
    # a claim has a result in each environment
    noun, claims_text = ("result", " of claims") if results.claims else ("comparison", "")
    verb = "is" if len(open_needs) == 1 else "are"
    text = f"{len(open_needs)} of {counted(len(needs), noun)}{claims_text} {verb} unclear"
    if not results.claims and len(open_needs) < len(needs):
        text += _name_unclear(results, [line for line in list_all_lines(results) if line.compared.settling])
    totals = [
        (lookup, cell, lookup.rounds_of(cell) + needed.rounds)
        for lookup, cell, needed in open_needs
        if needed.is_likely
    ]
    if not totals:
        yield Text(f"{text}: {TOO_CLOSE}.", where=REPORT)
        return
    rounds = _find_rounds(results, needs)
    settled_cells = [
        (lookup, cell)
        for lookup, cell, total in totals
        if rounds is None or (total <= rounds and not lookup.has_ended(cell))
    ]
    count = len(settled_cells)
    which = f"{count} of these" if count < len(open_needs) else "this" if count == 1 else "each of these"
    which = f"{which} {noun}{'' if len(open_needs) == 1 else 's'}"
    if rounds is None:
        yield Text(f"{text}. {_suggest_new_run(results.run.plan, which)}", where=REPORT)
        return
    lookup, cell = settled_cells[0]
    further_rounds, duration_text = rounds - lookup.rounds_of(cell), _format_duration(results, rounds, lookup, cell)
    text = (
        f"{text}. With {rounds} rounds in total ({further_rounds} more{duration_text}), the probability of a verdict "
        f"is at least {share(POWER)} for {which}"
    )
    if results.machines:  # a merged run can't be continued
        yield Text(f"{text}.", where=REPORT)
        return
    yield Text(f"{text}:", where=REPORT)
    yield Code(_make_command(results.run, "--rounds", str(rounds), "--unsettled"), where=REPORT)


def _suggest_new_run(plan: Plan, which: str) -> str:
    of_claims = " with harness matrix --claim ISSUE --precision 2%" if plan.claims else ""
    suggestion = " with a smaller --precision" if plan.precision else of_claims
    return f"--resume adds no rounds for {which}: start a new run{suggestion}."


def _format_duration(results: Results, rounds: int, lookup: Lookup, cell: Cell) -> str:
    """Return how long it takes until the unsettled groups on the cell's machine have this many rounds, as a clause."""
    own_groups = [name for name in results.unsettled_groups if lookup.machines.get(name) == lookup.machine(cell)]
    seconds = lookup.seconds_until(own_groups, rounds)
    return f", about {duration(seconds)}" if seconds else ""


def _name_unclear(results: Results, unclear_lines: Sequence[ComparisonLine]) -> str:
    """Return a clause if no unclear comparison is in the table of the first screen, and the names of a few of them."""
    compared = [finding.compared for answer in headline.find_leading(results) for finding in answer.findings]
    note = "" if any(line.compared in compared for line in unclear_lines) else ", but not in this table"
    has_several_scenarios = len({line.table.scenario.name for line in unclear_lines}) > 1
    line_names = [
        f"{line.table.scenario.name}: {line.name}" if has_several_scenarios else line.name for line in unclear_lines
    ]
    return note + (f" ({'; '.join(line_names)})" if 0 < len(line_names) <= NAMES else "")


def list_early_end(results: Results) -> Iterator[Block]:
    """Yield what ended the run before all planned rounds, with the command that continues it if this is useful."""
    sentence, command = explain_early_end(results), command_to_continue(results)
    if sentence and command and not find_rounds_to_settle(results):  # otherwise, `make_suggestion` yields the command
        yield Text(f"{sentence} To continue the run:", where=FILES)
        yield Code(command, where=FILES)
    elif sentence:
        yield Text(sentence, where=FILES)


def command_to_continue(results: Results) -> str:
    """Return the command that continues a run; empty if all verdicts were clear when the budget ended the run."""
    lines = list_all_lines(results)
    is_ended_by_budget = {stop.reason for stop in results.run.stops.values()} == {StopReason.BUDGET}
    is_complete = not any(missing.status is Status.INTERRUPTED for missing in results.missing)
    if is_ended_by_budget and is_complete and lines and all(is_settled(line.verdict) for line in lines):
        return ""
    return make_resume_command(results.run, find_rounds_to_settle(results))


def find_rounds_to_settle(results: Results) -> int | None:
    """Return the total number of rounds that `make_suggestion` suggests; None if it suggests none."""
    return None if results.machines else _find_rounds(results, _list_rounds_needed(results))


def _find_rounds(results: Results, needs: Sequence[tuple[Lookup, Cell, RoundsNeeded | None]]) -> int | None:
    """Return the number of rounds that `make_suggestion` suggests; None if no number is likely to be enough.

    Groups that can't be continued are omitted. The number isn't below the number of rounds of any other group that the
    command continues, because `--resume` refuses such a number.
    """
    totals = sorted(
        lookup.rounds_of(cell) + rounds_needed.rounds
        for lookup, cell, rounds_needed in needs
        if rounds_needed and rounds_needed.is_likely and not lookup.has_ended(cell)
    )
    counts = [results.found.rounds[name] for name in results.unsettled_groups]
    return max([totals[(len(totals) - 1) // 2], *counts]) if totals else None


def _list_rounds_needed(results: Results) -> list[tuple[Lookup, Cell, RoundsNeeded | None]]:
    """Return the claims or the comparisons, each with the rounds that it needs for a verdict if it is unclear."""
    if results.claims:
        return [
            (
                results.found_of(result.claim.of),
                place.worse,
                place.settling if place.outcome is ClaimOutcome.UNCLEAR else None,
            )
            for result in results.claims
            for place in result.places
            if place.estimate
        ]
    lines = list_all_lines(results)
    return [(results.found_of(line.table.quantity), line.compared.cell, line.compared.settling) for line in lines]


def explain_early_end(results: Results) -> str:
    """Return sentences on why groups ended before all planned rounds: a budget, a precision or an interruption.

    The text is empty if no group ended early. `command_to_continue` returns the command that continues the run.
    """
    run, plan, groups = results.run, results.run.plan, len(results.run.plan.groups)
    budget = budget_seconds(plan, results.launches)
    budget_note = " set by the suite" if plan.budget_is_wish and run.suite else ""
    if plan.budget_seconds and budget != plan.budget_seconds:
        quota = share(find_granted_share(results.launches))
        budget_note = f" ({duration(plan.budget_seconds)}{budget_note}, at a CPU quota of {quota})"
    causes = {
        StopReason.BUDGET: f"The budget of {duration(budget)}{budget_note}" if budget else "",
        StopReason.PRECISION: f"A clear verdict or ±{share(plan.precision)}" if plan.precision else "",
        StopReason.INTERRUPTED: "An interruption",
    }
    sentences = []
    for reason, cause in causes.items():
        rounds = [stop.rounds for stop in run.stops.values() if stop.reason is reason]
        if cause and rounds:
            ended_groups = "the run" if len(rounds) == groups else f"{len(rounds)} of {counted(groups, 'group')}"
            rounds_text = timeline.describe_after(sorted({*rounds}))
            sentences.append(
                f"{cause} ended {ended_groups} {rounds_text} (planned: {timeline.describe_planned(plan)})."
            )
    return " ".join(sentences)


def make_resume_command(run: Run, rounds: int | None = None) -> str:
    """Return the command that continues a run that was ended by a budget or an interruption.

    If `rounds` is given, the continued run has this many rounds in total. The command is empty if there is nothing to
    continue, or if the run was merged.
    """
    reasons = {stop.reason for stop in run.stops.values()}
    if run.merged or not reasons & {StopReason.BUDGET, StopReason.INTERRUPTED}:
        return ""
    if StopReason.INTERRUPTED in reasons:
        return _make_command(run)
    if rounds:
        return _make_command(run, "--rounds", str(rounds), "--unsettled")
    suggested_rounds = suggest_rounds([stop.rounds for stop in run.stops.values()])
    return _make_command(run, "--rounds", str(min(suggested_rounds, run.plan.rounds)))


def _make_command(run: Run, *options: str) -> str:
    return shlex.join(["harness", "matrix", "--resume", run.shown_folder, *options])
