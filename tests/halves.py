"""`make test`: the tests that need a Docker Engine, and beside them all others, each half in one process of pytest.

The first wait for containers most of the time, and share an engine, so that they run one after the other. Arguments
are pytest's.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest


def main(arguments: Sequence[str]) -> int:
    """Run both halves; what pytest's exit code would be of all tests in one process."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", default="")
    wanted, rest = parser.parse_known_args(arguments)

    def half(mark: str, **output) -> subprocess.Popen:
        marks = f"({mark}) and ({wanted.m})" if wanted.m else mark
        cache = f"cache_dir=.pytest_cache/{mark.replace(' ', '-')}"  # what failed last is kept for each half
        command = [sys.executable, "-m", "pytest", *rest, "-m", marks, "-o", cache]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **output)

    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "docker.txt")
        print(f"Those that need a Docker Engine run beside the others. What they say comes last: {path}", flush=True)
        with path.open("wb") as file:
            halves = [half("docker", stdout=file, stderr=file), half("not docker")]
        try:
            codes = {each.wait() for each in reversed(halves)}
        except (KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, SystemExit):  # Ctrl-C reaches them by itself
                for each in halves:
                    each.send_signal(signal.SIGINT)
            codes = {each.wait() for each in halves}
        print("\nTests that need a Docker Engine:", flush=True)
        sys.stdout.buffer.write(path.read_bytes())
    nothing = {pytest.ExitCode.NO_TESTS_COLLECTED}
    return max(codes - nothing or nothing, key=abs)


def _stop(*_: object) -> NoReturn:
    raise SystemExit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
