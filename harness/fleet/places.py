"""Places that measure shards: slots of this machine (here), SSH hosts (ssh.py) and nodes of a Ray cluster (ray.py).

To each place, a shard is a shell script. A place runs the script, reports its stderr, and stores the folder of its run.
On another machine, the script unpacks the parcel (parcel.py) into a folder of the shard, and installs the packages of
harness there with uv. The folder stays until a finished run has been copied, so that the next script with the same name
continues the run.
"""

import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from harness.model.errors import Exit

#: The exit codes of a shard's command that has measured everything that it could.
FINISHED_CODES = (Exit.OK, Exit.CELLS_FAILED, Exit.SLOWER)

#: The folder of shards on another machine, below the user's home.
FOLDER = ".cache/harness-fleet"

#: The number of last stderr lines that the message of a failed command contains.
LAST_LINES = 3


class Place(Protocol):
    """A place that measures shards, one at a time."""

    name: str

    def measure(self, shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        """Run `harness WORDS` in this place, and put its run into the new folder `into`.

        `shard` is a name of the run and its shard. If this place has an unfinished run of this name, it is continued.
        `earlier` is the unfinished run of this shard on this machine, if there is one. Return the command's exit code
        and the last lines of its stderr. Raises CannotRunHereError if this place can't measure any more.
        """
        ...

    def stop(self) -> None:
        """End the current command, as Ctrl-C does, and every later one immediately."""
        ...


class ShellPlace:
    """A place that measures with processes on this machine. `say` gets their stderr line by line, with the name."""

    def __init__(self, name: str, say: Callable[[str], object]) -> None:
        self.name, self._say = name, say
        self._lock = threading.Lock()
        self._stdin: IO[str] | None = None
        self._is_stopped = False

    def run(self, command: Sequence[str], output: IO[bytes] | int = subprocess.DEVNULL) -> tuple[int, str]:
        """Run a command to its end, or until `stop`, with its stdout in the file `output`.

        Return its exit code and the last lines of its stderr.
        """
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that Ctrl-C only reaches this process, which then stops the command
        )
        assert process.stdin
        assert process.stderr
        last_lines: deque[str] = deque(maxlen=LAST_LINES)
        with self._lock:
            self._stdin = process.stdin
        if self._is_stopped:
            self.stop()
        with process.stderr:
            for line in filter(str.strip, process.stderr):
                last_lines.append(line.strip())
                self._say(f"{self.name}: {line.rstrip()}")
        code = process.wait()
        with self._lock:
            process.stdin.close()
        return code, " ".join(last_lines)

    def stop(self) -> None:
        """End the current command, as Ctrl-C does, and every later one immediately."""
        self._is_stopped = True
        with self._lock:
            if self._stdin:
                self._stdin.close()


class LocalPlace(ShellPlace):
    """A slot of this machine. The command of a shard finds its own slot. Runs are continued with the words `longer`."""

    def __init__(self, name: str, say: Callable[[str], object], longer: Sequence[str] = ()) -> None:
        super().__init__(name, say)
        self._longer = longer

    def measure(self, shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        """Run the command, or continue the earlier run."""
        words = [*words, "--results", str(into)]
        if earlier:
            words = ["matrix", "--resume", str(earlier), *self._longer, "--wait"]
        script = make_stoppable(shlex.join([sys.executable, "-m", "harness", *words]))
        return self.run(["sh", "-c", f"{script}\nexit $code"])


def make_stoppable(command: str) -> str:
    """Return a shell script that runs a command without input and output, and sets `code` to its exit code.

    When the script's stdin ends, the command ends as with Ctrl-C, and keeps finished launches. So it also ends if the
    process that started the script was killed.
    """
    return (
        f"exec 3<&0\n{command} </dev/null >/dev/null 3<&- & pid=$!\n"
        "(cat <&3; kill -TERM $pid) >/dev/null 2>&1 & wait $pid; code=$?"
    )


#: The command in the script of `make_remote_script`.
REMOTE_COMMAND = 'PYTHONPATH=$PWD/code HARNESS_PROJECT=$PWD/project env/bin/python -m harness "$@"'


def make_remote_script(words: Sequence[str]) -> str:
    """Return a shell script that prepares REMOTE_COMMAND in the folder of a shard, which contains the parcel's files.

    The command is `harness WORDS`, or continues the run in the folder `runs`. The script ends with the exit code
    CANNOT_RUN_HERE if the packages can't be installed.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"""\
uv=$(command -v uv || echo ./uv)
test -x "$uv" || {{ echo "uv isn't installed: python -m pip install uv" >&2; exit {Exit.CANNOT_RUN_HERE:d}; }}
"$uv" venv -q --allow-existing --python {version} env &&
"$uv" pip install -q --no-deps --python env/bin/python -r packages.txt || exit {Exit.CANNOT_RUN_HERE:d}
set -- {shlex.join([*words, "--results", "runs"])}
for run in runs/*; do
    if test -e "$run/run.json"; then set -- matrix --resume "$run" --wait; fi
done"""
