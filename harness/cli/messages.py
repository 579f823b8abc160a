"""Messages that several commands share: stderr lines, problems in files, gates, signals, and text columns."""

import errno
import json
import math
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from harness import session
from harness.cli import documents
from harness.files import get_cache_dir, get_data_dir, suggest_remedy
from harness.model.errors import CannotRunHereError, DefectError, Exit, FileError, Problem
from harness.model.texts import escape, remove_password

if TYPE_CHECKING:
    from harness.session import Gate

#: Seconds after an interruption in which further signals count as the same interruption.
ECHO_SECONDS = 2.0

#: Signals that end a command: Ctrl-C, `kill`, and a closed terminal.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


#: Numbers of write errors that aren't bugs in harness: the disk is full or read-only.
NO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def say(line: object) -> None:
    """Print lines on stderr. Characters that a terminal would interpret are escaped. `documents` also collects them."""
    documents.messages += str(line).splitlines()
    print(wrap_lines(escape(str(line), keep="\n\t"), sys.stderr), file=sys.stderr, flush=True)


def open_closed_streams() -> None:
    """Open /dev/null for each standard stream that is closed, as some daemons start programs, and report stdout.

    Otherwise, the next file that harness opens would get the stream's number, and output of other programs.
    """
    is_closed = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - open until the process ends
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if is_closed:
        say("harness: Standard output is closed, so output is discarded. To keep it: harness … > FILE")


def describe_not_written(error: OSError) -> CannotRunHereError:
    """Return the error about a file or an output that can't be written, with advice."""
    if error.filename is None:  # drop the buffered output, which couldn't be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    variable = _find_variable(error)
    choice = f", or set {variable} to a folder that you can write to" if variable else ", then run the command again"
    verb = "accessed" if error.errno == errno.EACCES else "written"
    return CannotRunHereError(
        f"{error.filename or 'The output'} cannot be {verb}: {error.strerror}. Finished launches are saved.",
        f"{suggest_remedy(error)}{choice}.",
    )


def is_denied(error: OSError) -> bool:
    """Return whether the user may not access a file in the data folder or the cache, as in another user's home."""
    return error.errno == errno.EACCES and bool(_find_variable(error))


def _find_variable(error: OSError) -> str:
    """Return the variable that sets the folder of the file that an error names; empty for a file of another folder."""
    folders = {"HARNESS_DATA_DIR": get_data_dir(), "HARNESS_CACHE_DIR": get_cache_dir()}
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | Path) else Path()
    return next((name for name, folder in folders.items() if path.is_relative_to(folder)), "")


def confirm_on_terminal(question: str, *, default: bool = False) -> bool:
    """Ask a question on the terminal. Ctrl-C and Ctrl-D interrupt the command, as anywhere else."""
    try:
        return typer.confirm(question, default=default, err=True)
    except typer.Abort:
        raise KeyboardInterrupt from None


def tell(text: object) -> None:
    """Print a result of one or several lines on stdout. Characters are escaped, and lines wrapped, as in `say`."""
    print(wrap_lines(escape(str(text), keep="\n\t"), sys.stdout), flush=True)


def tell_json(value: object) -> None:
    """Print a JSON document on stdout."""
    print(json.dumps(value, indent=2), flush=True)


def wrap_lines(text: str, stream: TextIO) -> str:
    """Wrap the lines of a text to the width of `stream`, if it is a terminal.

    Paths, commands at the end of a line, and lines that start with four spaces are never wrapped, so that users can
    copy them.
    """
    width = _get_width(stream)
    return "\n".join(line for long_line in text.split("\n") for line in _wrap_line(long_line, width))


