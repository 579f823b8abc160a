"""`make bench`, or `make bench ARGS="startup agreement"`."""

import sys
from collections.abc import Callable

from bench import agreement, history, overhead, report_cost, startup
from harness import __version__
from harness.machine import host

PARTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "startup": startup.figures,
    "report": report_cost.figures,
    "overhead": overhead.figures,
    "history": history.figures,
    "agreement": agreement.figures,
}


def main(names: list[str]) -> None:
    """Measure the named parts, or all, and print a Markdown table."""
    rows = [row for name in names or PARTS for row in PARTS[name]()]
    facts = host.read_facts()
    print(f"harness {__version__} on {facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, {facts['system']}\n")
    print("| figure | value |\n| --- | --- |")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main(sys.argv[1:])
