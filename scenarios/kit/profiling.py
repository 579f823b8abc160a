"""cProfile around a launch's first call, and around later calls: in separate launches, whose times don't count.

Each of the two leaves a file for `python -m pstats`, and the same as JSON, with samples of the stack. The harness reads
the JSON, because pstats is marshal, which must not be read from an untrusted program.

Some of the later calls are timed without profiling, then as many calls are profiled, and then as many are sampled, so
that the three don't affect each other. There is only one first call: it is profiled and sampled at once.
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

# Calls before the later ones are looked at: in some releases the second one still builds something.
SETTLING = 3

KIT = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Profiler:
    """Profiles the phase "first call", or the step's own first call where there is no such phase, and later calls.

    calls: how many later calls are timed, profiled and sampled, each.
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
        """Profile calls of `step`, and return how many calls were made in all.

        steps: how many steps one call takes; phase: the context of a phase, `Bench.phase`; fetch: waits for a result.
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
            plain = perf_counter() - started
        profile = Profile(STEADY, calls=self._calls, steps=steps, plain_seconds=plain)
        with phase("steady state"):
            with profile:
                call(step, self._calls, fetch)
            with profile.stacks:
                call(step, self._calls, fetch)
        self._profiles[STEADY] = profile
        return calls

    def once(self, step, phase, fetch):
        """Profile one call of `step` as the first call, if there was none yet, and return its result."""
        with phase(FIRST_CALL):
            result = step()
            fetch(result)
        return result

    def write(self, folder):
        """Write the profiles, each as pstats and as JSON, and return the files' paths."""
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
    """A profile of its `with` block, and samples of the stack in the block of its `stacks`."""

    def __init__(self, part, **facts):
        import cProfile  # here, because every launch imports this module, and its import is timed

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
        places = {}
        for key in sorted(stats):
            if not (key[0].startswith(KIT) or "'_lsprof.Profiler'" in key[2]):
                places[key] = len(places)
        return dict(self._facts, functions=functions(stats, places), stacks=sampled(self.stacks, places))


def call(step, calls, fetch):
    """Make `calls` calls, and wait for the last result."""
    for _ in repeat(None, calls):
        result = step()
    fetch(result)


def functions(stats, places):
    """One list a function: file, line, name, calls, calls less recursion, own and cumulative seconds, and its callers.

    stats: as cProfile keeps them, by file, line and name; places: each kept function's place in the result. A caller is
    its place, calls, own and cumulative seconds.
    """
    rows = []
    for key in places:
        primitive, calls, own, cumulative, callers = stats[key]
        edges = [
            [places[by], counts[0], counts[2], counts[3]] for by, counts in sorted(callers.items()) if by in places
        ]
        rows.append([*key, calls, primitive, own, cumulative, edges])
    return rows


def sampled(stacks, places):
    """One list a stack: its seconds, and the places of the functions on it, the outermost first."""
    seconds = {}
    for stack, duration in stacks.seconds.items():
        codes = (stacks.codes[place] for place in reversed(stack))
        keys = ((code.co_filename, code.co_firstlineno, code.co_name) for code in codes)
        path = tuple(places[key] for key in keys if key in places)
        seconds[path] = seconds.get(path, 0.0) + duration
    return [[total, list(path)] for path, total in sorted(seconds.items()) if path]
