"""Work counts: how many calls one call of a step makes. Unlike times, they are the same in each launch.

Only calls in the thread of the step count, because the number of calls in threads of TensorFlow varies.
"""

import gc
import os
import re
import sys
from time import perf_counter

# A call of more seconds isn't counted, and counting ends after this many calls, so that it takes 5 s at most. Each
# counted call adds about 1 µs. More functions aren't listed, because an event is limited to 1 MiB.
LONGEST_SECONDS, MOST_CALLS, MOST_FUNCTIONS = 1.0, 1000000, 4000

# TensorFlow's C functions that run an eager operation or a session, and its function that traces.
KINDS = {
    "TFE_Py_FastPathExecute": "ops",
    "TFE_Py_Execute": "ops",
    "TFE_Py_ExecuteCancelable": "ops",
    "TF_SessionRun_wrapper": "session runs",
    "TF_SessionRunCallable": "session runs",
}
TRACER = "func_graph_from_py_func"
# Functions of the module `random` that draw until a number is small enough. Their C calls depend on the drawn numbers.
REDRAWING = "_randbelow"


def look(step, steps, fetch, emit, first=None):
    """Count the calls of `step` twice, and report the counts, or why there are none. Return the number of its calls.

    steps: the number of steps per call; fetch: waits for a result; first: the counts of the launch's first call, or
    None. A cache that the first call fills shows in them.
    """
    started = perf_counter()
    fetch(step())
    seconds, counts = perf_counter() - started, []
    if seconds > LONGEST_SECONDS:
        value = "a call takes {:.1f} s, and the limit is {:.0f} s".format(seconds, LONGEST_SECONDS)
    else:
        counts = [Counter().count(step, fetch) for _ in range(2)]
        value = dict(counts[0], steps=steps)
        if value["python"] + value["c"] > MOST_CALLS:
            value = "a call makes more than {:,} calls".format(MOST_CALLS)
        elif counts[0] != counts[1]:
            text = "two calls of the step differ: {0[python]:,} and {1[python]:,} Python calls, {0[c]:,} and {1[c]:,} C"
            value = text.format(*counts)
        elif first is not None:
            value["first"] = [first["python"], first["c"]]
    emit("observation", name="work", value=value)
    return 1 + len(counts)


class Counter:
    """Counts calls by `sys.setprofile`, which every Python has, and which applies only to the current thread."""

    def __init__(self):
        self._kinds = {"ops": 0, "session runs": 0, "traces": 0, "graph nodes": 0}
        self._made = self._python = 0
        self._codes = {}  # by id, because comparing code objects takes long
        self._stack = []

    def count(self, step, fetch):
        """Return the counts of one call of `step` (docs/dev/worker-protocol.md), without the garbage collector."""
        was_enabled = gc.isenabled()
        gc.disable()
        sys.setprofile(self._profile)
        try:
            result = step()
        finally:
            sys.setprofile(None)
            if was_enabled:
                gc.enable()
        fetch(result)
        functions = {}
        for calls, within, c_calls, _, code in self._codes.values():
            row = functions.setdefault(shorten(code.co_filename), {}).setdefault(code.co_name, [0, 0, 0])
            row[:] = row[0] + calls, row[1] + within, row[2] + c_calls
        functions = functions if sum(map(len, functions.values())) <= MOST_FUNCTIONS else {}
        return dict(self._kinds, python=self._python, c=self._made - self._python, functions=functions)

    def _profile(self, frame, event, argument):
        code = frame.f_code
        if event == "call":
            # calls, calls within, calls of C functions, active calls; the reference to the code keeps the id unique
            entry = self._codes.setdefault(id(code), [0, 0, 0, 0, code])
            entry[0] += 1
            entry[3] += 1
            self._python += 1
            self._made += 1
            self._kinds["traces"] += code.co_name == TRACER
            self._stack.append((entry, self._made))
            if self._made > MOST_CALLS:
                sys.setprofile(None)
        elif event == "return" and self._stack:
            entry, before = self._stack.pop()
            entry[3] -= 1
            if code.co_name == TRACER and hasattr(argument, "get_operations"):
                self._kinds["graph nodes"] += len(argument.get_operations())
            if not entry[3]:  # in a recursion, only the outermost call counts
                entry[1] += self._made - before
        elif event == "c_call" and self._stack and not code.co_name.startswith(REDRAWING):
            self._made += 1
            self._stack[-1][0][2] += 1
            kind = KINDS.get(getattr(argument, "__name__", None))
            if kind:
                self._kinds[kind] += 1


def shorten(path):
    """Return the path of a file in a form that doesn't depend on the environment."""
    name = re.sub(r".*/(?:(?:site|dist)-packages|lib/python3\.\d+)/", "", path)
    name = os.path.basename(path) if name == path else name
    return re.sub(r"^__autograph_generated_file\w+", "__autograph_generated_file", name)
