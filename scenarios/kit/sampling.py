"""The timed loops. Times are seconds of a clock that each function is given, so that tests can bring their own."""

import gc
import math
from collections import namedtuple
from itertools import repeat
from time import perf_counter, process_time

from .fetching import fetch
from .words import END, TURN

# Fewer samples than this don't show variability.
FEWEST_SAMPLES = 3
# A slow step takes at most this multiple of the measuring time to get there; likewise the warm-up.
PATIENCE = 10
# A call that takes less than this share of the last batch's calls shows that the last batch built something.
SETTLED = 0.5
# A sample grows by at most this factor from one warm-up batch to the next, because first calls are too short to divide
# by.
GROWTH = 10
# A sample is aimed this much above the least length, because steps also get faster after the calibration.
HEADROOM = 1.1

# The first calls after a switch from another process may be slow. This is the number of turns to find that out.
TURNS_LOOKED_AT = 5
# The largest number of calls after a switch that are timed individually.
MOST_LEAD = 8
# Calls after a switch are left out if they use more than this multiple of the CPU time of a call in a sample.
SLOW = 1.03
# A call that takes so many seconds has no untimed one before it, which would take half of the turns. A switch was seen
# to cost the first call 4 % of 5 to 10 ms; to fill a cache of 32 MiB anew takes some 3 ms.
LONG = 0.2

# The number of stretches of calls between readings of memory; the warm-up has one in this many calls.
STRETCHES, WARM_ONE_IN = 20, 10

# seconds: its length; cpu_seconds: the CPU time of the process in it, without its children.
Sample = namedtuple("Sample", "seconds cpu_seconds")

# samples: what is still to be told; calls: how many calls of the step each sample holds; made: how many calls were made
# in all; warm: of these, in the warm-up; untimed: of these, before the samples of turns; result: what the last call
# returned.
Measurement = namedtuple("Measurement", "samples calls made warm untimed result")


class TimeBounded:
    """Warm up for `warmup_seconds`, then take samples of at least `sample_seconds` for `measure_seconds`.

    `calls_per_sample` is the number of calls in a sample; None finds it during the warm-up. With `turns`, a number,
    each sample is taken on command, and `measure_seconds` isn't used.
    """

    mode = "time"

    def __init__(self, warmup_seconds, measure_seconds, sample_seconds, calls_per_sample=None, turns=None):
        self.warmup_seconds = warmup_seconds
        self.measure_seconds = measure_seconds
        self.sample_seconds = sample_seconds
        self.calls_per_sample = calls_per_sample
        self.turns = turns

    def run(self, step, count, phase, watching, wait, *, fetch=fetch, clock=perf_counter):
        """Measure `step`. `count`, the document's number of calls, isn't used; `phase` times the parts.

        `fetch(result)` waits until the step's result has arrived. `watching()` is a context around what is timed.
        Neither adds a frame under the step. With turns, `wait(samples, calls)` reports the last samples, each of
        `calls` calls, and returns the next command when it has come: TURN, END, or a number of samples to take alone.
        The measurement then has no samples.
        """
        # What imports have left would else be collected at some step, and by chance within a short measurement: that
        # takes 0.04 s in TensorFlow 1.14 and 0.1 s in 2.21.
        gc.collect()
        with phase("warm up"):
            calls, warm, per_call = self._warm_up(step, fetch, clock)
        if self.turns is not None:
            gc.collect()  # what the warm-up left would else be collected in some turn
            taken, untimed, result = self._take_turns(
                step, calls, per_call, phase=phase, watching=watching, wait=wait, fetch=fetch, clock=clock
            )
            return Measurement([], calls, warm + taken, warm, untimed, result)
        with phase("steady state"), watching():
            samples, result = self._measure(step, calls, fetch, clock)
        return Measurement(samples, calls, warm + calls * len(samples), warm, 0, result)

    def _warm_up(self, step, fetch, clock):
        """The calls that make a sample, the calls made, and the seconds of one in the last batch.

        There are at least two batches, unless an earlier launch has found that the step is slow.
        """
        calls = self.calls_per_sample or 1
        total = 0
        before = math.inf
        begun = clock()
        while True:
            taken, _ = time_calls(step, calls, fetch, clock)
            total += calls
            elapsed = clock() - begun
            per_call = taken.seconds / calls
            if self.calls_per_sample is None and taken.seconds < self.sample_seconds:
                calls = grown(calls, taken.seconds, self.sample_seconds)
            else:
                # an earlier launch has found that a call is a sample: there is nothing to find out
                settled = per_call >= SETTLED * before or (self.calls_per_sample == 1 and per_call >= LONG)
                if elapsed >= self.warmup_seconds * (1 if settled else PATIENCE):
                    return calls, total, per_call
            before = per_call

    def _measure(self, step, calls, fetch, clock):
        samples = []
        measured = 0.0
        while measured < self.measure_seconds or (
            len(samples) < FEWEST_SAMPLES and measured < PATIENCE * self.measure_seconds
        ):
            taken, result = time_calls(step, calls, fetch, clock)
            samples.append(taken)
            measured += taken.seconds
        return samples, result

    def _take_turns(self, step, calls, per_call, *, phase, watching, wait, fetch, clock):
        """Take one sample per turn, and samples alone on command, until the command to end.

        Return the number of calls, how many of them were before the turns' samples, and the last result. It is at the
        same depth as `_measure`, so that the step has as many frames above it. each: the seconds of a call.
        """
        lead = 0 if per_call >= LONG else min(calls, MOST_LEAD)
        leads, usual = [], []
        samples = []
        total = untimed = 0
        result = None
        word = wait(samples, calls)
        while word != END:
            total += lead
            if word == TURN:
                before = []
                with phase("steady state"):
                    for _ in repeat(None, lead):
                        taken, result = time_calls(step, 1, fetch, clock)
                        before.append(taken.cpu_seconds)
                    with watching():
                        taken, result = time_calls(step, calls, fetch, clock)
                samples = [taken]
                untimed += lead
                if len(leads) < TURNS_LOOKED_AT:
                    leads.append(before)
                    usual.append(taken.cpu_seconds / calls)
                    if len(leads) == TURNS_LOOKED_AT:
                        lead = min(lead, slow_calls(leads, usual))
            else:
                samples = []
                for _ in repeat(None, lead):
                    _, result = time_calls(step, 1, fetch, clock)
                for _ in repeat(None, word):
                    taken, result = time_calls(step, calls, fetch, clock)
                    samples.append(taken)
            total += calls * len(samples)
            word = wait(samples, calls)
        return total, untimed, result


