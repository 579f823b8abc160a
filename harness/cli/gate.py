"""`--fail-on`: an exit code by what was found, for CI."""

import sys
from collections.abc import Sequence
from enum import StrEnum

from harness.model.errors import Exit
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT


class FailOn(StrEnum):
    """What --fail-on takes."""

    SLOWER = "slower"


def check(run: Run, launches: Sequence[Launch]) -> Exit:
    """Whether an environment is slower than the run's reference in some row.

    What is compared along an axis has no bad side: it is no regression that eager mode is slower than graph mode. A
    gate that judged nothing does not pass.
    """
    from harness.analysis.lookup import lookup
    from harness.analysis.tables import tables
    from harness.analysis.verdicts import Verdict

    given = [
        value.compared.verdict
        for table in tables(run, lookup(run, launches))
        for row in table.rows
        for head, value in zip(table.columns, row.values, strict=True)
        if head.comparison and head.comparison.along == ENVIRONMENT and value.compared
    ]
    if not any(verdict and verdict is not Verdict.DIFFERENT_WORK for verdict in given):
        return nothing_judged("No environment has a verdict")
    return Exit.SLOWER if Verdict.SLOWER in given else Exit.OK


def nothing_judged(what: str) -> Exit:
    """Say that nothing was checked, and which exit code that is."""
    print(f"harness: {what}, so nothing was checked for --fail-on.", file=sys.stderr)
    return Exit.NOTHING_SELECTED
