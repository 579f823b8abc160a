"""Runs a `harness` command in a shell, here or on another machine. The command ends when its caller ends."""

import shlex
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

#: The number of last stderr lines that the error of a failed command contains.
_LAST_LINES = 3


def make_script(words: Sequence[str], python: str, *, environ: Mapping[str, str], folder: str = ".") -> str:
    """Return a shell script that runs `harness WORDS` with this Python in a folder, until the script's stdin ends.

    Then the command ends as with Ctrl-C, and keeps finished launches. So it also ends if the caller was killed.
    """
    assignments = " ".join(f"{name}={value}" for name, value in environ.items())
    return (
        f"cd {folder} || exit 1\nexec 3<&0\n"
        f"{assignments} {python} -m harness {shlex.join(words)} </dev/null >/dev/null 3<&- & pid=$!\n"
        "(cat <&3; kill -TERM $pid) >/dev/null 2>&1 & wait $pid"
    )


class ShellRunner:
    """Runs commands one after the other, and reports their stderr line by line."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command to its end, or until `stop`. Return its exit code and the last lines of its stderr."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that Ctrl-C only reaches this process, which then stops the command
        )
        last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        with self._lock:
            self._process = process
        if self._is_stopped:
            self.stop()
        assert process.stderr
        with process.stderr:
            for line in filter(str.strip, process.stderr):
                last_lines.append(line.strip())
                self._say(line.rstrip())
        code = process.wait()
        with self._lock:
            self._process = None
            _close(process)
        return code, " ".join(last_lines)

    def stop(self) -> None:
        """End the current command, as Ctrl-C does, and every later one immediately."""
        self._is_stopped = True
        with self._lock:
            if self._process:
                _close(self._process)


def _close(process: "subprocess.Popen[str]") -> None:
    if process.stdin and not process.stdin.closed:
        process.stdin.close()
