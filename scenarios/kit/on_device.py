"""Time on the device: some calls under TensorFlow's profiler, after everything that is timed.

Only launches on a GPU do this, and only a cell's first one. The same calls run without the profiler right before. The
profiler changes the speed, so shares apply to profiled calls, and both times show by how much. The first start of the
profiler has its own session, because it does more.
"""

import signal
from collections import namedtuple
from contextlib import contextmanager
from time import perf_counter

from . import trace
from .fetching import fetch_one

# Observations of a launch (docs/dev/worker-protocol.md): the result or the reason for none, and meanwhile this.
NAME, UNDER_WAY = "time on the device", "under way"

# The calls take about a second; this is the largest number.
SECONDS, CALLS = 1.0, 10
# A call that takes longer is not made once more; and more of a trace is not read. Both would take minutes.
LONGEST_SECONDS, LARGEST_BYTES = 5.0, 64 * 2**20
# After this many seconds the pass is stuck: the process ends, and the harness launches the cell without it.
STUCK_SECONDS = 120

PICOSECONDS = 1e12

# The driver's rule on who may profile. Up to CUDA 10.1, that is TensorFlow 2.3, tracing counts as profiling.
DRIVER = "/proc/driver/nvidia/params"
ADMINISTRATORS_ONLY = "RmProfilingAdminOnly: 1"
PERMIT = (
    "Only administrators may profile with this driver. To change that, put 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' into a file in /etc/modprobe.d of the machine and restart it: "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)

# calls: how many; seconds: how long all took; plain: as many without the profiler; seen: of `trace.Seen`.
Pass = namedtuple("Pass", "calls seconds plain seen")


def look(tf, step, steps, emit):
    """Profile calls of `step`, report the result, and return how many calls were made in all.

    steps: the number of steps per call. Errors are reported as the reason for missing numbers; nothing is raised.
    """
    emit("observation", name=NAME, value=UNDER_WAY)
    counted = Counted(step)
    try:
        with ending_if_stuck():
            profile = profiled(tf, counted)
        numbers = resources(profile, steps)
        text = told_of(numbers) if numbers else nothing()
    except PassTooLarge as reason:
        numbers, text = {}, "not profiled: {}".format(reason)
    except Exception as error:  # noqa: BLE001, each release has its own, and the launch has its number without
        numbers = {}
        text = "TensorFlow {} can't report it: {}: {}".format(
            tf.__version__, type(error).__name__, " ".join(str(error).split())[:500]
        )
    if numbers:
        emit("resources", **numbers)
    emit("observation", name=NAME, value=text)
    return counted.calls


class Counted:
    """A step that counts its calls, also the one that raises."""

    def __init__(self, step):
        self._step = step
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self._step()


@contextmanager
def ending_if_stuck():
    """Make the kernel end this process if the block takes too long, because a call into a library may hang."""
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def profiled(tf, step):
    """Make the pass. Raises PassTooLarge, and whatever the step, the profiler or the reading raises."""
    once = seconds_of(step, 1)
    if once > LONGEST_SECONDS:
        raise PassTooLarge("a call takes {:.1f} s, which exceeds the limit of {:g} s".format(once, LONGEST_SECONDS))
    calls = max(1, min(CALLS, int(SECONDS / once)))
    plain = seconds_of(step, calls)
    session = profiler(tf)
    session(step, 1)
    seconds, data = session(step, calls)
    if len(data) > LARGEST_BYTES:
        raise PassTooLarge(
            "its trace has {} MiB, which exceeds the limit of {} MiB".format(len(data) >> 20, LARGEST_BYTES >> 20)
        )
    return Pass(calls, seconds, plain, trace.read(data))


class PassTooLarge(Exception):  # noqa: N818, it is no error
    """The pass would take too long: the message says what."""


def seconds_of(step, calls):
    """Return the seconds of calls until the last result has arrived, as for a sample on a GPU."""
    started = perf_counter()
    for _ in range(calls):
        result = step()
    fetch_one(result)
    return perf_counter() - started


def profiler(tf):
    """Return this release's profiler: a function of a step and of the number of calls.

    It returns their seconds, and the bytes of the Trace. TensorFlow's public functions write files for TensorBoard, in
    a different format in each era; the functions behind them have returned the same since 1.14.
    """
    try:
        from tensorflow.python.profiler.internal import _pywrap_profiler
    except ImportError:
        from tensorflow.python.eager import profiler as eager_profiler  # 1.14 to 2.1, for graphs as well

        return session_of(lambda: eager_profiler, ())
    # 2.2 has no options. On the host, only critical events are traced; others would be overhead.
    experimental = tf.profiler.experimental
    has_options = hasattr(experimental, "ProfilerOptions")
    options = [dict(experimental.ProfilerOptions(host_tracer_level=1)._asdict())] if has_options else []
    return session_of(_pywrap_profiler.ProfilerSession, ["", *options])


def session_of(make, arguments):
    """Return the function that `profiler` returns, from a function that makes a session, and its arguments."""

    def session(step, calls):
        running = make()
        running.start(*arguments)
        try:
            seconds = seconds_of(step, calls)
        finally:
            data = running.stop()
        return seconds, data

    return session


def resources(made, steps):
    """Return numbers by the names of docs/dev/worker-protocol.md from a Pass; empty without a kernel."""
    seen = made.seen
    if not seen.kernels:
        return {}
    kernels = trace.union(seen.kernels) / PICOSECONDS
    either = trace.union(seen.kernels, seen.copies) / PICOSECONDS
    numbers = {
        "profiled_steps": made.calls * steps,
        "profiled_seconds": max(made.seconds, either),  # of two clocks
        "profiled_plain_seconds": made.plain,
        "profiled_kernel_seconds": kernels,
        "profiled_copy_seconds": either - kernels,
        "profiled_kernels": len(seen.kernels),
        "profiled_copies": len(seen.copies),
    }
    if seen.launching is not None:
        numbers["profiled_launch_seconds"] = trace.union(seen.launching) / PICOSECONDS
    return numbers


def told_of(numbers):
    """Describe the result on one line for a scenario without harness."""
    return "kernels ran in {:.3g} % of a step, {:.4g} of them; copies alone in {:.3g} %".format(
        100 * numbers["profiled_kernel_seconds"] / numbers["profiled_seconds"],
        numbers["profiled_kernels"] / numbers["profiled_steps"],
        100 * numbers["profiled_copy_seconds"] / numbers["profiled_seconds"],
    )


def nothing(driver=DRIVER):
    """That the profiler saw no kernel, and what to do where the driver says why. driver: a file of the driver's."""
    sentence = "TensorFlow's profiler saw no kernel on a GPU"
    try:
        with open(driver, encoding="utf-8", errors="replace") as file:
            return "{}. {}".format(sentence, PERMIT) if ADMINISTRATORS_ONLY in file.read() else sentence
    except OSError:
        return sentence
