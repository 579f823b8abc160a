"""`make test`: all tests, in four parts, with three processes of pytest beside one another. Its arguments are pytest's.

Tests that wait for containers most of the time are one part, and tests whose containers are busy with TensorFlow are
another. Tests of two processes lock what they can't share (`no_gpus` in tests/docker/conftest.py).
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NoReturn

import pytest

#: Words in the names of tests, modules and folders that start many processes. The other part takes as long.
COMMANDS = "cli or fleet or faults or browser or session or nightly or readme"
#: Marks and keywords of each part, with the part's name. The last part starts when the one before it ends.
PARTS = {
    "Tests of commands": ("not docker", COMMANDS),
    "Tests that launch TensorFlow in containers": ("docker and tensorflow", ""),
    "Other tests that need a Docker Engine": ("docker and not tensorflow", ""),
    "Other tests": ("not docker", f"not ({COMMANDS})"),
}


def main(arguments: Sequence[str]) -> int:
    """Run all parts, and return pytest's exit code as if all tests ran in one process."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", default="")
    parser.add_argument("-k", default="")
    own, rest = parser.parse_known_args(arguments)

    def start(name: str, output: BinaryIO | None) -> subprocess.Popen:
        marks, keywords = (
            " and ".join(f"({words})" for words in pair if words)
            for pair in zip(PARTS[name], (own.m, own.k), strict=True)
        )
        cache = f"cache_dir=.pytest_cache/{name.replace(' ', '-')}"  # each part keeps its last failures
        command = [sys.executable, "-m", "pytest", *rest, "-m", marks, "-k", keywords, "-o", cache]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    signal.signal(signal.SIGTERM, _stop)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        first, *others, last = PARTS
        files = {name: Path(folder, f"{name}.txt") for name in (*others, last)}
        outputs = {name: stack.enter_context(path.open("wb")) for name, path in files.items()}
        print(f"{first} print here; the output of the others comes last. Until then, it is in {folder}.", flush=True)
        processes = [start(first, None), *(start(name, outputs[name]) for name in others)]
        try:
            processes[-1].wait()
            processes.append(start(last, outputs[last]))
            codes = {process.wait() for process in processes}
        except (KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, SystemExit):  # Ctrl-C reaches them by itself
                for process in processes:
                    process.send_signal(signal.SIGINT)
            codes = {process.wait() for process in processes}
        for name, path in files.items():
            print(f"\n{name}:", flush=True)
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.flush()
    nothing = {pytest.ExitCode.NO_TESTS_COLLECTED}
    return max(codes - nothing or nothing, key=abs)


def _stop(*_: object) -> NoReturn:
    raise SystemExit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
