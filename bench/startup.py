"""How long the command line takes to start, and how much memory harness needs for a run and its report."""

import statistics
import sys
import tempfile

from bench.pairs import run, seconds

HARNESS = [sys.executable, "-m", "harness"]
HEADLINE = ["matrix", "-a", "call=train_on_batch", "-a", "api=tf.keras", "--rounds", "2", "--backend", "local"]

PEAK = """
import atexit, resource, sys
from harness.cli import main
atexit.register(lambda: print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr))
sys.argv = ["harness", *sys.argv[1:]]
main()
"""


def figures() -> list[tuple[str, str]]:
    """Return the name and the value of each figure."""
    return [
        ("`harness --help`", _median(["--help"], 11)),
        (
            "`harness matrix --dry-run -s keras_step` on four environments",
            _median(["matrix", "--dry-run", "-s", "keras_step"], 11),
        ),
        ("peak memory of the orchestrator, run and report", _peak()),
    ]


def _median(arguments: list[str], count: int) -> str:
    run([*HARNESS, *arguments])
    times = [seconds(lambda: run([*HARNESS, *arguments])) for _ in range(count)]
    return f"{statistics.median(times):.2f} s (median of {count}; {min(times):.2f} to {max(times):.2f})"


def _peak() -> str:
    with tempfile.TemporaryDirectory() as results:
        process = run([sys.executable, "-c", PEAK, *HEADLINE, "--results", results])
    (line,) = [line for line in process.stderr.splitlines() if line.startswith("peak ")]
    return f"{int(line.split()[1]) / 1024:.0f} MB"
