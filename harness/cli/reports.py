"""Shows what a run's reports say, and where they lie."""

import sys

from harness.report import terminal
from harness.session import Written


def show(written: Written, *, tables: bool = True) -> None:
    """Print the tables on stdout, and on stderr where the reports are."""
    if tables:
        terminal.show(written.sections)
        sys.stdout.flush()
    first, *others = [path for path in written.files if path.parent.name != "charts"]
    beside = f" (and {', '.join(each.name for each in others)})" if others else ""
    print(f"{'Profile' if first.stem == 'profile' else 'Report'}: {first}{beside}", file=sys.stderr)
