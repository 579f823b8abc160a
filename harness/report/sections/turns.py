"""Interleaving: how the cells of a round were measured, and the result of the checks for side effects."""

import math
from collections.abc import Iterable, Iterator

from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.turns import SHARE, Deviation, NonInterleavedRatio
from harness.model.launch import Interleave
from harness.model.texts import counted, joined
from harness.report import format
from harness.report.comparisons import lines

#: A check with a wider interval than this, on the log scale, is inconclusive.
MOST = math.log1p(0.10)


def told(results: Results) -> str:
    """Which way it was: `the cells of a round took 20 turns on the same core; up to 3 were alive together`."""
    if results.machines:
        return "; ".join(f"on {machine}, {told(each)}" for machine, each in results.machines.items())
    found = results.turns
    if found is None:
        # before there are numbers, what is planned: those of scenarios that fix their calls take none all the same
        in_turns = results.run.plan.interleave is Interleave.TURNS and not results.found.numbers
        return (
            "the cells of a round are interleaved on the same core" if in_turns else "launches run one after the other"
        )
    count = " to ".join(dict.fromkeys(f"{end:,}" for end in (found.turns[0], found.turns[-1])))
    alive = f"up to {counted(found.alive, 'running launch')} at a time"
    blocks = f", in up to {found.blocks} blocks per round that all include the control cell" if found.blocks > 1 else ""
    others = f"; {counted(found.others, 'launch')} ran one after the other" if found.others else ""
    noun = "turn" if found.turns[-1] == 1 else "turns"
    return f"the cells of a round are interleaved on the same core, with {count} {noun} and {alive}{blocks}{others}"


def checks(results: Results) -> str:
    """Return the result of each check; empty if the run isn't interleaved."""
    if results.machines:
        return ". ".join(f"On {name}: {said}" for name, each in results.machines.items() if (said := checks(each)))
    found = results.turns
    if found is None:
        return ""
    bias, within = list(_found(results)), dict(_not_found(results))
    rest = [f"{name} ±{_apart(far)}" for name, far in within.items() if far <= MOST]
    waiting = found.waiting
    if waiting and not waiting.is_found:
        rest.append(f"at most {_share(waiting.share)} of the core used between turns")
    few = [name for name, far in within.items() if far > MOST]
    said = "; ".join(bias) or ("no side effect is larger than these" if rest else "")
    if rest:
        said += f"{'; nothing else' if bias else ''}: {', '.join(rest)}"
    if few or not said:
        said = "; ".join(filter(None, [said, f"too few turns to decide{f' about {joined(few)}' if few else ''}"]))
    if found.scatter is not None and found.correlation is not None:
        said += (
            f". The difference of two identical cells varies by {_apart(found.scatter)} per turn; the correlation of "
            f"successive turns is {found.correlation:.2f}"
        )
    return said


def warnings(results: Results) -> Iterator[str]:
    """Return warnings about side effects of interleaving."""
    least = SHARE * results.margin
    bias = list(_found(results, least))
    if bias:
        wider = any(_is_shown(each, least) for each in results.turns.alone) if results.turns else False
        so = " The intervals of such ratios are wider by this much on both sides." if wider else ""
        yield (
            f"Interleaving had side effects: {'; '.join(bias)}.{so} To measure without interleaving: "
            "--interleave launches."
        )


def remark(bias: Estimate | None) -> str:
    """That a ratio is another one where each cell is measured alone."""
    return f"measured sequentially, the ratio is {format.factor(bias.value)} the interleaved ratio" if bias else ""


def _found(results: Results, least: float = 0.0) -> Iterator[str]:
    """Return one clause per side effect that was found.

    Ratios that differ by at most `least` (log scale) are left out.
    """
    found = results.turns
    if found is None:
        return
    moved = [each for each in found.alone if _is_shown(each, least)]
    if moved:
        farthest = max(moved, key=lambda each: abs(math.log(each.estimate.value)))
        more = f", and {counted(len(moved) - 1, 'more ratio', 'differs')} too" if len(moved) > 1 else ""
        ratio = format.ratio(farthest.estimate)
        yield f"measured sequentially, the ratio of {_name(results, farthest)} is {ratio} the interleaved ratio{more}"
    if found.place and found.place.is_found and isinstance(found.place.at, int):
        yield f"samples at place {found.place.at + 1} of the turn take {_takes(found.place)}"
    if found.predecessor and found.predecessor.is_found:
        yield f"samples after {found.predecessor.at} take {_takes(found.predecessor)}"
    if found.waiting and found.waiting.is_found:
        yield f"{found.waiting.cell} used {_share(found.waiting.share)} of the core while other cells were timed"


def _not_found(results: Results) -> Iterator[tuple[str, float]]:
    """Return the side effects that weren't found, each with its largest possible size on the log scale."""
    found = results.turns
    if found is None:
        return
    still = [each.estimate for each in found.alone if not each.is_found]
    if still:
        yield "sequential against interleaved", _farthest(still)
    if found.place and not found.place.is_found:
        yield "place in the turn", _farthest([found.place.estimate])
    if found.predecessor and not found.predecessor.is_found:
        yield "previous cell", _farthest([found.predecessor.estimate])


def _is_shown(each: NonInterleavedRatio, least: float) -> bool:
    return each.is_found and abs(math.log(each.estimate.value)) > least


def _name(results: Results, each: NonInterleavedRatio) -> str:
    """Return the name of the comparison in its table."""
    named = (
        f"{line.table.scenario.title}: {line.name}" if results.has_several_scenarios else line.name
        for table in results.tables
        for line in lines(table)
        if (line.compared.cell, line.compared.other) == (each.cell, each.other)
    )
    return next(named, f"{each.cell} vs {each.other}")


def _takes(found: Deviation) -> str:
    return f"{format.ratio(found.estimate)} as long as others"


def _farthest(estimates: Iterable[Estimate]) -> float:
    """The farthest from 1 that the intervals reach, on the log scale."""
    ends = [end for each in estimates if each.interval for end in (each.interval.low, each.interval.high)]
    return max(abs(math.log(end)) for end in ends)


def _apart(logs: float) -> str:
    """A distance on the log scale as a percentage of two digits."""
    return _share(math.expm1(min(logs, 700.0)))


def _share(part: float) -> str:
    return format.share(float(f"{part:.2g}"))
