"""The timed loops. Times are seconds of a clock that each function is given, so that tests can bring their own."""

import gc
import math
from collections import namedtuple
from itertools import repeat
from time import perf_counter

# Fewer samples than this say nothing about scatter ...
FEWEST_SAMPLES = 3
# ... but a slow step takes no more than so many times the measuring time to get there; likewise the warm-up.
PATIENCE = 10
# A call that takes less than this share of the last batch's calls shows that the last batch built something.
SETTLED = 0.5
# From one warm-up batch to the next a sample grows at most so many times: the first calls are too short to divide by.
GROWTH = 10
# A sample is aimed this much above the least length, because steps also get faster after the calibration.
HEADROOM = 1.1

# seconds: the length of each sample; calls: how many calls of the step each sample holds; before: calls made before;
# result: what the last call returned.
Measurement = namedtuple("Measurement", "seconds calls before result")


class TimeBounded:
    """Warm up for `warmup_seconds`, then take samples of at least `sample_seconds` for `measure_seconds`.

    `calls_per_sample` fixes how many calls make a sample; None finds it while warming up.
    """

    mode = "time"

    def __init__(self, warmup_seconds, measure_seconds, sample_seconds, calls_per_sample=None):
        self.warmup_seconds = warmup_seconds
        self.measure_seconds = measure_seconds
        self.sample_seconds = sample_seconds
        self.calls_per_sample = calls_per_sample

    def run(self, step, count, phase, telemetry, clock=perf_counter):
        """Measure `step`. `count`, the document's number of calls, is not used; `phase` times the two parts.

        `telemetry` is a context around what is timed. Neither adds a frame under the step: both are left again.
        """
        # What imports have left would else be collected at some step, and by chance within a short measurement: that
        # takes 0.04 s in TensorFlow 1.14 and 0.1 s in 2.21.
        gc.collect()
        with phase("warm up"):
            calls, before = self._warm_up(step, clock)
        with phase("steady state"), telemetry:
            seconds, result = self._measure(step, calls, clock)
        return Measurement(seconds, calls, before, result)

    def _warm_up(self, step, clock):
        """Return the calls that make a sample, and the calls made: at least two batches, unless the step is slow."""
        calls = self.calls_per_sample or 1
        made = 0
        before = math.inf
        begun = clock()
        while True:
            taken, _ = time_calls(step, calls, clock)
            made += calls
            elapsed = clock() - begun
            each = taken / calls
            if self.calls_per_sample is None and taken < self.sample_seconds:
                calls = grown(calls, taken, self.sample_seconds)
            else:
                settled = each >= SETTLED * before
                if elapsed >= self.warmup_seconds * (1 if settled else PATIENCE):
                    return calls, made
            before = each

    def _measure(self, step, calls, clock):
        samples = []
        measured = 0.0
        while measured < self.measure_seconds or (
            len(samples) < FEWEST_SAMPLES and measured < PATIENCE * self.measure_seconds
        ):
            taken, result = time_calls(step, calls, clock)
            samples.append(taken)
            measured += taken
        return samples, result


class Document:
    """The source's own protocol: exactly its number of iterations, no warm-up, every call a sample."""

    mode = "document"

    def run(self, step, count, phase, telemetry, clock=perf_counter):
        """Time `count` calls of `step`, one by one."""
        seconds = []
        result = None
        with phase("steady state"), telemetry:
            for _ in range(count):  # no comprehension: before Python 3.12 it is one frame more under every step
                taken, result = time_calls(step, 1, clock)
                seconds.append(taken)
        return Measurement(seconds, 1, 0, result)


def time_calls(step, calls, clock):
    """Seconds that `calls` calls of `step` take, until the last one's result has reached the host, and that result.

    A device works its queue off in order, so the last result's arrival ends the earlier calls too.
    """
    started = clock()
    for _ in repeat(None, calls):
        result = step()
    fetch(result)
    return clock() - started, result


def fetch(value):
    """Wait until every tensor in `value` is on the host."""
    if isinstance(value, (list, tuple)):
        for item in value:
            fetch(item)
    elif isinstance(value, dict):
        for item in value.values():
            fetch(item)
    elif hasattr(value, "numpy"):
        value.numpy()
    elif hasattr(getattr(value, "data", None), "numpy"):  # 2.4's arrays of the NumPy API are no tensors: they hold one
        value.data.numpy()


def grown(calls, taken, wanted):
    """How many calls the next batch needs to take `wanted` seconds, where `calls` of them took `taken`."""
    if taken * GROWTH <= wanted * HEADROOM:
        return calls * GROWTH
    return max(calls + 1, math.ceil(calls * HEADROOM * wanted / taken))
