"""What has no number, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.lookup import Lookup
from harness.model.launch import Launch, Status
from harness.model.scenario import Cell

#: How much of a process's standard error, and of a reason, is kept.
STDERR_LINES = 20
STDERR_CHARACTERS = 4000
REASON_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Missing:
    """Cells that have no number for one and the same reason.

    `partial`: they have a number, and some of their launches gave none. `reason` may be empty: nothing was launched.
    `stderr` is the end of the standard error of one of the launches.
    """

    status: Status
    reason: str
    advice: str
    stderr: str
    partial: bool
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class _Cause:
    status: Status
    reason: str
    advice: str
    partial: bool


def missing(found: Lookup) -> list[Missing]:
    """Every cell of the run without a number, or with launches that gave none; equal reasons together.

    Cells that only observe lack nothing. Those with no number at all come first; then in the statuses' own order.
    """
    cells: dict[_Cause, list[Cell]] = {}
    stderrs: dict[_Cause, str] = {}
    for cell in found.cells:
        numbered = cell in found.series
        if (numbered or cell in found.observed) and cell not in found.lost:
            continue
        launch = found.culprit(cell)
        cause = _cause(cell, launch, found, numbered)
        cells.setdefault(cause, []).append(cell)
        if launch and launch.stderr and not stderrs.get(cause):
            stderrs[cause] = tail(launch.stderr)
    order = list(Status)
    return [
        Missing(cause.status, cause.reason, cause.advice, stderrs.get(cause, ""), cause.partial, members)
        for cause, members in sorted(cells.items(), key=lambda item: (item[0].partial, order.index(item[0].status)))
    ]


def tail(text: str) -> str:
    """The end of a text: at most 20 lines and 4,000 characters."""
    return "\n".join(text[-STDERR_CHARACTERS:].rstrip().splitlines()[-STDERR_LINES:])


def _cause(cell: Cell, launch: Launch | None, found: Lookup, numbered: bool) -> _Cause:
    status = found.status(cell) or Status.INTERRUPTED
    known = found.unavailable.get(cell)
    if known:
        return _Cause(status, known.reason[:REASON_CHARACTERS], known.advice, numbered)
    if launch:
        return _Cause(status, launch.error[:REASON_CHARACTERS], launch.advice, numbered)
    return _Cause(status, "", "", numbered)