class Document:
    """The source's own protocol: exactly its number of iterations, no warm-up, every call a sample."""

    mode = "document"
    turns = None

    def run(self, step, count, phase, watching, wait, *, fetch=fetch, clock=perf_counter):
        """Time `count` calls of `step`, one by one; there is nothing to `wait` for."""
        samples = []
        result = None
        with phase("steady state"), watching():
            for _ in range(count):  # no comprehension: before Python 3.12 it is one frame more under every step
                taken, result = time_calls(step, 1, fetch, clock)
                samples.append(taken)
        return Measurement(samples, 1, count, 0, 0, result)


def time_calls(step, calls, fetch, clock):
    """A Sample of `calls` calls of `step`, until the last one's result has arrived by `fetch`, and that result.

    A device works its queue off in order, so the last result's arrival ends the earlier calls too.
    """
    used = process_time()  # this takes a microsecond: it stands outside of what is timed
    started = clock()
    for _ in repeat(None, calls):
        result = step()
    fetch(result)
    seconds = clock() - started
    return Sample(seconds, process_time() - used), result


def sample_memory(step, calls, phase, watching, resident, *, fetch=fetch, clock=perf_counter):
    """Call `step` at least twice after a warm-up of a tenth as many calls: return a Measurement, and the points.

    A point is the number of calls since the warm-up and `resident()`, in bytes; the first is before any of them. The
    calls between two points are one sample. The points are read after a garbage collection, outside of the timed calls.
    """
    gc.collect()
    warm = -(-calls // WARM_ONE_IN)
    with phase("warm up"):
        _, result = time_calls(step, warm, fetch, clock)
    gc.collect()
    samples, points = [], [(0, resident())]
    stretches = min(STRETCHES, calls)
    for number in range(1, stretches + 1):
        total = calls * number // stretches
        with phase("steady state"), watching():
            taken, result = time_calls(step, total - points[-1][0], fetch, clock)
        samples.append(taken)
        gc.collect()
        points.append((total, resident()))
    return Measurement(samples, None, warm + calls, warm, 0, result), points


def grown(calls, taken, wanted):
    """Return how many calls the next batch needs for `wanted` seconds, if `calls` of them took `taken`."""
    if taken * GROWTH <= wanted * HEADROOM:
        return calls * GROWTH
    return max(calls + 1, math.ceil(calls * HEADROOM * wanted / taken))


def slow_calls(leads, usual):
    """Return how many calls after a switch are left out: consecutive slow ones, at least one.

    leads: for some turns, the CPU seconds of each call before the sample; usual: for as many turns, the CPU seconds of
    a call in the sample. The n-th call is slow if its median over the turns is more than SLOW times the samples'. It is
    CPU time, because on a busy machine single calls take any time.
    """
    slow = 0
    for n in range(len(leads[0])):
        if median([seconds[n] for seconds in leads]) <= SLOW * median(usual):
            break
        slow += 1
    return max(1, slow)


def median(values):
    """The middle one of an odd number of values: `statistics` takes 10 ms to import."""
    return sorted(values)[len(values) // 2]
