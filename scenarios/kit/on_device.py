"""Time on the device: some calls under TensorFlow's profiler, after everything that is timed.

Only the first launch of a cell on a GPU profiles these calls. The profiler changes the speed, so the same number of
calls first runs without the profiler. Shares apply to the profiled calls, and the two times show how much slower the
profiled calls are. Before that, the profiler is started in a separate session, because its first start takes longer.
"""

import signal
from collections import namedtuple
from contextlib import contextmanager
from time import perf_counter

from . import trace
from .fetching import fetch_one

# The observation of a launch (docs/dev/worker-protocol.md) has this value until the pass ends. Then it has the result,
# or the reason why there is no result.
NAME, UNDER_WAY = "time on the device", "under way"

# The target duration of all calls in seconds, and the largest number of calls.
SECONDS, CALLS = 1.0, 10
# A longer call isn't profiled, and a larger trace isn't read, because both would take minutes.
LONGEST_SECONDS, LARGEST_BYTES = 5.0, 64 * 2**20
# After this many seconds, the pass counts as stuck. The process ends, and harness launches the cell without the pass.
STUCK_SECONDS = 120

PICOSECONDS = 1e12

# The file with the driver's rule about who may profile. Up to CUDA 10.1 (TensorFlow 2.3), tracing counts as profiling.
DRIVER = "/proc/driver/nvidia/params"
ADMINISTRATORS_ONLY = "RmProfilingAdminOnly: 1"
PERMIT = (
    "Only administrators may profile with this driver. To change that, put 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' into a file in /etc/modprobe.d of the machine and restart it: "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)

# calls: the number of calls; seconds: their total time; plain: the time of as many calls without the profiler; seen: a
# `trace.Seen`.
Pass = namedtuple("Pass", "calls seconds plain seen")


def look(tf, step, steps, emit):
    """Profile calls of `step`, report the result, and return the total number of calls.

    steps: the number of steps per call. Errors are reported as the reason for missing numbers; nothing is raised.
    """
    emit("observation", name=NAME, value=UNDER_WAY)
    counted = Counted(step)
    try:
        with end_if_stuck():
            profile = profile_calls(tf, counted)
        numbers = resources(profile, steps)
        text = describe_numbers(numbers) if numbers else explain_no_kernel()
    except PassTooLarge as reason:
        numbers, text = {}, "not profiled: {}".format(reason)
    except Exception as error:  # noqa: BLE001, each release raises its own, and the launch has its result already
        numbers = {}
        text = "TensorFlow {} can't report it: {}: {}".format(
            tf.__version__, type(error).__name__, " ".join(str(error).split())[:500]
        )
    if numbers:
        emit("resources", **numbers)
    emit("observation", name=NAME, value=text)
    return counted.calls


class Counted:
    """A step that counts its calls, including a call that raises an error."""

    def __init__(self, step):
        self._step = step
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self._step()


@contextmanager
def end_if_stuck():
    """Make the kernel end this process if the block takes too long, because a call into a library may hang."""
    previous_handler = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)


def profile_calls(tf, step):
    """Profile calls, and return a Pass. Raises PassTooLarge, and errors of the step, the profiler and the parser."""
    call_seconds = time_calls(step, 1)
    if call_seconds > LONGEST_SECONDS:
        raise PassTooLarge(
            "a call takes {:.1f} s, which exceeds the limit of {:.0f} s".format(call_seconds, LONGEST_SECONDS)
        )
    calls = max(1, min(CALLS, int(SECONDS / call_seconds)))
    plain_seconds = time_calls(step, calls)
    session = profiler(tf)
    session(step, 1)
    seconds, data = session(step, calls)
    if len(data) > LARGEST_BYTES:
        raise PassTooLarge(
            "the trace has {} MiB, which exceeds the limit of {} MiB".format(len(data) >> 20, LARGEST_BYTES >> 20)
        )
    return Pass(calls, seconds, plain_seconds, trace.read(data))


class PassTooLarge(Exception):  # noqa: N818, it isn't an error
    """The pass would take too long. The message is the reason."""


def time_calls(step, calls):
    """Return the seconds of `calls` calls, until the last result has arrived, as in a sample on a GPU."""
    started = perf_counter()
    for _ in range(calls):
        result = step()
    fetch_one(result)
    return perf_counter() - started


def profiler(tf):
    """Return this release's profiler: a function of a step and of the number of calls.

    The returned function returns the seconds of the calls, and the bytes of the Trace. TensorFlow's public functions
    write files for TensorBoard, whose format has changed. The internal functions have returned a Trace since 1.14.
    """
    try:
        from tensorflow.python.profiler.internal import _pywrap_profiler
    except ImportError:
        from tensorflow.python.eager import profiler as eager_profiler  # from 1.14 to 2.1, also for graphs

        return make_session_runner(lambda: eager_profiler, ())
    # 2.2 has no options. Level 1 traces only critical events on the host, because others would slow down the calls.
    experimental = tf.profiler.experimental
    has_options = hasattr(experimental, "ProfilerOptions")
    options = [dict(experimental.ProfilerOptions(host_tracer_level=1)._asdict())] if has_options else []
    return make_session_runner(_pywrap_profiler.ProfilerSession, ["", *options])


def make_session_runner(make, arguments):
    """Return the function that `profiler` returns. `make` makes a session from the `arguments`."""

    def session(step, calls):
        active_session = make()
        active_session.start(*arguments)
        try:
            seconds = time_calls(step, calls)
        finally:
            data = active_session.stop()
        return seconds, data

    return session


def resources(made, steps):
    """Return the resources of a Pass, by the names in docs/dev/worker-protocol.md. It is empty without a kernel."""
    activity = made.seen
    if not activity.kernels:
        return {}
    kernels = trace.union(activity.kernels) / PICOSECONDS
    busy_seconds = trace.union(activity.kernels, activity.copies) / PICOSECONDS
    numbers = {
        "profiled_steps": made.calls * steps,
        "profiled_seconds": max(made.seconds, busy_seconds),  # two clocks can differ a little
        "profiled_plain_seconds": made.plain,
        "profiled_kernel_seconds": kernels,
        "profiled_copy_seconds": busy_seconds - kernels,
        "profiled_kernels": len(activity.kernels),
        "profiled_copies": len(activity.copies),
    }
    if activity.launching is not None:
        numbers["profiled_launch_seconds"] = trace.union(activity.launching) / PICOSECONDS
    return numbers


def describe_numbers(numbers):
    """Describe the result on one line, for a scenario that runs without harness."""
    return "kernels ran in {:.3g} % of a step, {:,.2f} of them; copies alone in {:.3g} %".format(
        100 * numbers["profiled_kernel_seconds"] / numbers["profiled_seconds"],
        numbers["profiled_kernels"] / numbers["profiled_steps"],
        100 * numbers["profiled_copy_seconds"] / numbers["profiled_seconds"],
    )


def explain_no_kernel(driver=DRIVER):
    """Return the message for a profile without kernels, with a fix if the driver's file shows the reason."""
    sentence = "TensorFlow's profiler saw no kernel on a GPU"
    try:
        with open(driver, encoding="utf-8", errors="replace") as file:
            return "{}. {}".format(sentence, PERMIT) if ADMINISTRATORS_ONLY in file.read() else sentence
    except OSError:
        return sentence
