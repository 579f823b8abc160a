"""Run timeline: rounds, when groups stopped, how launches sampled, and interference."""

from collections.abc import Iterator, Sequence

from harness.analysis.interference import NoisyRound, RunInterference
from harness.analysis.printed import is_printed
from harness.analysis.results import Results
from harness.analysis.timeline import Endings, Stopped
from harness.model.launch import Protocol
from harness.model.run import Plan, Run, StopReason
from harness.model.scenario import CPUS
from harness.model.texts import counted, format_cpu_list, format_plain
from harness.report import format
from harness.report.blocks import Items, Section, Text
from harness.report.phrases import capitalize
from harness.report.sections import interleaving, machines

#: The largest number of noisy rounds in the list.
LISTED = 10


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on noisy rounds, if there are any."""
    noisy_rounds = results.disturbance.disturbed
    if noisy_rounds:
        more = [f"and {len(noisy_rounds) - LISTED} more"] if len(noisy_rounds) > LISTED else []
        items = [*map(_describe_noisy, noisy_rounds[:LISTED]), *more]
        judged = "A round is noisy if other processes were active during its timed steps, whatever times were measured."
        texts = [Text(text) for text in machines.collect_sentences(results, lambda machine: [interference_of(machine)])]
        yield Section("Noisy rounds", "disturbed", [*texts, Items(items), Text(judged, True)])


def _describe_noisy(noisy: NoisyRound) -> str:
    return f"Round {noisy.round} of {noisy.group}{' (repeated)' if noisy.repeated else ''}: {noisy.reason}"


def interference_of(results: Results) -> str:
    """Return how many rounds of a run had interference from other processes, and how they were handled."""
    quantities = [quantity for scenario in results.run.scenarios for quantity in scenario.quantities]
    return describe_noisy_rounds(results.disturbance, prints=any(map(is_printed, quantities)))


def describe_noisy_rounds(interference: RunInterference, *, prints: bool = False) -> str:
    """Return how many rounds had interference. With `prints`, the run compares numbers that scripts print."""
    count, taken = len(interference.disturbed), _describe_taken(interference, prints)
    if not count:
        if interference.rounds and not interference.told:
            return "Interference is unknown: no launch recorded the activity of other processes."
        return f"No round had interference from other processes.{taken}" if interference.rounds else ""
    text = f"{count} of {counted(interference.rounds, 'round')} had interference from other processes"
    left = count - interference.repeated
    if not left:
        only = "was repeated. Only the repetition counts" if count == 1 else "were repeated. Only the repetitions count"
        return f"{text} and {only}.{taken}"
    if not interference.repeated:
        return f"{text} and {'was' if count == 1 else 'were'} not repeated.{taken}"
    return f"{text}: {interference.repeated} repeated, and {left} included in the results.{taken}"


def _describe_taken(interference: RunInterference, prints: bool) -> str:
    """Return how much time other processes or a CPU quota took, and from which times this is subtracted."""
    source = " from the measured times, but not from printed numbers" if prints else ""
    contended, stopped = (
        _shares(interference.taken, interference.launches),
        _shares(interference.stopped, interference.launches),
    )
    return "".join(
        (
            f" The CPU time of other processes is subtracted{source}: {contended}." if contended else "",
            f" The time for which a CPU quota paused launches is subtracted{source}: {stopped}." if stopped else "",
        )
    )


def _shares(shares: Sequence[float], launches: int) -> str:
    """Describe shares and launches: `3 % to 27 % of the time in 5 of 40 launches`; empty without shares."""
    ends = dict.fromkeys(format.share(end) for end in (shares[0], shares[-1])) if shares else ()
    return f"{' to '.join(ends)} of the time in {len(shares)} of {counted(launches, 'launch')}" if ends else ""


def format_rounds(results: Results) -> str:
    """Return the number of rounds with results: `5 rounds`, or `3 to 5 rounds`; without results, the planned rounds."""
    numbers = sorted({table.rounds for table in results.tables})
    return _span(numbers) if numbers else describe_planned(results.run.plan)


def describe_planned(plan: Plan) -> str:
    """Return how many rounds were requested: `5 rounds`, or `at most 100 rounds`."""
    most = "at most " if plan.ends_early or plan.budget_seconds else ""
    return f"{most}{counted(plan.rounds, 'round')}"


def describe_pinning(run: Run) -> str:
    """Describe on which cores launches ran: `pinned to 1 core (CPU 7)`."""
    cpus, slots = run.plan.limits.cpus, run.host.get("slots")
    if cpus and isinstance(slots, Sequence):
        places = "; ".join(map(str, slots))
        return f"in {counted(len(slots), 'slot')} at once, each pinned to {counted(len(cpus), 'core')} (CPU {places})"
    if not cpus:
        return "on all cores of the machine"
    scaled = {scenario.name for scenario in run.scenarios if CPUS in scenario.settings}
    counts = {int(cell.axes[CPUS]) for cell in run.plan.cells if cell.scenario in scaled}
    numbers = f"{' or '.join(map(str, sorted(counts)))} of " if len(counts) > 1 else ""
    return f"pinned to {numbers}{counted(len(cpus), 'core')} (CPU {format_cpu_list(cpus)})"


def describe_rounds(results: Results) -> str:
    """Describe the rounds: when groups stopped, the launches of a round, and their order."""
    ended, seed = results.ended, results.run.plan.seed
    order = f"The order is random (seed {seed})."
    if [stop.reason for stop in ended.stops] == [StopReason.OBSERVED] and not ended.going:
        return f"none: no cell has anything to time, so the pilot observed everything. {order.rstrip('.')}"
    able = [group for group in results.run.plan.groups if group.control]
    controls = sum(group.controlled for group in able)
    which = "each group" if controls == len(able) else counted(controls, "group")
    twice = f", and the control cell of {which} twice" if controls else ""
    is_piloted = results.run.plan.piloted and any(group.piloted for group in results.run.plan.groups)
    first = "A pilot round comes first and is not counted. After it, every round" if is_piloted else "Every round"
    return (
        f"{describe_stops(ended, results.run)}. {first} "
        f"launches each cell once{twice}. Each launch is a fresh process. {order} "
        f"{capitalize(interleaving.describe_interleaving(results))}"
    )


def describe_stops(ended: Endings, run: Run) -> str:
    """Return after which round the groups stopped: `5 rounds in every group, as planned`."""
    reasons = [_describe_ending(stop, ended.groups, run) for stop in ended.stops] or [describe_planned(run.plan)]
    going = [f"{counted(ended.going, 'group')} not ended yet"] if ended.stops and ended.going else []
    return "; ".join([*reasons, *going])


def _describe_ending(stop: Stopped, groups: int, run: Run) -> str:
    plan, every, when = run.plan, stop.groups == groups, describe_after(stop.rounds)
    if stop.reason is StopReason.ROUNDS and every and not plan.ends_early:
        return f"{_span(stop.rounds)} in every group, as planned"
    width = (
        f"±{format.share(plan.precision)}"
        if plan.precision
        else "the width that the claims need"
        if plan.claims
        else ""
    )
    budget = f" of {format.duration(plan.budget_seconds)}" if plan.budget_seconds else ""
    budget = f"budget{budget} set by the suite" if plan.budget_is_wish and run.suite else f"budget{budget}"
    early = f": no interval is checked before round {stop.early}" if stop.early else ""
    why = {
        StopReason.ROUNDS: f"{when}, the requested maximum{f', with intervals wider than {width}' if width else ''}",
        StopReason.PRECISION: f"{when}, {'settled or ' if plan.precision else ''}at {width}",
        StopReason.BUDGET: f"when the {budget} ended, {when}{early}",
        StopReason.OBSERVED: f"{when}, because no cell has anything to time, only observations",
        StopReason.NO_NUMBERS: f"{when}, because no cell had a result",
        StopReason.INTERRUPTED: f"when the run was interrupted, {when}",
    }
    return f"{'every group' if every else counted(stop.groups, 'group')} stopped {why[stop.reason]}"


def describe_after(numbers: Sequence[int]) -> str:
    """Return `after 8 rounds`. If there are several numbers, the text contains the smallest and the largest."""
    return f"after {_span(numbers)}"


def _span(numbers: Sequence[int]) -> str:
    """Format numbers of rounds: `8 rounds`, `8 and 11 rounds`, or `8 to 20 rounds`; for 0, `the pilot`."""
    if numbers[-1] == 0:
        return "the pilot"
    if len(numbers) == 1:
        return counted(numbers[0], "round")
    return f"{numbers[0]} {'and' if len(numbers) == 2 else 'to'} {numbers[-1]} rounds"


def describe_sampling(results: Results) -> str:
    """Describe how launches warmed up and sampled."""
    planned_ = results.run.plan.sampling
    if planned_.protocol is Protocol.DOCUMENT:
        return "the number of iterations in the source"
    fixed = [launch.fixes_calls for launches in results.found.numbers.values() for launch in launches]
    if fixed and all(fixed):
        return "the number of calls that the scenario sets"
    return _describe_by_time(results) + ("; some scenarios set the number of calls" if any(fixed) else "")


def _describe_by_time(results: Results) -> str:
    planned_, used = results.run.plan.sampling, results.samplings
    warmup = format.seconds([way.warmup_seconds for way in used if way.warmup_seconds is not None])
    measure = format.seconds([way.measure_seconds for way in used if way.measure_seconds is not None])
    pilot = "the pilot of each group determines the times: " if planned_.is_open else ""
    if any(machine.turns for machine in results.each_machine.values()):
        return (
            f"{pilot}warm up{f' for {warmup} s' if warmup else ''}, then take a sample of at least "
            f"{format_plain(planned_.sample_seconds, 3)} s in each turn, and a few samples without interleaving at the "
            "end"
        )
    single = {way.calls_per_sample == 1 for way in used}
    size = f"in samples of at least {format_plain(planned_.sample_seconds, 3)} s"
    if True in single:
        size = f"{size}, and for percentiles of one step" if False in single else "in samples of one step"
    return (
        f"{pilot}warm up{f' for {warmup} s' if warmup else ''}, then measure{f' for {measure} s' if measure else ''} "
        f"{size}"
    )
