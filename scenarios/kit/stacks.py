"""Samples of the main thread's stack, for a flame graph: a profile has callers, and no stacks."""

import signal
from time import perf_counter

# Seconds between samples. At shorter intervals, the signals alone took 25 % of an 8 ms step on one core.
INTERVAL = 0.001


class Stacks:
    """Samples the stack while its `with` block runs; `seconds` are by stack, which is a tuple of code objects' ids.

    A timer's signal is seen when the C function that runs then returns, so each sample stands for the time since the
    one before, and what a C function takes is its caller's. `codes` are the code objects by their ids, the innermost
    comes first.
    """

    def __init__(self):
        self.seconds = {}
        self.codes = {}
        self._before = None
        self._last = 0.0

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._sample)
        self._last = perf_counter()
        signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _sample(self, _, frame):
        now = perf_counter()
        stack, codes = [], self.codes
        while frame is not None:
            code = frame.f_code
            place = id(code)
            if place not in codes:
                codes[place] = code  # it is kept, so that no other one gets its id
            stack.append(place)
            frame = frame.f_back
        key = tuple(stack)
        self.seconds[key] = self.seconds.get(key, 0.0) + now - self._last
        # the sampler's own time is left out
        self._last = perf_counter()
