"""Runs a plain script, which doesn't know harness, as the only step of a launch, or times steps within it.

The output of the script is captured, and the time for importing TensorFlow and Keras is separate. The script ends as
in Python: after its threads and child processes. Only functions registered with atexit don't run.
"""

import ctypes
import functools
import hashlib
import importlib.util
import os
import statistics
import sys
import tempfile
import threading
import types
import weakref
from contextlib import suppress
from time import perf_counter, process_time

from . import marks, own_code
from .events import ReaderGone
from .launch_watch import LaunchWatch, dump_threads, idle_reason, stack_text
from .outcome import NotAvailable, ScriptFailed, one_line
from .printed import NumberError, find_numbers, render_output
from .script_errors import describe_exit, describe_line, report_error
from .steps import ImportClock, Steps

# Packages whose import counts as TensorFlow import time, including everything that they import.
PACKAGES = ("tensorflow", "keras", "tf_keras")

IMPORT, OWN = "import", "own work"

# The largest number of saved lines of a script's output, of characters per line, and of bytes of a failed script's
# output.
LINES, CHARACTERS, TAIL = 100, 200, 4000

# The largest number of bytes to read, and of numbers per --grep that are saved individually.
READ, NUMBERS = 64 << 20, 1000

# A script did nothing if its code took less than this share of the time, and less than this many seconds. The second
# limit in seconds is for scripts whose text has only definitions and imports.
NOTHING, NOTHING_SECONDS, PASSIVE_SECONDS = 0.01, 0.01, 0.05


def run_script(
    bench, name, source, *, arguments=(), grep=(), compare=(), functions=(), stdin=None, shown="", is_command=False
):
    """Run the text `source` as the script `name` in the current folder, and report its results.

    - arguments: the arguments of the script; stdin: the name of the file for its standard input
    - grep: per regular expression, the pattern and the names of the numbers that its groups find
    - compare: per ratio, its name and the names of two such numbers
    - functions: the functions whose calls are steps. Without steps, the whole script is one step
    - shown: the name of the file that contains the script, for messages; by default `name`
    - is_command: the import of TensorFlow counts as work, because a shell command runs the script

    Raises ScriptFailed if the script fails or doesn't do what is requested, and NotAvailable if none of its own code
    ran.
    """
    path, shown = write_script(name, source), shown or name
    steps = Steps(bench.fetch)
    code, has_steps = compile_script(shown, source, path, functions)
    module = types.ModuleType("__main__")
    module.__file__ = path
    setattr(module, marks.CLOCK, steps)
    printed, errors, imports = Printed(), Errors(sys.stderr), ImportClock(PACKAGES)

    def abandon(seconds, frame):
        dump_threads()
        os.write(2, printed.tail().encode("utf-8", "replace"))
        describe = functools.partial(describe_line, shown, source)
        bench.abandon(idle_reason(seconds, frame, path, describe), stack_text(frame, path))

    bench.is_watched = True
    end = None if bench.device_name == "gpu" else abandon
    watch = LaunchWatch(end, report=bench.report_memory, limit=bench.limit)

    def work():
        with printed, imports, watch:
            connect(name, arguments, stdin)
            execute(code, module, source, errors, shown)

    try:
        if has_steps:
            bench.stepwise(work, steps.samples)
        else:
            bench.once(work)
    except ScriptFailed:
        sys.stderr.write(printed.tail())
        raise
    total_seconds, cpu_seconds = printed.seconds, printed.cpu_seconds
    own_seconds = min(total_seconds - imports.seconds, cpu_seconds - imports.cpu_seconds)
    if not (has_steps or is_command) and imports.seconds and own_seconds < NOTHING * total_seconds:
        kind = own_code.kind(source)
        if own_seconds < (NOTHING_SECONDS if kind == own_code.CODE else PASSIVE_SECONDS):
            text = "its own code did nothing: {:.0f} of {:,.0f} ms, and imports took the rest. {}"
            raise NotAvailable(text.format(1e3 * max(0.0, own_seconds), 1e3 * total_seconds, own_code.ADVICE[kind]))
    bench.took(IMPORT, imports.seconds, imports.cpu_seconds)
    bench.took(OWN, max(0.0, total_seconds - imports.seconds), max(0.0, cpu_seconds - imports.cpu_seconds))
    text = render_output(printed.text())
    bench.observe("output", summarize_output(text))
    observe_numbers(bench, (text, render_output(errors.text()) if grep else ""), grep, compare)