def _get_width(stream: TextIO) -> int:
    """Return the width of a terminal; 0 if the stream isn't one."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def _wrap_line(line: str, width: int) -> Iterator[str]:
    if len(line) <= width or not width or line.startswith("    "):
        yield line
        return
    text, command, arguments = line.partition(": harness ")
    wrapped, *words = f"{text}{command[:1]}".split(" ")
    for word in [*words, *([f"harness {arguments}"] if command else [])]:
        if wrapped.strip() and len(wrapped) + 1 + len(word) > width:
            yield wrapped
            wrapped = word
        else:
            wrapped = f"{wrapped} {word}"
    yield wrapped


def describe_defect(error: Exception) -> DefectError:
    """Return the error about an internal error, with instructions for a bug report.

    `HARNESS_DEBUG=1` shows the traceback.
    """
    if os.environ.get("HARNESS_DEBUG"):
        traceback.print_exception(error)
    frames, package = traceback.extract_tb(error.__traceback__), Path(__file__).parents[1]
    own_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(package)]
    location = ""
    if own_frames:
        location = f" at {Path(own_frames[-1].filename).relative_to(package.parent)}:{own_frames[-1].lineno}"
    message = remove_password(str(error))[:200]
    return DefectError(
        f"this is a bug in harness: {type(error).__name__} {message!a}{location}. Finished launches are saved.",
        "Please report it with this line, your command, its file or run folder, the output of `harness --version`, and "
        "the output of the command with HARNESS_DEBUG=1.",
    )


def format_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format the rows of a table as lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def tell_lines(lines: Iterable[str]) -> None:
    """Print the lines of a list on stdout. A terminal gets the start of a line that is too long, and an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    width = _get_width(sys.stdout)
    for line in map(escape, lines):
        print(f"{set_cell_size(line, width - 1)}…" if 0 < width < cell_len(line) else line)


def say_torn(folder: Path) -> None:
    """If the file of launches ends in an incomplete line, print a message and a command to continue the run."""
    if session.is_torn(folder):
        say(
            f"{folder / 'launches.jsonl'} ends in the middle of a line: its run was killed, or the file was "
            "truncated. The complete launches are used.\nTo measure the missing launches: harness matrix --resume "
            f"{shlex.quote(str(folder))}"
        )


def say_problems(problems: Iterable[Problem]) -> None:
    """Print problems in the form `FILE:LINE: problem. Fix.`, so that editors can open the line.

    Paths below the current folder are relative to it.
    """
    for problem in problems:
        say(escape(str(replace(problem, path=_shorten_path(problem.path))), keep="\t"))


def _shorten_path(path: Path) -> Path:
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def say_broken(broken: Mapping[str, FileError]) -> None:
    """Print the problems in the files of scenarios that were left out."""
    for error in broken.values():
        say_problems(error.problems)


def say_refused(refused: Mapping[str, FileError]) -> None:
    """Print the scenarios that don't run, with the reasons."""
    say_broken(refused)
    if refused:
        say(
            f"These scenarios are not run, because their files have problems: {', '.join(refused)}. The other "
            f"scenarios are run."
        )
        paths = [str(_shorten_path(error.problems[0].path)) for error in refused.values()]
        say(f"After you fix the files, check them: harness scenarios check {shlex.join(paths)}")


def choose_gate_exit(found: "Gate", nothing: str) -> Exit:
    """Return the exit code of a gate. If the gate judged nothing, print the reason (`nothing`) and fail."""
    if found is session.Gate.NOTHING_JUDGED:
        say(f"harness: {nothing}, so --fail-on had nothing to check.")
        return Exit.NOTHING_SELECTED
    return Exit.SLOWER if found is session.Gate.SLOWER else Exit.OK


@contextmanager
def handle_signals(words: Callable[[int], str] = lambda count: "Stopping…" if count == 1 else "") -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C within the block, so that they end all started processes.

    `words` returns the message for the signal with this number (1 for the first one). Signals that were ignored before
    (by nohup, or in a shell's background job) stay ignored.
    """
    count, counted_at = 0, -math.inf

    def interrupt(*_: object) -> None:
        nonlocal count, counted_at
        now = time.monotonic()
        # a terminal sends Ctrl-C to all processes, and the parent may forward it, so one key press can arrive twice.
        # `counted_at` is the time of the last counted signal, so a user who presses Ctrl-C repeatedly isn't ignored
        if now - counted_at < ECHO_SECONDS:
            return
        count, counted_at = count + 1, now
        message = words(count)
        if message:
            # `print` isn't reentrant, and the signal may have interrupted one
            os.write(2, f"\n{wrap_lines(message, sys.stderr)}\n".encode())
        raise KeyboardInterrupt

    earlier_handlers = {number: signal.getsignal(number) for number in SIGNALS}
    handled_signals = [number for number, handler in earlier_handlers.items() if handler is not signal.SIG_IGN]
    for number in handled_signals:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in handled_signals:
            signal.signal(number, earlier_handlers[number])
