"""`--fail-on`: what a gate finds in a run's verdicts."""

from collections.abc import Iterable
from enum import Enum

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.scenario import ENVIRONMENT


class Gate(Enum):
    """What a gate found. One that judged nothing is not passed: nobody knows."""

    PASSED = "passed"
    SLOWER = "slower"
    NOTHING_JUDGED = "nothing judged"


def gate(results: Results) -> Gate:
    """Whether an environment is slower than the run's reference in some row.

    What is compared along an axis has no bad side: it is no regression that eager mode is slower than graph mode.
    """
    return judged(
        value.compared.verdict
        for table in results.tables
        for row in table.rows
        for head, value in table.values(row)
        if head.comparison and head.comparison.along == ENVIRONMENT and value.compared
    )


def judged(verdicts: Iterable[Verdict | None]) -> Gate:
    """What verdicts amount to; None and different work judge nothing."""
    given = {verdict for verdict in verdicts if verdict and verdict is not Verdict.DIFFERENT_WORK}
    if not given:
        return Gate.NOTHING_JUDGED
    return Gate.SLOWER if Verdict.SLOWER in given else Gate.PASSED
