"""How reliable the measurement is: its grade, and the facts that decide it."""

from collections.abc import Iterator, Sequence

from harness.analysis.comparisons import Compared
from harness.analysis.interference import RunInterference
from harness.analysis.printed import is_printed
from harness.analysis.quality import Grade
from harness.analysis.results import Results
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.texts import counted
from harness.report import format
from harness.report.blocks import EVERYWHERE, REPORT, Block, Bold, Callout, Code, Text
from harness.report.phrases import describe_clock
from harness.report.sections import continuation, timeline


def make_blocks(results: Results, *, has_command: bool = True) -> Iterator[Block]:
    """Yield the line on the measurement, or a warning if it is poor; nothing if nothing was timed.

    Without `has_command`, the warning omits the command of the run, which is untrusted in the results of others.
    """
    quality = results.quality
    if quality is None:
        return
    line = Text([Bold(f"Measurement: {quality.grade}."), f" {_join_facts(results)}"], where=EVERYWHERE)
    if quality.grade is not Grade.POOR:
        yield line
        return
    where_to = "with a larger CPU quota" if quality.interference.stopped else "on an idle machine"
    advice = Text(
        f"Measure again {where_to} before you rely on these numbers. To find the causes of interference, use harness "
        "doctor.",
        where=EVERYWHERE,
    )
    command = [Code(continuation.repeat_run(results.run), where=REPORT)] if has_command and not results.machines else []
    yield Callout([line, advice, *command], where=EVERYWHERE)


def describe(results: Results) -> str:
    """Return the grade and its facts as a sentence, such as `Measurement: good. 4 rounds; …`; empty if untimed."""
    return f"Measurement: {results.quality.grade}. {_join_facts(results)}" if results.quality else ""


def _join_facts(results: Results) -> str:
    return f"{'; '.join(list_facts(results))}."


def list_facts(results: Results) -> list[str]:
    """Return the facts behind the grade: the rounds, the interference, and the A/A control."""
    quality = results.quality
    if quality is None:
        return []
    too_few = f" (verdicts need {FEWEST_ROUNDS})" if quality.rounds[0] < FEWEST_ROUNDS else ""
    place = f"on {quality.machine}, " if quality.machine else ""
    facts = [
        f"{place}{timeline.format_round_range(quality.rounds)}{too_few}",
        describe_interference(quality.interference),
    ]
    return (
        [*facts, describe_control(results.machines.get(quality.machine, results))]
        if results.compares or results.claims
        else facts
    )


def explain_unclear(results: Results, compared: Compared) -> str:
    """Return the cause of an unclear verdict as a clause: interference, too few rounds, or a small difference."""
    interference = results.disturbance
    if interference.taken or interference.stopped or len(interference.disturbed) > interference.repeated:
        return "the machine was busy"
    if compared.settling and compared.settling.is_likely:
        return "the run had too few rounds"
    return f"the ratio is too close to the margin of {format.share(results.run.plan.margin)}"


def describe_interference(interference: RunInterference) -> str:
    """Return what others did to the launches that count: `other processes took 3 to 27 % of the time in 5 launches`."""
    if interference.taken:
        shares = _format_shares(interference.taken)
        return f"other processes took {shares} of the time in {_count_launches(interference.taken, interference)}"
    if interference.stopped:
        shares = _format_shares(interference.stopped)
        return f"a CPU quota paused {_count_launches(interference.stopped, interference)} for {shares} of the time"
    noisy_count = len(interference.disturbed)
    if noisy_count and noisy_count == interference.repeated:
        return f"{counted(noisy_count, 'noisy round', 'was')} repeated"
    if noisy_count:
        return f"interference in {noisy_count - interference.repeated} of {counted(interference.rounds, 'round')}"
    return "no interference" if interference.told else "interference unknown"


def _format_shares(shares: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{100.0 * end:.0f}" for end in (shares[0], shares[-1]))
    return f"{' to '.join(ends)} %"


def _count_launches(shares: Sequence[float], interference: RunInterference) -> str:
    return f"{len(shares)} of {counted(interference.launches, 'launch')}"


def explain_interference(results: Results) -> str:
    """Return what others did, and how this affects the results, as a clause."""
    interference, quantities = results.disturbance, [table.quantity for table in results.all_tables]
    printed = ", but not from printed numbers" if any(map(is_printed, quantities)) else ""
    is_subtracted = interference.taken or interference.stopped
    clauses = [
        describe_interference(interference),
        f"this is subtracted from the measured times{printed}" if is_subtracted else "",
        f"{counted(interference.repeated, 'noisy round')} repeated" if is_subtracted and interference.repeated else "",
    ]
    return "; ".join(filter(None, clauses))


def describe_control(results: Results, margin: float | None = None) -> str:
    """Return how much identical cells differ: `tf1.14 vs itself: 0.3 ± 1.1 %`. `margin` is on the log scale."""
    control = results.control
    if control is None:
        return "no A/A control"
    environments = {cell.environment for cell in control.cells}
    name = environments.pop() if len(environments) == 1 else "a cell"
    difference = format.format_self_difference(control.estimate)
    text = f"{name} vs itself: {difference}{describe_clock(results.run.plan.clock)}"
    if control.is_beyond(results.margin if margin is None else margin):
        return f"{text}, so no verdicts are given"
    return text if control.estimate.interval else f"{text} (one round)"
