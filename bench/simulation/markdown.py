"""Tables in Markdown, and the numbers in their cells."""

from collections.abc import Iterable, Sequence


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the headings, and each row as soon as it is available."""
    print(f"| {' | '.join(heads)} |\n| {' | '.join('---' for _ in heads)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def format_percent(share: float) -> str:
    """Format a share as a percentage: `2.5 %`."""
    return f"{100.0 * share:.1f} %"
