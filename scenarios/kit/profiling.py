"""Profiles the first call of a step, and later calls, with cProfile. The times of such launches aren't results.

Each of the two profiles is written as a file for `python -m pstats`, and as JSON with samples of the stack. harness
reads the JSON, because pstats files are in the marshal format, which isn't safe to read from an untrusted program.

Some of the later calls are timed, then the same number is profiled, and then the same number is sampled, so that the
methods don't affect each other. There is only one first call, so it is profiled and sampled at the same time.
"""

import json
import os
from contextlib import contextmanager
from itertools import repeat
from time import perf_counter

from .stacks import Stacks

SCHEMA = 1
FIRST_CALL, STEADY = "first call", "steady"
FILES = {FIRST_CALL: "first-call", STEADY: "steady"}

# The number of calls before the profiled later calls. In some releases, even the second call still builds something.
SETTLING = 3

KIT = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Profiler:
    """Profiles the phase "first call" (or, without this phase, the first call of the step), and later calls.

    calls: the number of later calls to time, to profile and to sample.
    """

    def __init__(self, calls):
        self._calls = calls
        self._profiles = {}

    @contextmanager
    def phase(self, name):
        """Profile the phase "first call"; other phases aren't profiled."""
        if name != FIRST_CALL or FIRST_CALL in self._profiles:
            yield
            return
        profile = Profile(FIRST_CALL, calls=1, steps=1)
        with profile.stacks, profile:
            yield
        self._profiles[FIRST_CALL] = profile

    def run(self, step, steps, phase, fetch):
        """Profile calls of `step`, and return the total number of calls.

        steps: the number of steps per call; phase: `Bench.phase`; fetch: waits for a result.
        """
        calls = SETTLING + 3 * self._calls
        if FIRST_CALL not in self._profiles:
            with phase(FIRST_CALL):
                fetch(step())
            calls += 1
        with phase("warm up"):
            call(step, SETTLING, fetch)
            started = perf_counter()
            call(step, self._calls, fetch)
            plain_seconds = perf_counter() - started
        profile = Profile(STEADY, calls=self._calls, steps=steps, plain_seconds=plain_seconds)
        with phase("steady state"):
            with profile:
                call(step, self._calls, fetch)
            with profile.stacks:
                call(step, self._calls, fetch)
        self._profiles[STEADY] = profile
        return calls

    def once(self, step, phase, fetch):
        """Call `step` once and return its result. Profile it as the first call, unless a first call was profiled."""
        with phase(FIRST_CALL):
            result = step()
            fetch(result)
        return result

    def write(self, folder):
        """Write each profile as pstats and as JSON, and return the paths of the files."""
        os.makedirs(folder, exist_ok=True)
        paths = []
        for name, profile in self._profiles.items():
            path = os.path.join(folder, FILES[name])
            profile.stats.dump_stats(path + ".pstats")
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump(profile.document(), file, separators=(",", ":"))
            paths += [path + ".pstats", path + ".json"]
        return paths


class Profile:
    """Profiles its `with` block. `stacks` samples the stack during its own `with` block."""

    def __init__(self, part, **facts):
        import cProfile  # here, because every launch imports this module, and that time is measured

        self.stats = cProfile.Profile()
        self.stacks = Stacks()
        self._facts = dict(facts, schema=SCHEMA, part=part)

    def __enter__(self):
        self._started = perf_counter()
        self.stats.enable()
        return self

    def __exit__(self, *_):
        self.stats.disable()
        self._facts["seconds"] = perf_counter() - self._started

    def document(self):
        """Return the JSON document (docs/dev/worker-protocol.md), without functions of the kit and the profiler."""
        self.stats.create_stats()
        stats = self.stats.stats
        positions = {}
        for key in sorted(stats):
            if not (key[0].startswith(KIT) or "'_lsprof.Profiler'" in key[2]):
                positions[key] = len(positions)
        return dict(self._facts, functions=list_functions(stats, positions), stacks=list_stacks(self.stacks, positions))


def call(step, calls, fetch):
    """Call `step` `calls` times, and wait for the last result."""
    for _ in repeat(None, calls):
        result = step()
    fetch(result)


def list_functions(stats, places):
    """Return one list per function.

    It has the file, line, name, calls, calls without recursive ones, own seconds, cumulative seconds, and callers. A
    caller is a list: its position in the result, calls, own seconds and cumulative seconds.

    stats: cProfile's statistics, by file, line and name; places: the position of each function in the result. Functions
    without a position are left out.
    """
    rows = []
    for key in places:
        primitive_calls, calls, own_seconds, cumulative_seconds, callers = stats[key]
        caller_rows = [
            [places[caller], counts[0], counts[2], counts[3]]
            for caller, counts in sorted(callers.items())
            if caller in places
        ]
        rows.append([*key, calls, primitive_calls, own_seconds, cumulative_seconds, caller_rows])
    return rows


def list_stacks(stacks, places):
    """Return one list per stack: its seconds, and the positions of its functions, the outermost first."""
    seconds = {}
    for stack, duration in stacks.seconds.items():
        codes = (stacks.codes[code_id] for code_id in reversed(stack))
        keys = ((code.co_filename, code.co_firstlineno, code.co_name) for code in codes)
        path = tuple(places[key] for key in keys if key in places)
        seconds[path] = seconds.get(path, 0.0) + duration
    return [[total, list(path)] for path, total in sorted(seconds.items()) if path]
