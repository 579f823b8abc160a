"""Two stored runs, side by side."""

from pathlib import Path

from harness.analysis.conditions import Aspect
from harness.analysis.runs import Pair
from harness.model.errors import NothingSelectedError, UsageError
from harness.report.changes import fact
from harness.report.escape import plain
from harness.session.reporting import read


def compare(first: Path, second: Path, *, margin: float = 0.03, any_host: bool = False) -> Pair:
    """Both runs; `margin` is a share.

    Raises UsageError for a folder that is no run's, for one and the same run, and for different machines unless
    `any_host`; NothingSelectedError where no cell has a number in both.
    """
    pair = Pair(read(first), read(second), margin)
    one, other = pair.first, pair.second
    if one.run.id == other.run.id:
        raise UsageError(f"{first} and {second} are the same run.", "Name two runs.")
    if pair.machines and not any_host:
        told = plain("; ".join(map(fact, pair.machines)))
        raise UsageError(
            f"{first} and {second} were measured on different machines: {told}.", "To compare them still: --any-host"
        )
    if one.found.series.keys() & other.found.series.keys():
        return pair
    shared = len(one.found.cells.keys() & other.found.cells.keys())
    changed = [each.subject for each in pair.differences if each.part is Aspect.SCENARIO and each.name == "axes"]
    raise NothingSelectedError(
        f"No cell has a number in both runs; {shared or 'none'} of the cells asked for are the same."
        + (f" The axes of {', '.join(changed)} have changed." if changed else ""),
        "Why cells have no number is in each run's report.md.",
    )
