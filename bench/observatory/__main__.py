"""Nightly wheels of Keras, their steps, and pages about what is slow today.

- `python -m bench.observatory scan FOLDER --python PYTHON`: count the calls of each series in nightly wheels, until
  each change is between two successive wheels, and write counts.json. PYTHON has tensorflow-cpu 2.21.0 and dm-tree.
- `… confirm FOLDER --python PYTHON SERIES BEFORE AFTER`: measure two wheels side by side, and the second one with the
  old functions put back. It prints the step for steps.json, without its cause in words.
- `… measure FOLDER [-- OPTION…]`: measure wheels of a line, at least three days apart, six in each run. The options
  are for `harness matrix`. An interrupted command continues. `--part 1/2` measures every second run.
- `… collect FOLDER…`: add the nightly runs of such folders and of replays (`python -m bench.replay measure`) to
  series.json and launches.tar.xz.
- `… build build/site/observatory`: write the pages, as `make docs` does.
"""

import argparse
import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from bench.observatory import collect, measure, site
from bench.observatory.confirm import confirm
from bench.observatory.scan import SERIES, WheelScan, check_packages, list_wheels, scan, store_counts
from bench.replay.nights import RESULTS
from harness.model.errors import UsageError

#: The first version of Keras 3.
FIRST = "3.0.0.dev0"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.observatory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    scanned, confirmed = commands.add_parser("scan"), commands.add_parser("confirm")
    for command in (scanned, confirmed):
        command.add_argument("folder", type=Path)
        command.add_argument("--python", type=Path, required=True)
        command.add_argument("--package", default="keras-nightly")
    scanned.add_argument("--every", type=int, default=18, help="days between the first wheels")
    confirmed.add_argument("series", choices=SERIES)
    confirmed.add_argument("before")
    confirmed.add_argument("after")
    confirmed.add_argument("--rounds", type=int, default=6)
    confirmed.add_argument("--file", dest="files", action="append", default=[], help="a file of the wheel to put back")
    measured = commands.add_parser("measure")
    measured.add_argument("folder", type=Path)
    measured.add_argument("--line", default="tf2.21+keras-nightly")
    measured.add_argument("--baseline", default="tf2.21")
    measured.add_argument("--every", type=int, default=3, help="days between wheels")
    measured.add_argument("--at-once", type=int, default=6, help="wheels in each run")
    measured.add_argument("--part", type=_parse_part, default="1/1", help="I/N: every Nth run, from the Ith on")
    commands.add_parser("collect").add_argument("folders", type=_find_runs, nargs="+", metavar="FOLDER")
    commands.add_parser("build").add_argument("folder", type=Path)
    return parser


def _parse_part(text: str) -> tuple[int, int]:
    part = re.fullmatch(r"(\d+)/(\d+)", text)
    if not part or not 1 <= int(part[1]) <= int(part[2]):
        raise argparse.ArgumentTypeError(f"{text} is not I/N, with I from 1 to N. Example: 1/2")
    return int(part[1]), int(part[2])


def _find_runs(text: str) -> Path:
    if not (Path(text) / RESULTS).is_dir():
        raise argparse.ArgumentTypeError(f"{text} has no nightly runs: its folder {RESULTS} is missing.")
    return Path(text)


def main() -> None:
    """Scan, confirm or measure wheels, collect nightly runs, or write the pages."""
    parser = make_parser()
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = parser.parse_args(own)
    if options.command == "collect":
        print(collect.collect(options.folders))
    elif options.command == "build":
        print(site.build(options.folder))
    elif options.command == "measure":
        versions = list_wheels(options.line.rpartition("+")[2], FIRST)
        days = measure.read_days(options.line)
        first, count = options.part
        runs = measure.plan_runs(versions, days, options.every, options.at_once)[first - 1 :: count]
        measure.measure(options.folder.absolute(), options.baseline, options.line, runs, sys.argv[len(own) + 2 :])
    else:
        check = [options.python, "-c", "import tensorflow, tree"]
        if not options.python.is_file() or subprocess.run(check, capture_output=True, check=False).returncode:
            parser.error(
                f"{options.python} can't import TensorFlow and dm-tree. Install tensorflow-cpu and dm-tree there."
            )
        versions = list_wheels(options.package, FIRST)
        wheels = WheelScan(options.package, versions, options.python.absolute(), options.folder.absolute())
        if options.command == "scan":
            try:
                check_packages(wheels.python, wheels.folder)
            except UsageError as error:
                parser.error(str(error))
            scan(wheels, options.every)
            store_counts(wheels)
        else:
            for version in (options.before, options.after):
                if version not in versions:
                    parser.error(f"The package index has no {options.package} {version}.")
                if version not in wheels.read():
                    wheels.count(version)
            step = confirm(wheels, options.series, options.before, options.after, options.rounds, files=options.files)
            print(json.dumps(asdict(step), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
