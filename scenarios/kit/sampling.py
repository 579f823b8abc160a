"""The timed loops. Times are in seconds. Each function takes a clock as an argument, so that tests can replace it."""

import gc
import math
from collections import namedtuple
from itertools import repeat
from time import perf_counter, process_time

from .fetching import fetch
from .words import END

# Fewer samples than this don't show variability.
FEWEST_SAMPLES = 3
# If steps are slow, the measurement ends after this multiple of its planned time, even with too few samples. The same
# holds for the warm-up.
PATIENCE = 10
# A call that takes less than this share of the last batch's calls shows that the last batch built something.
SETTLED = 0.5
# The number of calls in a sample grows by at most this factor from one warm-up batch to the next. The times of the
# first calls are too short for a larger extrapolation.
GROWTH = 10
# The target length of a sample is this multiple of the shortest allowed length, because steps get faster after the
# calibration.
HEADROOM = 1.1

# The first calls after a switch from another process may be slow. This is the number of turns to find that out.
TURNS_LOOKED_AT = 5
# The largest number of calls after a switch that are timed individually.
MOST_LEAD = 8
# Calls after a switch are left out if they use more than this multiple of the CPU time of a call in a sample.
SLOW = 1.03
# If a call takes at least this many seconds, a turn starts without an untimed call, which would take half of the turn.
# After a switch, the first call of a step of 5 to 10 ms took 4 % longer. Filling a cache of 32 MiB takes about 3 ms.
LONG = 0.2

# A launch keeps at most about this many single steps. If steps are faster, there are untimed calls between them, so
# that the kept steps are from the whole measurement.
MOST_SINGLE_STEPS = 2000

# The number of stretches of calls between readings of memory.
STRETCHES = 20
# The warm-up before readings of memory has one call per this many measured calls.
WARM_ONE_IN = 10

# seconds: its length; cpu_seconds: the CPU time of the process in it, without its children.
Sample = namedtuple("Sample", "seconds cpu_seconds")

# samples: samples that weren't reported yet; calls: the calls per sample; made: the total number of calls; warm: the
# number of calls in the warm-up; untimed: the number of untimed calls after the warm-up; result: the result of the last
# call.
Measurement = namedtuple("Measurement", "samples calls made warm untimed result")


class TimeBounded:
    """Sampling by time: warm up for `warmup_seconds`, then take samples for `measure_seconds`.

    A sample takes at least `sample_seconds`. `calls_per_sample` is its number of calls. If it is None, the warm-up
    determines this number. If `turns` is a number, each sample is taken on command, and `measure_seconds` isn't used.
    """

    mode = "time"

    def __init__(self, warmup_seconds, measure_seconds, sample_seconds, calls_per_sample=None, turns=None):
        self.warmup_seconds = warmup_seconds
        self.measure_seconds = measure_seconds
        self.sample_seconds = sample_seconds
        self.calls_per_sample = calls_per_sample
        self.turns = turns

    def run(self, step, count, phase, watching, wait, *, fetch=fetch, clock=perf_counter):
        """Measure `step`, and return a Measurement. `count`, the document's number of calls, isn't used.

        `phase(name)` is a context that times a part. `fetch(result)` waits until the step's result has arrived.
        `watching()` is a context around the timed calls. None of them adds a stack frame to the step.

        If the launch is interleaved (`turns`), `wait(samples, calls)` reports the latest samples, each of `calls`
        calls. It waits for the next command and returns it: END, or the number of samples of a turn. The returned
        Measurement then has no samples, because they are already reported.
        """
        # The garbage of imports would otherwise be collected during some step, and perhaps within a short measurement.
        # That takes 0.04 s in TensorFlow 1.14 and 0.1 s in 2.21.
        gc.collect()
        with phase("warm up"):
            calls, warm, per_call = self._warm_up(step, fetch, clock)
        if self.turns is not None:
            gc.collect()  # the garbage of the warm-up would otherwise be collected during some turn
            taken, untimed, result = self._take_turns(
                step, calls, per_call, phase=phase, watching=watching, wait=wait, fetch=fetch, clock=clock
            )
            return Measurement([], calls, warm + taken, warm, untimed, result)
        with phase("steady state"), watching():
            samples, untimed, result = self._measure(step, calls, per_call, fetch, clock)
        return Measurement(samples, calls, warm + calls * len(samples) + untimed, warm, untimed, result)

    def _warm_up(self, step, fetch, clock):
        """Warm up. Return the calls per sample, the number of calls made, and the seconds per call in the last batch.

        There are at least two batches, unless an earlier launch has shown that the step is slow.
        """
        calls = self.calls_per_sample or 1
        total = 0
        last_per_call = math.inf
        start = clock()
        while True:
            sample, _ = time_calls(step, calls, fetch, clock)
            total += calls
            elapsed = clock() - start
            per_call = sample.seconds / calls
            if self.calls_per_sample is None and sample.seconds < self.sample_seconds:
                calls = grow_calls(calls, sample.seconds, self.sample_seconds)
            else:
                # a slow step, with one call per sample in an earlier launch, needs no second batch
                is_settled = per_call >= SETTLED * last_per_call or (self.calls_per_sample == 1 and per_call >= LONG)
                if elapsed >= self.warmup_seconds * (1 if is_settled else PATIENCE):
                    return calls, total, per_call
            last_per_call = per_call

    def _measure(self, step, calls, per_call, fetch, clock):
        """Take samples. Return them, the number of untimed calls between them, and the last result."""
        calls_between = 0
        if self.calls_per_sample == 1:
            calls_between = int(self.measure_seconds / (MOST_SINGLE_STEPS * per_call))
        samples = []
        measured = 0.0
        while measured < self.measure_seconds or (
            len(samples) < FEWEST_SAMPLES and measured < PATIENCE * self.measure_seconds
        ):
            if calls_between:
                untimed_sample, _ = time_calls(step, calls_between, fetch, clock)
                measured += untimed_sample.seconds
            sample, result = time_calls(step, calls, fetch, clock)
            samples.append(sample)
            measured += sample.seconds
        return samples, calls_between * len(samples), result

    def _take_turns(self, step, calls, per_call, *, phase, watching, wait, fetch, clock):
        """Take a turn per command, with the number of samples that the command requests. Stop at the command END.

        The first sample of a turn is the interleaved one. Others follow at once, so that the step has the caches for
        itself. They aren't part of a phase, and aren't watched. Return the number of calls, the number of untimed calls
        among them, and the last result. per_call: the expected seconds of a call. `run` calls this method and
        `_measure` directly, so that the stack has the same depth.
        """
        lead_calls = 0 if per_call >= LONG else min(calls, MOST_LEAD)
        lead_seconds, usual_seconds = [], []
        samples = []
        total = untimed_calls = 0
        result = None
        command = wait(samples, calls)
        while command != END:
            lead_times = []
            with phase("steady state"):
                for _ in repeat(None, lead_calls):
                    sample, result = time_calls(step, 1, fetch, clock)
                    lead_times.append(sample.cpu_seconds)
                with watching():
                    sample, result = time_calls(step, calls, fetch, clock)
            samples = [sample]
            for _ in repeat(None, command - 1):
                sample, result = time_calls(step, calls, fetch, clock)
                samples.append(sample)
            untimed_calls += lead_calls
            total += lead_calls + calls * len(samples)
            if len(lead_seconds) < TURNS_LOOKED_AT:
                lead_seconds.append(lead_times)
                usual_seconds.append(samples[0].cpu_seconds / calls)
                if len(lead_seconds) == TURNS_LOOKED_AT:
                    lead_calls = min(lead_calls, count_slow_calls(lead_seconds, usual_seconds))
            command = wait(samples, calls)
        return total, untimed_calls, result


