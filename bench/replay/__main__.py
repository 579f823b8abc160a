"""Nightly runs of past days: `python -m bench.replay measure FOLDER …`, and `python -m bench.replay figures FOLDER…`.

`measure` starts a replay, or continues the replay in the folder. It replays a release line or always the same wheel, or
scenarios that get slower from some nightly run on. Arguments after `--` are for `harness matrix`. The page
README.md in this folder has examples and results.
"""

import argparse
import shlex
import sys
from pathlib import Path

from bench.replay import nights
from harness.model.errors import UsageError

#: The first day of a replay of one wheel; its days have no other meaning than their order.
FIRST = "2026-01-01"


def main() -> None:
    """Measure a replay's nightly runs, or print the figures of replays."""
    parser = _parser()
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = parser.parse_args(own)
    if options.command == "measure":
        folder = options.folder.absolute()
        if (folder / nights.PLAN).exists():
            if options.line or options.environment:
                parser.error(f"{folder} has a plan already. To continue it, pass the folder only.")
        else:
            nights.store_plan(folder, _plan(parser, options, sys.argv[len(own) + 2 :]))
        nights.replay(folder, shlex.split(options.before), options.after)
    else:
        from bench.replay import figures  # noqa: PLC0415 - otava takes a second to load

        print(figures.page([figures.read(folder) for folder in options.folders], options.asv))


def _plan(parser: argparse.ArgumentParser, options: argparse.Namespace, matrix: list[str]) -> nights.ReplayPlan:
    if bool(options.line) == bool(options.environment):
        parser.error("Pass --line or -e for a new replay.")
    if options.line:
        days = nights.days_between(options.first, options.last, options.every)
        days = nights.coarse_to_fine(days) if options.coarse else days
    else:
        days = nights.days_between(FIRST, "2026-12-31", 1)[: options.nights]
    pairs = [pair.split(":") for pair in options.plant.split(",") if pair]
    sizes = {int(percent): int(count) for percent, count in pairs}
    try:
        planted = nights.plant(sizes, len(days))
    except UsageError as error:
        parser.error(str(error))
    return nights.ReplayPlan(
        environment=options.line or options.environment,
        baseline=options.baseline,
        days=days,
        is_line=bool(options.line),
        arguments=matrix,
        confirm=shlex.split(options.confirm),
        planted=planted,
        confirms=not options.coarse,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="measure the nightly runs of a replay that aren't stored yet")
    measure.add_argument("folder", type=Path)
    measure.add_argument("--line", default="", help="the release line, whose version on each day is measured")
    measure.add_argument("-e", dest="environment", default="", help="the environment, the same in each nightly run")
    measure.add_argument("--baseline", default="tf2.21")
    measure.add_argument("--from", dest="first", default=FIRST)
    measure.add_argument("--to", dest="last", default="2026-10-27")
    measure.add_argument("--every", type=int, default=3, help="days between nightly runs")
    measure.add_argument(
        "--coarse", action="store_true", help="from few days far apart to all days, without confirmations"
    )
    measure.add_argument("--nights", type=int, default=60)
    measure.add_argument("--plant", default="", help="planted steps, PERCENT:COUNT,…")
    measure.add_argument("--confirm", default="", help="arguments of `harness history confirm`")
    measure.add_argument("--before", default="", help="words before each measuring command, such as nice")
    measure.add_argument(
        "--after", default="", help="a shell command after each nightly run, such as one that removes environments"
    )
    figures = commands.add_parser("figures", help="print the results as Markdown")
    figures.add_argument("folders", type=Path, nargs="+")
    figures.add_argument("--asv", default="", help="the Python interpreter that has asv, for asv's rule")
    return parser


if __name__ == "__main__":
    main()
