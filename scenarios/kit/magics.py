"""Replacements for IPython's magics `%timeit` and `%time` in plain scripts, with the same measurement and output.

harness replaces the magics of a notebook or of a pasted script with calls of these functions.
"""

import statistics
import timeit as standard
from collections import namedtuple
from time import perf_counter

# IPython's number of runs, and the shortest allowed run in seconds, which determines the number of loops per run.
REPEAT, SHORTEST = 7, 0.2

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


# The result of `%timeit -o`, with the names of IPython. Times are in seconds per loop.
TimeitResult = namedtuple("TimeitResult", "loops repeat best worst all_runs average stdev timings")


def timeit(label, statement, namespace, *, number=0, repeat=REPEAT, setup="pass"):
    """Time a statement in loops, print mean and standard deviation per loop, and return a TimeitResult: `%timeit`.

    number: the number of loops per run. 0: the smallest of 1, 10, 100, ... with which a run takes SHORTEST seconds.
    """
    timer = standard.Timer(statement, setup, globals=namespace)
    if not number:
        number = 1
        while timer.timeit(number) < SHORTEST and number < 10**9:
            number *= 10
    run_seconds = [seconds / number for seconds in timer.repeat(repeat, number)]
    text = "{}: {} \u00b1 {} per loop (mean \u00b1 std. dev. of {} runs, {} loops each)"
    mean, deviation = statistics.mean(run_seconds), statistics.pstdev(run_seconds)
    print(text.format(label, format_seconds(mean), format_seconds(deviation), repeat, number))
    totals = [seconds * number for seconds in run_seconds]
    return TimeitResult(number, repeat, min(run_seconds), max(run_seconds), totals, mean, deviation, run_seconds)


def format_seconds(seconds):
    """Return a time with six digits in a unit: `210.123 us`."""
    size, unit = next((entry for entry in UNITS if seconds >= entry[0]), UNITS[-1])
    return "{:.6g} {}".format(seconds / size, unit)


class Timed:
    """Times its `with` block, and prints the wall-clock time, like `%time`."""

    def __init__(self, label):
        self._label = label
        self._begun = 0.0

    def __enter__(self):
        self._begun = perf_counter()
        return self

    def __exit__(self, kind=None, error=None, trace=None):
        seconds = perf_counter() - self._begun
        if kind is None:
            print("{}: {} (wall time)".format(self._label, format_seconds(seconds)))
