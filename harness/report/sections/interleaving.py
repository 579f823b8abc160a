"""Interleaving: how the cells of a round were measured, and the result of the checks for side effects."""

import math
from collections.abc import Iterator

from harness.analysis.interleaving import NonInterleavedRatio
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.model.launch import Interleave
from harness.model.texts import counted
from harness.report import format
from harness.report.comparisons import list_lines

#: A check with a wider interval than this, on the log scale, is inconclusive.
MOST = math.log1p(0.10)


def describe_interleaving(results: Results) -> str:
    """Describe how launches were interleaved: `interleaved on the same core: …`."""
    if results.machines:
        return ". ".join(
            f"On {machine}, {describe_interleaving(machine_results)}"
            for machine, machine_results in results.machines.items()
        )
    interleaving = results.turns
    if interleaving is None:
        # without results, describe the plan (although scenarios with a fixed number of calls are never interleaved)
        is_interleaved = results.run.plan.interleave is Interleave.TURNS and not results.found.numbers
        return "interleaved on the same core" if is_interleaved else "one launch after the other"
    count = " to ".join(dict.fromkeys(f"{end:,}" for end in (interleaving.turns[0], interleaving.turns[-1])))
    parallel_launches = f"up to {counted(interleaving.alive, 'launch')} taking turns"
    blocks = (
        f". A round has up to {interleaving.blocks} blocks of such launches, and each block includes the control cell"
        if interleaving.blocks > 1
        else ""
    )
    sequential_text = (
        f". {counted(interleaving.others, 'launch')} ran one after the other" if interleaving.others else ""
    )
    noun = "turn" if interleaving.turns[-1] == 1 else "turns"
    return f"interleaved on the same core: {count} {noun} each, with {parallel_launches}{blocks}{sequential_text}"


def describe_checks(results: Results) -> str:
    """Return the result of the checks; empty if the run isn't interleaved, or if a check is inconclusive."""
    if results.machines:
        return ". ".join(
            f"On {name}: {text}" for name, machine in results.machines.items() if (text := describe_checks(machine))
        )
    interleaving = results.turns
    if interleaving is None:
        return ""
    effects = list(_find_side_effects(results))
    hidden = [_find_farthest(ratio.estimate) for ratio in interleaving.alone if not ratio.is_found]
    if hidden and max(hidden) <= MOST:
        share = format.rough_share(math.expm1(max(hidden)))
        effects.append(f"{'other effects' if effects else 'effects'} on a ratio of more than {share} are ruled out")
    return "; ".join(effects)


def list_warnings(results: Results) -> Iterator[str]:
    """Yield a warning if interleaving changes a ratio by more than the margin, or if waiting cells use the CPU.

    Smaller changes of a ratio are only in `describe_checks`.
    """
    effects = list(_find_side_effects(results, results.margin))
    if results.turns and effects:
        has_wider_intervals = any(_is_relevant(ratio, results.margin) for ratio in results.turns.alone)
        note = " The intervals of these ratios are wider to include this effect." if has_wider_intervals else ""
        yield (
            f"Interleaving affects the results: {'; '.join(effects)}.{note} To measure without interleaving, use "
            "--interleave launches."
        )


def make_remark(bias: Estimate | None) -> str:
    """Return a remark on how the ratio changes without interleaving; empty if `bias` is None."""
    return f"without interleaving, the ratio is {format.factor(bias.value)} as large" if bias else ""


def _find_side_effects(results: Results, threshold: float = 0.0) -> Iterator[str]:
    """Yield one clause per side effect that was found.

    Ratios that change by at most `threshold` (log scale) are omitted.
    """
    interleaving = results.turns
    if interleaving is None:
        return
    shifts = [shift for shift in interleaving.alone if _is_relevant(shift, threshold)]
    if shifts:
        farthest = max(shifts, key=lambda shift: abs(math.log(shift.estimate.value)))
        more_ratios = f", and {counted(len(shifts) - 1, 'more ratio', 'changes')} too" if len(shifts) > 1 else ""
        ratio = format.ratio(farthest.estimate)
        yield f"without interleaving, the ratio is {ratio} as large ({_name_ratio(results, farthest)}){more_ratios}"
    waiting = interleaving.waiting
    if waiting and waiting.is_found:
        yield f"{waiting.cell} used {format.rough_share(waiting.share)} of the core while other cells were timed"


def _is_relevant(ratio: NonInterleavedRatio, threshold: float) -> bool:
    return ratio.is_found and abs(math.log(ratio.estimate.value)) > threshold


def _name_ratio(results: Results, ratio: NonInterleavedRatio) -> str:
    """Return the name of the comparison in its table."""
    line_names = (
        f"{line.table.scenario.title}: {line.name}" if results.has_several_scenarios else line.name
        for table in results.tables
        for line in list_lines(table)
        if (line.compared.cell, line.compared.other) == (ratio.cell, ratio.other)
    )
    return next(line_names, f"{ratio.cell} vs {ratio.other}")


def _find_farthest(estimate: Estimate) -> float:
    """Return the largest distance from 1 that the interval includes, on the log scale; infinite without an interval."""
    ends = (estimate.interval.low, estimate.interval.high) if estimate.interval else (math.inf,)
    return max(abs(math.log(end)) for end in ends)
