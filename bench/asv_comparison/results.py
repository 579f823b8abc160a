"""The result of one run of a tool, and the tables of such results."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.statistics import Interval

#: The share of other runs' ratios that an interval contains, if all runs have the same error. P(|x - y| < 1.96 σ) is
#: 83 % for two normal x and y. With the t quantile for 4 degrees of freedom (five rounds) instead of 1.96, it is 88 %.
#: For 99 % intervals (2.58), the shares are 93 % and 97 %. The quotient of the ends of two intervals is up to √2 times
#: as wide as one interval, which gives 99 %.
EXPECTED = (
    "A correct 95 % interval contains the ratio of another such run in 83 to 88 % of cases, and a 99 % interval in 93 "
    "to 97 %. The quotient of the ends of two 99 % intervals, as for asv here, contains it in 93 to 99 %."
)


@dataclass(frozen=True)
class Measured:
    """One run of one tool.

    `times` are seconds per step in TensorFlow 1.14 and 2.0, and `ratio` is the second time over the first. `seconds` is
    the wall-clock time for both, and `note` describes the run.
    """

    tool: str
    seconds: float
    note: str
    times: tuple[float, float]
    ratio: float
    interval: Interval
    verdict: str


#: The header of the table of runs.
HEAD = """\
| tool | wall, s | TF 1.14, ms | TF 2.0, ms | ratio | interval | verdict | how |
| --- | ---: | ---: | ---: | ---: | --- | --- | --- |"""


def row(run: Measured) -> str:
    """Format one run as a row of a Markdown table."""
    first, second = (f"{1000 * time:.2f}" for time in run.times)
    ends = f"{run.interval.low:.3f} to {run.interval.high:.3f}"
    cells = [run.tool, f"{run.seconds:.1f}", first, second, f"{run.ratio:.3f}", ends, run.verdict, run.note]
    return f"| {' | '.join(cells)} |"


def format_variability(measured: Sequence[Measured]) -> str:
    """Return a table with each tool's range of ratios, width of intervals, and other runs' ratios in its intervals."""
    names = [
        "width of its intervals",
        "ratios of its other runs in its intervals",
        "ratios of the other tool in its intervals",
    ]
    head = f"| tool | runs | ratios | {' | '.join(names)} |"
    rule = "| --- | ---: | --- | --- | ---: | ---: |"
    tools = dict.fromkeys(run.tool for run in measured)
    return "\n".join([head, rule, *(_variability_row(tool, measured) for tool in tools), "", EXPECTED])


def _variability_row(tool: str, measured: Sequence[Measured]) -> str:
    own = [run for run in measured if run.tool == tool]
    foreign = [run for run in measured if run.tool != tool]
    same = [other.ratio in run.interval for run in own for other in own if other is not run]
    cross = [other.ratio in run.interval for run in own for other in foreign]
    ratios = sorted(run.ratio for run in own)
    widths = sorted(100 * (run.interval.high / run.interval.low - 1) for run in own)
    return (
        f"| {tool} | {len(own)} | {ratios[0]:.3f} to {ratios[-1]:.3f} ({100 * (ratios[-1] / ratios[0] - 1):.1f} %) "
        f"| {widths[0]:.1f} to {widths[-1]:.1f} % | {sum(same)} of {len(same)} | {sum(cross)} of {len(cross)} |"
    )


def format_coverage(measured: Sequence[Measured], truth: Measured) -> str:
    """Return how many intervals of each tool contain the ratio from the idle machine, whose interval isn't used."""
    tools = dict.fromkeys(run.tool for run in measured)
    own = {tool: [run for run in measured if run.tool == tool] for tool in tools}
    counts = [
        f"{tool} in {sum(truth.ratio in run.interval for run in runs)} of {len(runs)}" for tool, runs in own.items()
    ]
    ends = f"{truth.interval.low:.3f} to {truth.interval.high:.3f}"
    return f"Intervals that contain the idle machine's ratio of {truth.ratio:.3f} ({ends}): {', '.join(counts)} runs."
