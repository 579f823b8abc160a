"""Run timeline: rounds, when groups stopped, how launches sampled, and interference."""

from collections.abc import Iterator, Sequence

from harness.analysis.looks import RULES_WITH_LOOKS_AT_CLAIMS, Endings, Stopped
from harness.analysis.results import Results
from harness.model.launch import Protocol
from harness.model.run import Run, StopReason
from harness.model.scenario import CPUS
from harness.model.texts import counted, format_cpu_list, format_plain
from harness.report import format
from harness.report.blocks import Items, Section, Text
from harness.report.sections import interleaving

#: The largest number of noisy rounds in the list.
LISTED = 10


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on noisy rounds, if there are any."""
    noisy_rounds = results.disturbance.disturbed
    if noisy_rounds:
        remainder = [f"and {len(noisy_rounds) - LISTED} more"] if len(noisy_rounds) > LISTED else []
        items = [
            f"Round {noisy.round} of {noisy.group}{' (repeated)' if noisy.repeated else ''}: {noisy.reason}"
            for noisy in noisy_rounds[:LISTED]
        ]
        note = "A round is noisy if other processes were active during its timed steps, whatever times were measured."
        yield Section("Noisy rounds", "disturbed", [Items([*items, *remainder]), Text(note, True)])


def describe_pinning(run: Run) -> str:
    """Describe on which cores launches ran: `pinned to 1 core (CPU 7)`."""
    cpus, slots = run.plan.limits.cpus, run.host.get("slots")
    if cpus and isinstance(slots, Sequence):
        cpu_list = "; ".join(map(str, slots))
        return f"in {counted(len(slots), 'slot')} at once, each pinned to {counted(len(cpus), 'core')} (CPU {cpu_list})"
    if not cpus:
        return "on all cores of the machine"
    scaled_scenarios = {scenario.name for scenario in run.scenarios if CPUS in scenario.settings}
    counts = {int(cell.axes[CPUS]) for cell in run.plan.cells if cell.scenario in scaled_scenarios}
    numbers = f"{' or '.join(map(str, sorted(counts)))} of " if len(counts) > 1 else ""
    return f"pinned to {numbers}{counted(len(cpus), 'core')} (CPU {format_cpu_list(cpus)})"


def describe_rounds(results: Results) -> str:
    """Describe the rounds: when groups stopped, the control, the seed of the order, and the interleaving."""
    endings, seed = results.ended, f"the seed of the order is {results.run.plan.seed}"
    if [stop.reason for stop in endings.stops] == [StopReason.OBSERVED] and not endings.active:
        return f"none: no cell has anything to time, so the pilot observed everything; {seed}"
    groups_with_control = [group for group in results.run.plan.groups if group.control]
    controlled_count = sum(group.controlled for group in groups_with_control)
    group_text = "each group" if controlled_count == len(groups_with_control) else counted(controlled_count, "group")
    parts = [
        describe_stops(endings, results.run),
        f"with an A/A control in {group_text}" if controlled_count else "",
        seed,
        interleaving.describe_interleaving(results),
    ]
    return "; ".join(filter(None, parts))


def describe_stops(endings: Endings, run: Run) -> str:
    """Return after which round the groups stopped: `5 rounds in every group, as planned`."""
    limit = "at most " if run.plan.ends_early or run.plan.budget_seconds else ""
    planned = f"{limit}{counted(run.plan.rounds, 'round')}"
    reasons = [_describe_ending(stop, endings.groups, run) for stop in endings.stops] or [planned]
    ongoing = [f"{counted(endings.active, 'group')} not ended yet"] if endings.stops and endings.active else []
    return "; ".join([*reasons, *ongoing])


def _describe_ending(stop: Stopped, groups: int, run: Run) -> str:
    plan, is_every_group, after = run.plan, stop.groups == groups, f"after {format_round_range(stop.rounds)}"
    if stop.reason is StopReason.ROUNDS and is_every_group and not plan.ends_early:
        return f"{format_round_range(stop.rounds)} in every group, as planned"
    width = "the width that the claims need" if plan.claims else ""
    clear = "with clear outcomes or at " if run.rules >= RULES_WITH_LOOKS_AT_CLAIMS else "at "
    if plan.precision:
        width, clear = f"±{format.share(plan.precision)}", "with clear verdicts or at "
    budget = f" of {format.duration(plan.budget_seconds)}" if plan.budget_seconds else ""
    budget = f"budget{budget} set by the suite" if plan.budget_is_wish and run.suite else f"budget{budget}"
    early_note = f": no interval is checked before round {stop.missed_check}" if stop.missed_check else ""
    reasons = {
        StopReason.ROUNDS: f"{after}, the requested maximum{f', with intervals wider than {width}' if width else ''}",
        StopReason.PRECISION: f"{after}, {clear}{width}",
        StopReason.BUDGET: f"when the {budget} ended, {after}{early_note}",
        StopReason.OBSERVED: f"{after}, because no cell has anything to time, only observations",
        StopReason.NO_NUMBERS: f"{after}, because no cell had a result",
        StopReason.INTERRUPTED: f"when the run was interrupted, {after}",
    }
    return f"{'the run' if is_every_group else counted(stop.groups, 'group')} stopped {reasons[stop.reason]}"


def format_round_range(numbers: Sequence[int]) -> str:
    """Format numbers of rounds: `8 rounds`, `8 and 11 rounds`, or `8 to 20 rounds`; for 0, `the pilot`."""
    if numbers[-1] == 0:
        return "the pilot"
    if len(numbers) == 1:
        return counted(numbers[0], "round")
    return f"{numbers[0]} {'and' if len(numbers) == 2 else 'to'} {numbers[-1]} rounds"


def describe_sampling(results: Results) -> str:
    """Describe how launches warmed up and sampled."""
    planned = results.run.plan.sampling
    if planned.protocol is Protocol.DOCUMENT:
        return "the number of iterations in the source"
    fixes_calls = [launch.fixes_calls for launches in results.found.numbers.values() for launch in launches]
    if fixes_calls and all(fixes_calls):
        return "the number of calls that the scenario sets"
    return _describe_by_time(results) + ("; some scenarios set the number of calls" if any(fixes_calls) else "")


def _describe_by_time(results: Results) -> str:
    planned, samplings = results.run.plan.sampling, results.samplings
    warmup = format.seconds([sampling.warmup_seconds for sampling in samplings if sampling.warmup_seconds is not None])
    measure = format.seconds(
        [sampling.measure_seconds for sampling in samplings if sampling.measure_seconds is not None]
    )
    pilot = "the pilot of each group determines the times: " if planned.is_open else ""
    start = f"{pilot}warm up{f' for {warmup} s' if warmup else ''}, then"
    shortest = f"at least {format_plain(planned.sample_seconds, 3)} s"
    if any(machine.turns for machine in results.each_machine.values()):
        return f"{start} {shortest} in each turn"
    is_single = {sampling.calls_per_sample == 1 for sampling in samplings}
    size_text = f"in samples of {shortest}"
    if True in is_single:
        size_text = f"{size_text}, and for percentiles of one step" if False in is_single else "in samples of one step"
    return f"{start} measure{f' for {measure} s' if measure else ''} {size_text}"
