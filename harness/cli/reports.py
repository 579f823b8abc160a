"""Shows what a run's reports say, and where they lie."""

import sys

from harness.report import terminal
from harness.session import Written


def show(written: Written, *, tables: bool = True) -> None:
    """Print the tables on stdout, and on stderr where the reports are."""
    kind = "Report"
    if isinstance(written.shown, str):
        kind = "Profile"
        if tables:
            print(written.shown)
    elif tables:
        terminal.lay_out(written.shown)
    sys.stdout.flush()
    first, *others = written.files
    print(f"{kind}: {first} (and {', '.join(each.name for each in others)})", file=sys.stderr)
