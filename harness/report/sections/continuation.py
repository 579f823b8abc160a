"""Why a run ended, the rounds that it still needs for clear verdicts, and the commands that continue or repeat it."""

import shlex
from collections.abc import Collection, Iterator, Sequence

from harness.analysis.cell_index import Lookup
from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.comparisons import RoundsNeeded
from harness.analysis.results import Results
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Status
from harness.model.run import Plan, Run, StopReason
from harness.model.scenario import Cell
from harness.model.texts import counted, joined
from harness.report.blocks import FILES, REPORT, Block, Code, Section, Text
from harness.report.comparisons import is_settled, list_all_lines
from harness.report.format import duration
from harness.report.phrases import capitalize
from harness.report.sections import timeline


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the last section of a report: how to reproduce the run, with harness or without it."""
    yield Section("Reproduce", "reproduce", list(_list_commands(results)))


def _list_commands(results: Results) -> Iterator[Block]:
    run = results.run
    script_names = [scenario.path.name for scenario in run.scenarios if scenario.name in run.scripts]
    if script_names:
        verb, pronoun = ("isn't", "it") if len(script_names) == 1 else ("aren't", "them")
        yield Text(
            f"{joined(script_names)} {verb} part of the project. First, save {pronoun} from “How it was measured” to "
            "the path in the command.",
            where=FILES,
        )
    commands = [
        repeat_run(run),
        "# the same report again, from the stored launches",
        shlex.join(["harness", "report", run.shown_folder]),
    ]
    if results.found.series:
        commands += [
            "# a script that makes the main comparison without harness; for others, add -s, -e or -a",
            shlex.join(["harness", "bundle", run.shown_folder]),
        ]
    yield Code("\n".join(commands), where=FILES)


def repeat_run(run: Run) -> str:
    """Return the command of the run, with its seed."""
    has_seed = any(word == "--seed" or word.startswith("--seed=") for word in run.command)
    return shlex.join([*run.command, *([] if has_seed else ["--seed", str(run.plan.seed)])])


def make_advice(results: Results) -> Iterator[Block]:
    """Yield at most one advice: the rounds that would probably give verdicts, or the command that continues the run.

    The number of rounds is likely to be enough for half of the unclear comparisons for which any number is likely to be
    enough. Remarks in the tables have the number for each comparison. After a poor measurement, more rounds on the same
    machine aren't the advice.
    """
    unclear, command = _list_unclear(results), command_to_continue(results)
    if any(needed.is_likely for *_, needed in unclear) and not results.is_poor:
        yield from _suggest_rounds(results, unclear)
    elif command and not results.is_poor:
        yield Text(f"{explain_early_end(results)} To continue the run:", where=FILES)
        yield Code(command, where=FILES)


def _suggest_rounds(results: Results, unclear: Sequence[tuple[Lookup, Cell, RoundsNeeded]]) -> Iterator[Block]:
    noun = "result" if results.claims else "comparison"
    rounds = _find_rounds(results, unclear)
    settled_cells = [
        (lookup, cell)
        for lookup, cell, needed in unclear
        if needed.is_likely
        and (rounds is None or (lookup.rounds_of(cell) + needed.rounds <= rounds and not lookup.has_ended(cell)))
    ]
    which = f"{len(settled_cells)} of {len(unclear)} unclear {noun}s"
    if len(unclear) == 1:
        which = f"the unclear {noun}"
    if rounds is None:
        yield Text(_suggest_new_run(results.run.plan, which), where=REPORT)
        return
    lookup, cell = settled_cells[0]
    further, duration_text = rounds - lookup.rounds_of(cell), _format_duration(results, rounds, lookup, cell)
    end = "." if results.machines else ":"  # a merged run can't be continued
    yield Text(f"{counted(further, 'more round')}{duration_text} would probably settle {which}{end}", where=REPORT)
    if not results.machines:
        yield Code(_make_command(results.run, "--rounds", str(rounds), "--unsettled"), where=REPORT)


def _suggest_new_run(plan: Plan, which: str) -> str:
    of_claims = " with harness matrix --claim ISSUE --precision 2%" if plan.claims else ""
    suggestion = " with a smaller --precision" if plan.precision else of_claims
    return f"To settle {which}, start a new run{suggestion}: --resume adds no rounds to it."


def _format_duration(results: Results, rounds: int, lookup: Lookup, cell: Cell) -> str:
    """Return how long it takes until the unsettled groups on the cell's machine have this many rounds, in brackets."""
    own_groups = [name for name in results.unsettled_groups if lookup.machines.get(name) == lookup.machine(cell)]
    seconds = lookup.seconds_until(own_groups, rounds)
    return f" (about {duration(seconds)})" if seconds else ""


