"""The command, on a disk that is full from one write on: `python full.py DISK WHEN LOG ARGUMENT…`.

Each file that is opened to be written to is a write, `NAME#N` is the Nth of a file's; a name on its own is the first of
them. At `WHEN` the disk is filled to its last byte, just before the file is opened, and stays full. `LOG` gets a line
for each write.
"""

import os
import re
import sys
from pathlib import Path

FILLER = ".filler"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def fill(disk: Path) -> None:
    """Take all that is left of a disk."""
    with (disk / FILLER).open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def named(name: str) -> str:
    """A file's name without what a write that is not finished adds; a run's lock is named after the run."""
    name = re.sub(r"^\.(.+)\.[0-9a-f]{8}\.part$", r"\1", name)
    return re.sub(r"^[0-9]{4}-.*\.lock$", "RUN.lock", name)


def main(disk: Path, when: str, log: Path) -> None:
    """Listen to what is opened, and run the command."""
    counts: dict[str, int] = {}
    wanted = when if "#" in when else f"{when}#1"

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[2], int) or not arguments[2] & WRITES:
            return
        if isinstance(arguments[0], int):
            return
        path = Path(os.fsdecode(arguments[0]))  # type: ignore[arg-type]
        # what is opened below a folder's descriptor has no more than a name here
        if path.name == FILLER or path == log or (path.is_absolute() and not path.is_relative_to(disk)):
            return
        name = named(path.name)
        counts[name] = counts.get(name, 0) + 1
        with log.open("a") as file:
            file.write(f"{name}#{counts[name]}\n")
        if f"{name}#{counts[name]}" == wanted:
            fill(disk)

    sys.addaudithook(watch)
    from harness.cli import main as command
    from harness.model.backend import ENVIRONMENT_BYTES

    # the environments of these tests contain no TensorFlow, so they fit on a small disk
    ENVIRONMENT_BYTES.update(dict.fromkeys(ENVIRONMENT_BYTES, 0))
    command()


if __name__ == "__main__":
    where, moment, log, *sys.argv[1:] = sys.argv[1:]
    main(Path(where), moment, Path(log))
