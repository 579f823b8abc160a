"""What the sources state, against what was observed."""

from collections import Counter
from collections.abc import Sequence

from harness.analysis.expectations import Standing, Statement
from harness.report.sentences import counted


def counts(found: Sequence[Statement]) -> str:
    """How the statements stand, each counted in every cell that it is about."""
    standings = Counter(check.standing for statement in found for check in statement.checks)
    told = ", ".join(f"{standings[standing]} {standing.value}" for standing in Standing if standings[standing])
    total = counted(sum(standings.values()), "statement")
    return f"Of {total} of the sources, each counted in every cell that it is about: {told}."
