"""Work counts as text, for reports, searches and the history."""

from harness.analysis.work_counts import COUNTS, Work, compare_functions
from harness.report import format

#: The largest number of functions that explain a change.
LISTED_FUNCTIONS = 3


def format_count(count: float) -> str:
    """Format a count per step. It may be fractional if one call does several steps."""
    return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"


def describe_change(work: Work, other: Work) -> str:
    """Return the counts that differ, and the functions with the largest changes; empty if no count differs."""
    parts: list[str] = []
    for name, label in COUNTS.items():
        count, other_count = work.counts[name], other.counts[name]
        if count != other_count:
            unit = label if parts else f"{label} per step"
            factor = f" ({format.factor(count / other_count)})" if count and other_count else ""
            parts.append(f"{format_count(count)} {unit} instead of {format_count(other_count)}{factor}")
    functions = [
        f"{'+' if change > 0 else '−'}{format_count(abs(change))} {'' if calls else 'C '}calls in {function} ({file})"
        for file, function, calls, change in compare_functions(work, other)[:LISTED_FUNCTIONS]
    ]
    text = f"{', '.join(parts)}." if parts else ""
    return f"{text} Largest changes: {', '.join(functions)}." if parts and functions else text