def observe_numbers(bench, texts, grep, compare):
    """Record the numbers that a script printed, with their units, and ratios of two of them. Raises ScriptFailed.

    `texts` are the standard output and the standard error, because logs and progress bars use the latter. The first
    text in which a pattern finds its numbers counts.
    """
    by_label, units, settings = {}, {}, {}
    for pattern, names in grep:
        numbers = {}
        try:
            for text in texts:
                numbers = find_numbers(text, pattern, names)
                if all(values for values, *_ in numbers.values()):
                    break
        except NumberError as error:
            raise ScriptFailed("--grep '{}' found {}".format(pattern, error)) from None
        if not all(values for values, *_ in numbers.values()):
            lines = [line for text in texts for line in text.split("\n") if line.strip()]
            first_line = "It printed: {!r}".format(lines[0][:CHARACTERS]) if lines else "It printed nothing"
            raise ScriptFailed("--grep '{}' finds nothing in the script's output. {}".format(pattern, first_line))
        for label, (values, unit, setting) in numbers.items():
            by_label[label], units[label], settings[label] = values, unit, setting
    # medians, because the first number is often slow
    medians = {label: statistics.median(values) for label, values in by_label.items()}
    for label, value in medians.items():
        bench.observe(label, value)
    for label, numerator, denominator in compare:
        if units[numerator] != units[denominator]:
            text = "--compare {}: only one of the two numbers has a unit of time. Match numbers of the same kind"
            raise ScriptFailed(text.format(label.partition(": ")[2]))
        if medians[numerator] > 0.0 and medians[denominator] > 0.0:
            bench.observe(label, medians[numerator] / medians[denominator])
    if by_label:
        bench.observe("printed", {label: values[:NUMBERS] for label, values in by_label.items()})
        bench.observe("printed units", units)
        labels = {
            label: [setting[0], setting[1][:NUMBERS], setting[2]] for label, setting in settings.items() if setting
        }
        bench.observe("printed labels", labels)


def write_script(name, source):
    """Write the script to this folder, or to a new folder if another file has the same name. Return the file's path.

    The new folder has links to all other files of this folder, because a script can look for them next to `__file__`.
    """
    data = source.encode("utf-8", "surrogateescape")
    path = os.path.abspath(name)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return path
        folder = tempfile.mkdtemp()
        for other in os.listdir("."):
            if other != name:
                os.symlink(os.path.abspath(other), os.path.join(folder, other))
        path = os.path.join(folder, name)
        sys.path.insert(0, folder)
    with open(path, "wb") as file:
        file.write(data)
    return path