class Document:
    """Sampling as in the source document: its number of iterations, no warm-up, and one sample per call."""

    mode = "document"
    turns = None

    def run(self, step, count, phase, watching, wait, *, fetch=fetch, clock=perf_counter):
        """Time `count` calls of `step`, one by one, and return a Measurement. `wait` isn't used."""
        samples = []
        result = None
        with phase("steady state"), watching():
            for _ in range(count):  # before Python 3.12, a comprehension would add a stack frame to every step
                taken, result = time_calls(step, 1, fetch, clock)
                samples.append(taken)
        return Measurement(samples, 1, count, 0, 0, result)


def time_calls(step, calls, fetch, clock):
    """Time `calls` calls of `step` until `fetch` has the last result. Return the Sample and this result.

    A device processes its queue in order. So when the last result has arrived, the earlier calls are complete too.
    """
    cpu_start = process_time()  # reading this clock takes a microsecond, so it is read outside of the timed part
    start = clock()
    for _ in repeat(None, calls):
        result = step()
    fetch(result)
    seconds = clock() - start
    return Sample(seconds, process_time() - cpu_start), result


def sample_memory(step, calls, phase, watching, resident, *, fetch=fetch, clock=perf_counter):
    """Warm up with 10 % of `calls`, then call `step` `calls` times. Return a Measurement and memory points.

    A point is the number of calls since the warm-up, and the memory `resident()` in bytes; the first point is before
    the first of these calls. The calls between two points are one sample. Points are read after a garbage collection,
    outside of the timed calls. `calls` is at least 2.
    """
    gc.collect()
    warm_calls = -(-calls // WARM_ONE_IN)
    with phase("warm up"):
        _, result = time_calls(step, warm_calls, fetch, clock)
    gc.collect()
    samples, points = [], [(0, resident())]
    stretches = min(STRETCHES, calls)
    for number in range(1, stretches + 1):
        total = calls * number // stretches
        with phase("steady state"), watching():
            sample, result = time_calls(step, total - points[-1][0], fetch, clock)
        samples.append(sample)
        gc.collect()
        points.append((total, resident()))
    return Measurement(samples, None, warm_calls + calls, warm_calls, 0, result), points


def grow_calls(calls, taken, wanted):
    """Return how many calls the next batch needs for `wanted` seconds, if `calls` of them took `taken`."""
    if taken * GROWTH <= wanted * HEADROOM:
        return calls * GROWTH
    return max(calls + 1, math.ceil(calls * HEADROOM * wanted / taken))


def count_slow_calls(leads, usual):
    """Return the number of calls to leave out after a switch: the consecutive slow ones, but at least one.

    leads: per turn, the CPU seconds of each call before the sample; usual: per turn, the CPU seconds of a call in the
    sample. The n-th call is slow if its median over the turns is more than SLOW times the median of the samples. CPU
    time is used, because on a busy machine the wall-clock time of single calls varies too much.
    """
    slow = 0
    for index in range(len(leads[0])):
        if median([seconds[index] for seconds in leads]) <= SLOW * median(usual):
            break
        slow += 1
    return max(1, slow)


def median(values):
    """Return the median of an odd number of values. Importing `statistics` would take 10 ms."""
    return sorted(values)[len(values) // 2]
