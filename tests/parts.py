"""`make test`: all tests, in three processes of pytest beside one another. Its arguments are pytest's.

Apart are those that wait for containers most of the time, and those whose containers are busy with TensorFlow. What
tests of two processes cannot share, they lock (`no_gpus` in tests/docker/conftest.py).
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

#: What pytest is told to select, by what is said of it.
CONTAINERS = {
    "Tests that launch TensorFlow in containers": "docker and tensorflow",
    "Other tests that need a Docker Engine": "docker and not tensorflow",
}
OTHERS = "not docker"


def main(arguments: Sequence[str]) -> int:
    """Run all parts; what pytest's exit code would be of all tests in one process."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", default="")
    wanted, rest = parser.parse_known_args(arguments)

    def part(marks: str, **output) -> subprocess.Popen:
        cache = f"cache_dir=.pytest_cache/{marks.replace(' ', '-')}"  # what failed last is kept for each part
        marks = f"({marks}) and ({wanted.m})" if wanted.m else marks
        command = [sys.executable, "-m", "pytest", *rest, "-m", marks, "-o", cache]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **output)

    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory() as folder:
        parts, said = [], {}
        for number, (title, marks) in enumerate(CONTAINERS.items()):
            said[title] = Path(folder, f"{number}.txt")
            print(f"{title} run beside the others. What they say comes last; until then: {said[title]}", flush=True)
            with said[title].open("wb") as file:
                parts.append(part(marks, stdout=file, stderr=file))
        parts.append(part(OTHERS))
        try:
            codes = {each.wait() for each in reversed(parts)}
        except (KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, SystemExit):  # Ctrl-C reaches them by itself
                for each in parts:
                    each.send_signal(signal.SIGINT)
            codes = {each.wait() for each in parts}
        for title, path in said.items():
            print(f"\n{title}:", flush=True)
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.flush()
    nothing = {pytest.ExitCode.NO_TESTS_COLLECTED}
    return max(codes - nothing or nothing, key=abs)


def _stop(*_: object) -> NoReturn:
    raise SystemExit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
