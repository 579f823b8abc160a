"""Pages about what is slow today: `python -m bench.observatory collect FOLDER…`, and `… build build/site/observatory`.

`collect` adds the nightly runs of replays (folders of `python -m bench.replay measure`) to series.json and
launches.tar.xz. `build` writes the pages, as `make docs` does.
"""

import argparse
from pathlib import Path

from bench.observatory import collect, site


def main() -> None:
    """Collect nightly runs, or write the pages."""
    parser = argparse.ArgumentParser(prog="python -m bench.observatory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("collect", help="add the nightly runs of replays").add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER"
    )
    commands.add_parser("build", help="write the pages").add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "collect":
        print(collect.collect(options.folders))
    else:
        print(site.build(options.folder))


if __name__ == "__main__":
    main()
