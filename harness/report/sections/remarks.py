"""The remarks on one comparison, next to its verdict."""

import math

from harness.analysis.comparisons import Compared
from harness.analysis.quantities import is_near_jump
from harness.analysis.results import Results
from harness.analysis.statistics import Interval
from harness.analysis.verdicts import Withheld, describe_too_few
from harness.model.scenario import PERCENTILES, STEP
from harness.report import format
from harness.report.comparisons import describe_deciding, describe_rounds_needed
from harness.report.phrases import describe_pythons, join_remarks
from harness.report.sections import interleaving, untimed

#: The remark if no launch recorded what shows whether two cells did the same work.
NOT_CHECKED = "work not checked"

#: The remark on a step time that changes during the measurement, if cells can't be compared at equal numbers of steps.
NOT_COMPARABLE = "the time per step changes during the measurement, and too few steps can be compared"


def make_remark(results: Results, compared: Compared, *, of: str = STEP) -> str:
    """Return the remarks on one comparison.

    `of` is the compared quantity. Only the time per step has remarks on the work of a GPU.
    """
    return join_remarks(
        [
            describe_deciding(compared.deciding, of=of),
            _describe_excess(compared),
            describe_pythons(compared.pythons),
            describe_work(results, compared),
            describe_too_few(compared.ratio.rounds) if compared.withheld is Withheld.FEW_ROUNDS else "",
            "identical cells differed by more than the margin" if compared.withheld is Withheld.CONTROL else "",
            interleaving.make_remark(compared.bias),
            _describe_contention(compared, results.margin),
            describe_equal_steps(compared.steps, compared.withheld),
            _describe_jump(results, compared, of),
            untimed.make_remark(results, compared) if of == STEP else "",
            describe_rounds_needed(results.found_of(of), compared.cell, compared.settling),
        ]
    )


def describe_work(results: Results, compared: Compared) -> str:
    """Return a remark if two cells did different work, or if this wasn't checked.

    A plain script records no fingerprint of its work. The first screen compares its output instead.
    """
    if compared.work.work != "not checked":
        return compared.work.reason
    scripts = {scenario.name for scenario in results.run.scenarios if scenario.script}
    return "" if compared.cell.scenario in scripts else NOT_CHECKED


def _describe_contention(compared: Compared, margin: float) -> str:
    """Return a remark if the correction for CPU contention may change a ratio by at least `margin` (log scale)."""
    if compared.contention < margin:
        return ""
    remark = f"the correction for CPU contention may be off by {format.rough_share(math.expm1(compared.contention))}"
    advice = "use a machine with less interference, or --clock cpu"
    return f"{remark}: {advice}" if compared.withheld is Withheld.CONTENTION else remark


def _describe_excess(compared: Compared) -> str:
    """Return a remark if the variance of other launches isn't used for the interval of a comparison."""
    if not compared.excess:
        return ""
    factor = format.factor(compared.excess)
    return f"wider interval: between rounds, this ratio varies {factor} as much as the other launches of its group"


def _describe_jump(results: Results, compared: Compared, of: str) -> str:
    """Return a remark if `of` is a percentile that is near a jump between fast and slow steps on one side."""
    sides = (compared.cell, compared.other)
    if of not in PERCENTILES or not any(is_near_jump(of, results.found.numbers.get(cell, ())) for cell in sides):
        return ""
    return f"{of} is near a jump between fast and slow steps, so its interval is too narrow"


def describe_equal_steps(steps: Interval | None, withheld: Withheld | None) -> str:
    """Return a remark on step times that change: the range of steps that are compared, or why none are compared."""
    if steps:
        return f"compared at the same number of steps: {format.steps(steps)}"
    return NOT_COMPARABLE if withheld is Withheld.TREND else ""
