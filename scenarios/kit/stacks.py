"""Samples the main thread's stack for a flame graph, because cProfile records callers and not stacks."""

import signal
from time import perf_counter

# Seconds between samples. At shorter intervals, the signals alone took 25 % of an 8 ms step on one core.
INTERVAL = 0.001


class Stacks:
    """Samples the stack while its `with` block runs.

    `seconds` has the time per stack. A stack is a tuple of ids of code objects, the innermost first; `codes` has the
    code objects by id. Python handles a timer's signal only when a running C function has returned. So each sample
    counts for the time since the previous one, and the time in a C function counts for its caller.
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
        if frame is not None and frame.f_code is Stacks._sample.__code__:
            return  # the next signal came before this method had ended: its time must not count twice
        current = perf_counter()
        stack, codes = [], self.codes
        while frame is not None:
            code = frame.f_code
            code_id = id(code)
            if code_id not in codes:
                codes[code_id] = code  # this reference keeps the id unique
            stack.append(code_id)
            frame = frame.f_back
        key = tuple(stack)
        self.seconds[key] = self.seconds.get(key, 0.0) + current - self._last
        # the sampler's own time is left out
        self._last = perf_counter()