def compile_script(name, source, path, functions):
    """Return the script's code object, and whether it has steps. Raises ScriptFailed."""
    try:
        tree, has_steps = marks.instrument(source, path, functions)
        # the text if possible, because Python compiles deeper nesting in a text than in a tree
        code = compile(tree if has_steps else source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        location = describe_line(name, source, error.lineno or 1)
        raise ScriptFailed("{}: {} ({})".format(type(error).__name__, error.msg, location)) from None
    except (marks.MarkError, ValueError) as error:
        raise ScriptFailed("{}: {}".format(name, error)) from None
    guard = None if has_steps else own_code.wrong_guard(source)
    if guard:
        text = "The code under if __name__ == {!r} never runs ({}). Write '__main__'"
        raise ScriptFailed(text.format(guard[1], describe_line(name, source, guard[0])))
    return code, has_steps


def connect(name, arguments, stdin):
    """Give the script `name` its arguments, its standard input, and the data of Keras."""
    sys.argv = [name, *map(translate_argument, arguments)]
    if os.path.isdir(".keras"):  # data files that harness copied, so that Keras doesn't download them
        os.environ["HOME"] = os.getcwd()
    if stdin is not None:
        with open(stdin, "rb") as file:
            os.dup2(file.fileno(), 0)
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115


def execute(code, module, source, errors, name):
    """Execute the script as the main module, until its threads and child processes have ended. Raises ScriptFailed.

    `errors` is its standard error, and `name` is its name in messages.
    """
    previous_main, sys.modules["__main__"] = sys.modules["__main__"], module
    sys.stderr = errors
    status = 0
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        status = error.code
    except (KeyboardInterrupt, ReaderGone):
        raise
    except BaseException as error:  # noqa: BLE001, any error of the script is reported
        raise report_error(error, module.__file__, name, source) from None
    finally:
        sys.stderr = errors.stream
    if status is not None and not isinstance(status, int):
        sys.stderr.write("{}\n".format(status))
        raise ScriptFailed("it ended with exit status 1: {}".format(one_line(status)))
    if status:
        raise ScriptFailed(describe_exit(int(status), errors.tail(), source))
    wait_for_others()
    sys.modules["__main__"] = previous_main


def translate_argument(argument):
    """Translate an argument that selects TensorFlow's benchmarks for the installed TensorFlow.

    `--benchmarks` has the name `--benchmark_filter` in newer releases.
    """
    flag, _, value = argument.partition("=")
    spec = importlib.util.find_spec("tensorflow") if flag == "--benchmarks" else None
    for folder in (spec and spec.submodule_search_locations) or ():
        with suppress(OSError):
            path = os.path.join(folder, "python", "platform", "benchmark.py")
            with open(path, encoding="utf-8", errors="replace") as file:
                if "--benchmark_filter" in file.read():
                    return "--benchmark_filter=" + value
    return argument


def wait_for_others():
    """Wait for threads and child processes as Python does when it ends."""
    waits = [end_executors, join_threads]  # before Python 3.9, executors end last
    for wait in waits if sys.version_info >= (3, 9) else reversed(waits):
        wait()
    processes = sys.modules.get("multiprocessing.util")
    if processes is not None:
        processes._exit_function()
    # Python hasn't ended, so new executors are possible
    for kind in ("thread", "process"):
        executors = sys.modules.get("concurrent.futures." + kind)
        for name in {"_shutdown", "_global_shutdown"}.intersection(vars(executors) if executors else ()):
            setattr(executors, name, False)


def end_executors():
    """End the workers of executors after their work. They wait for more work until Python ends."""
    for kind in ("thread", "process"):
        executors = sys.modules.get("concurrent.futures." + kind)
        if executors is not None:
            executors._python_exit()


def join_threads():
    """Wait for the other threads, and for threads that these start."""
    current, threads = threading.current_thread(), [None]
    while threads:
        threads = [thread for thread in threading.enumerate() if thread is not current and not thread.daemon]
        for thread in threads:
            thread.join()


class Output:
    """The output of a script, in a file."""

    def __init__(self):
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, it is read after the script
        weakref.finalize(self, self._file.close)

    def text(self):
        """Return the output, up to the limit."""
        self._file.seek(0)
        return self._file.read(READ).decode("utf-8", "replace")

    def tail(self):
        """Return the end of the output."""
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - TAIL))
        return self._file.read().decode("utf-8", "replace")


class Printed(Output):
    """Captures the standard output of its `with` block and of child processes, and times the block."""

    def __init__(self):
        super().__init__()
        self.seconds = self.cpu_seconds = 0.0

    def __enter__(self):
        sys.stdout.flush()
        self._before = os.dup(1)
        os.dup2(self._file.fileno(), 1)
        self._begun = perf_counter(), process_time()
        return self

    def __exit__(self, kind, error, trace):
        ended = perf_counter(), process_time()
        self.seconds, self.cpu_seconds = ended[0] - self._begun[0], ended[1] - self._begun[1]
        with suppress(Exception):  # the script may have closed or replaced standard output
            sys.stdout.flush()
        with suppress(Exception):
            ctypes.CDLL(None).fflush(None)  # write the output of C libraries
        os.dup2(self._before, 1)
        os.close(self._before)


class Errors(Output):
    """Wraps standard error (`stream`), and keeps what Python code writes to it."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream

    def write(self, text):
        """Write text to the stream."""
        self._file.write(str(text).encode("utf-8", "replace"))
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def summarize_output(text):
    """Return the saved part of a script's output: its first lines, the number of lines, and its SHA-256 hash."""
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return {"lines": [line[:CHARACTERS] for line in lines[:LINES]], "count": len(lines), "sha256": digest}
