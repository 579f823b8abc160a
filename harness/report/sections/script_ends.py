"""How plain scripts end: sentences about their failures, and about differences of their outputs."""

import re
from collections.abc import Iterator
from itertools import takewhile

from harness.analysis.cells import Missing
from harness.analysis.printed import OutputComparison, OutputMatch
from harness.analysis.quantities import get_later_half, slope
from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.scenario import RESIDENT, Scenario
from harness.model.texts import joined
from harness.report import format
from harness.report.escape import shorten

#: The smallest growth of the memory that is reported, in bytes per second.
MEMORY_GROWS = 64 * 1024

#: The largest number of characters of a quoted output line, and of characters in it before the first difference.
CHARACTERS, BEFORE = 80, 20

#: Descriptions of the statuses of launches without a result.
STATUS_PHRASES = {
    Status.FAILED: "fails",
    Status.TIMEOUT: "did not end",
    Status.OOM: "needs more memory than is available",
    Status.NOT_AVAILABLE: "has no result",
}


def describe_failures(results: Results, scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each reason why a script has no result in some environments."""
    for missing in results.missing:
        names = list(dict.fromkeys(cell.environment for cell in missing.cells if cell.scenario == scenario.name))
        if names and missing.status in STATUS_PHRASES:
            ending = f"{'sometimes ' if missing.partial else ''}{STATUS_PHRASES[missing.status]} in {joined(names)}"
            has_advice = missing.advice and missing.status not in (Status.FAILED, Status.NOT_AVAILABLE)
            advice = f" {missing.advice}" if has_advice else ""
            usage = _measure_until_end(results, missing) if missing.status is not Status.NOT_AVAILABLE else ""
            reason = missing.reason.rstrip(".") or "no reason was recorded"
            yield f"{scenario.script} {ending}: {reason}{usage}.{advice}"


def _measure_until_end(results: Results, missing: Missing) -> str:
    """Return the seconds and the peak memory of a launch that ended early, and the growth of its memory."""
    failed_launches = [
        launch for launch in results.launches if launch.cell in missing.cells and launch.status is missing.status
    ]
    launch = max(failed_launches, key=lambda candidate: candidate.resources.get("max_rss_bytes", 0.0), default=None)
    peak = launch.resources.get("max_rss_bytes") if launch else None
    if not launch or not peak:
        return ""
    seconds = launch.resources.get("wall_seconds", launch.seconds)
    duration_text = f"after {seconds:,.1f} s, " if missing.status is not Status.TIMEOUT and seconds else ""
    text = f" ({duration_text}peak memory until then: {format.bytes_(peak)}"
    points = _read_points(launch.observations.get(RESIDENT))
    bytes_per_second = slope(get_later_half(points)) if points else None
    if bytes_per_second is None:
        return f"{text})"
    growth_text = (
        f"growing by {format.bytes_(bytes_per_second)} per second" if bytes_per_second > MEMORY_GROWS else "not growing"
    )
    return f"{text}, {growth_text})"


def _read_points(observation: object) -> list[tuple[float, float]]:
    """Return pairs of seconds and bytes; empty if the untrusted script recorded something else."""
    if not isinstance(observation, list) or len(observation) > 1000:
        return []
    pairs = [pair for pair in observation if isinstance(pair, list) and len(pair) == 2]
    numbers = [pair for pair in pairs if all(isinstance(part, int | float) and abs(part) < 1e15 for part in pair)]
    return [(float(seconds), float(size)) for seconds, size in numbers]


def describe_output(pair: OutputComparison) -> str:
    """Return a sentence about the exit status and the output of a script in two environments."""
    environment, other_environment = pair.cell.environment, pair.other.environment
    match pair.likeness:
        case OutputMatch.SAME:
            return f"Exit status and output are the same in {environment} and {other_environment}."
        case OutputMatch.VARIES:
            first_text, second_text = _quote_difference(*pair.texts)
            return (
                f"The output also varies between launches of one environment, first in line {pair.line}: "
                f"{first_text}, then {second_text}."
            )
        case OutputMatch.LATER:
            return f"The output is the same up to line {pair.line - 1} and differs after it."
    text, other_text = _quote_difference(*pair.texts)
    return f"The output differs at line {pair.line}: {text} in {environment}, {other_text} in {other_environment}."


def _quote_difference(one: str | None, other: str | None) -> tuple[str, str]:
    """Quote two lines of output. Long lines are cut to the part around the first difference."""
    lines = [None if line is None else re.sub(r"\s+", " ", line.replace("\b", "")).strip() for line in (one, other)]
    pairs = zip(lines[0] or "", lines[1] or "", strict=False)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = start - BEFORE if start > CHARACTERS // 2 else 0

    def quote_line(line: str | None) -> str:
        if line is None:
            return "no such line"
        return quote(f"{'…' if start else ''}{shorten(line[start:], CHARACTERS)}")

    return quote_line(lines[0]), quote_line(lines[1])


def quote(text: str) -> str:
    """Return a text in quotation marks."""
    return f"“{text}”"
