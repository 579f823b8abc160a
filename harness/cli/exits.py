"""From what was found to an exit code, and the sentence that goes with it."""

import sys

from harness.analysis.runs import Changes
from harness.cli.options import FailOn
from harness.model.errors import Exit
from harness.session import Ended, Gate, gate
from harness.session.gating import judged


def of_run(ended: Ended, fail_on: FailOn | None) -> Exit:
    """How a run ended. What failed wins over a gate, and an interruption over both."""
    if ended.interrupted:
        return Exit.INTERRUPTED
    if ended.broken:
        return Exit.CELLS_FAILED
    found = of_gate(gate(ended.results), "No environment has a verdict") if fail_on else Exit.OK
    return Exit.CELLS_FAILED if ended.refused and found is Exit.OK else found


def of_changes(changes: Changes) -> Exit:
    """What two runs side by side amount to. What broke wins over what is slower; a gate judges something."""
    return Exit.CELLS_FAILED if changes.broken else of_gate(judged(changes.deciding), "No cell has a verdict")


def of_gate(found: Gate, nothing: str) -> Exit:
    """What a gate found; where it judged nothing, that is said, and it does not pass. `nothing` says why."""
    if found is Gate.NOTHING_JUDGED:
        print(f"harness: {nothing}, so nothing was checked for --fail-on.", file=sys.stderr)
        return Exit.NOTHING_SELECTED
    return Exit.SLOWER if found is Gate.SLOWER else Exit.OK