def command_to_continue(results: Results) -> str:
    """Return the command that continues a run; empty if all verdicts were clear when the budget ended the run."""
    lines = list_all_lines(results)
    is_ended_by_budget = {stop.reason for stop in results.run.stops.values()} == {StopReason.BUDGET}
    is_complete = not any(missing.status is Status.INTERRUPTED for missing in results.missing)
    if is_ended_by_budget and is_complete and lines and all(is_settled(line.verdict) for line in lines):
        return ""
    return make_resume_command(results.run, find_rounds_to_settle(results))


def find_rounds_to_settle(results: Results) -> int | None:
    """Return the total number of rounds that `make_advice` suggests; None if it suggests none."""
    return None if results.machines else _find_rounds(results, _list_unclear(results))


def _find_rounds(results: Results, unclear: Sequence[tuple[Lookup, Cell, RoundsNeeded]]) -> int | None:
    """Return the number of rounds that `make_advice` suggests; None if no number is likely to be enough.

    Groups that can't be continued are omitted. The number isn't below the number of rounds of any other group that the
    command continues, because `--resume` refuses such a number.
    """
    totals = sorted(
        lookup.rounds_of(cell) + needed.rounds
        for lookup, cell, needed in unclear
        if needed.is_likely and not lookup.has_ended(cell)
    )
    counts = [results.found.rounds[name] for name in results.unsettled_groups]
    return max([totals[(len(totals) - 1) // 2], *counts]) if totals else None


def _list_unclear(results: Results) -> list[tuple[Lookup, Cell, RoundsNeeded]]:
    """Return the unclear claims, and the unclear comparisons of other scenarios, each with the rounds that it needs."""
    claimed = {result.scenario.name for result in results.claims}
    unclear_claims = [
        (results.found_of(result.claim.of), place.worse, place.settling)
        for result in results.claims
        for place in result.places
        if place.estimate and place.settling and place.outcome is ClaimOutcome.UNCLEAR
    ]
    return unclear_claims + [
        (results.found_of(line.table.quantity), line.compared.cell, line.compared.settling)
        for line in list_all_lines(results)
        if line.compared.settling and line.table.scenario.name not in claimed
    ]


def explain_early_end(results: Results) -> str:
    """Return a sentence on why groups ended before all planned rounds: a budget, a precision or an interruption.

    The text is empty if no group ended early. `command_to_continue` returns the command that continues the run.
    """
    early = (StopReason.BUDGET, StopReason.PRECISION, StopReason.INTERRUPTED)
    is_early = any(stop.reason in early for stop in results.run.stops.values())
    return f"{capitalize(timeline.describe_stops(results.ended, results.run))}." if is_early else ""


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


def suggest_rounds(rounds: Collection[int]) -> int:
    """Return the total number of rounds to suggest for a run. `rounds` are the numbers of rounds of its groups.

    A verdict needs FEWEST_ROUNDS. If all groups have this many, the result is twice the largest number of rounds. The
    result is never smaller than the number of rounds of a group.
    """
    largest_count = max(rounds, default=0)
    return max(FEWEST_ROUNDS, largest_count if min(rounds, default=0) < FEWEST_ROUNDS else 2 * largest_count)


def _make_command(run: Run, *options: str) -> str:
    return shlex.join(["harness", "matrix", "--resume", run.shown_folder, *options])
