"""`python -m bench.asv_comparison [--pairs N] [--loaded] [-- OPTION…]`: alternate harness and asv, print Markdown."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from bench import loads
from bench.asv_comparison import harness_side
from bench.asv_comparison.asv_side import ASV, Asv
from bench.asv_comparison.results import HEAD, Measured, format_coverage, format_variability, row
from harness import __version__
from harness.machine import host
from harness.model.errors import HarnessError

#: The options for the ratio on the idle machine: many rounds, and long launches.
QUIET = ["--rounds", "16", "--budget", "10m", "--measure", "1s"]


def main() -> None:
    """Measure pairs, print the result of each run when it ends, and then the variability of the runs."""
    parser = _parser()
    options = parser.parse_args()
    if options.folder and options.folder.exists():
        parser.error(f"{options.folder} is there already")
    facts = host.read_facts()
    print(f"harness {__version__} and {ASV} on {facts['cpu']}, {facts['cores']} cores, {facts['system']}\n\n{HEAD}")
    measured = []
    with tempfile.TemporaryDirectory(prefix="asv-comparison-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        truth = None
        if options.loaded:
            truth, _ = harness_side.measure(folder / "quiet", QUIET)
            print(row(truth), flush=True)
        for entry in _pairs(folder, options):
            measured.append(entry)
            print(row(entry), flush=True)
    if options.pairs > 1:
        print(f"\n{format_variability(measured)}")
    if truth:
        print(f"\n{format_coverage(measured, truth)}")


def _pairs(folder: Path, options: argparse.Namespace) -> Iterator[Measured]:
    asv = None
    load = loads.on_and_off if options.loaded else nullcontext
    for _ in range(options.pairs):
        with load():
            harness, cpus = harness_side.measure(folder / "harness", options.harness)
        yield harness
        asv = asv or Asv(folder, options.rounds, cpus)
        with load():
            theirs = asv.measure(options.seconds or harness.seconds)
        yield theirs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.asv_comparison", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1, help="how often both measure, in turn")
    parser.add_argument(
        "--seconds", type=float, help="asv's wall time in a pair; without it, that of the harness's run"
    )
    parser.add_argument("--rounds", type=int, default=2, help="asv's processes in each environment; its default is 2")
    parser.add_argument(
        "--loaded",
        action="store_true",
        help="load the machine on and off, after one long run of the harness without that: whose intervals hold its"
        " ratio?",
    )
    parser.add_argument("--folder", type=Path, help="keep everything in this new folder, not in a temporary folder")
    parser.add_argument("harness", nargs="*", metavar="OPTION", help="more options of `harness matrix`, after --")
    return parser


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(str(error))
