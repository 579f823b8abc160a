"""@about@"""

import gc
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from time import perf_counter

# What is compared; the first was measured to take longer, or more. Each is run in fresh processes, in turn.
SIDES = "@sides@"
OF = "@of@"  # what of a process is compared
ROUNDS = 5
WARM_UP, MEASURE, SAMPLE = 0.5, 1.5, 0.02  # seconds


class NotAvailable(Exception):
    """What the work raises where a release does not have what it needs."""


class Bench:
    """What the work below is given. `numbers` is what was measured, by name."""

    document, thorough, device_name, environment = False, False, "cpu", None

    def __init__(self, axes):
        self.axes = axes
        self.numbers = {}

    @contextmanager
    def phase(self, name):
        started = perf_counter()
        yield
        self.numbers[name] = perf_counter() - started

    def device(self):
        tf = sys.modules["tensorflow"]
        if tf.executing_eagerly():
            tf.constant(1.0).numpy()  # so that this is in no other number

    def fetch(self, values):
        if isinstance(values, dict):
            self.fetch(list(values.values()))
        elif isinstance(values, (list, tuple)):
            for value in values:
                self.fetch(value)
        elif hasattr(values, "numpy"):
            try:
                values.numpy()  # a GPU has done its work then
            except Exception:  # of a graph: there is nothing to wait for
                pass
        return values

    def timed(self, step, calls=1):
        started = perf_counter()
        for _ in range(calls):
            result = step()
        self.fetch(result)
        return (perf_counter() - started) / calls, result

    def measure(self, step, steps=1, document=1):
        first, _ = self.timed(step)
        made, samples, calls = 1, [], max(1, int(SAMPLE / first))
        warm = perf_counter() + WARM_UP
        gc.collect()
        while perf_counter() < warm + MEASURE or len(samples) < 3:
            seconds, _ = self.timed(step, calls)
            made += calls
            if perf_counter() > warm or not samples:
                samples.append(seconds / steps)
        self.numbers["step"] = sorted(samples)[len(samples) // 2]
        return made * steps

    def once(self, step):
        gc.collect()
        self.numbers["step"], result = self.timed(step)
        return result

    def memory(self, step, calls, steps=1):
        warm = calls // 10
        for _ in range(warm):
            step()
        before = resident_bytes()
        seconds, _ = self.timed(step, calls)
        self.numbers.update({"step": seconds / steps, "memory growth": (resident_bytes() - before) / calls})
        return (warm + calls) * steps

    def observe(self, name, value):
        if isinstance(value, (int, float)):
            self.numbers[name] = value

    def fingerprint(self, **values):
        pass

    placed = artifact = fingerprint


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---------------------------------------------------------------- the work
# @work@

# ---------------------------------------------------------------- run it


def child(side):
    """Do one side's work in this process, and print its numbers as the last line."""
    bench = Bench(side["arguments"])
    scenario(bench, **side["arguments"])
    try:
        import resource

        bench.numbers["peak memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except ImportError:
        pass
    tensorflow = getattr(sys.modules.get("tensorflow"), "__version__", "not imported")
    print()
    print(json.dumps({"value": bench.numbers[OF], "tensorflow": tensorflow, "python": sys.version.split()[0]}))


def shown(value):
    if OF in ("memory growth", "peak memory"):
        return "{:,.0f} bytes".format(value)
    return "{:,.4g}".format(value) if OF == "traces" else "{:,.4g} ms".format(value * 1000)


def main(arguments):
    if arguments[:1] == ["--child"]:
        return child(SIDES[int(arguments[1])])
    chosen = list(range(len(SIDES)))
    if arguments[:1] == ["--only"]:
        chosen = [int(arguments[1])]
        arguments = arguments[2:]
    pythons = dict(zip(chosen, (arguments or [sys.executable]) * len(SIDES)))
    values = {place: [] for place in chosen}
    for number in range(ROUNDS):
        for place in chosen[:: -1 if number % 2 else 1]:
            side = SIDES[place]
            command = [pythons[place], os.path.abspath(__file__), "--child", str(place)]
            environ = dict(os.environ, **side["environ"])
            done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, universal_newlines=True)
            if done.returncode:
                sys.exit("{}: exit status {}".format(side["label"], done.returncode))
            told = json.loads(done.stdout.strip().splitlines()[-1])
            values[place].append(told["value"])
            place_in = "{label} (TensorFlow {tensorflow}, Python {python})".format(label=side["label"], **told)
            print("round {}: {} {}: {}".format(number + 1, place_in, OF, shown(told["value"])), flush=True)
    if len(chosen) == 2 and all(value > 0 for place in chosen for value in values[place]):
        ratios = sorted(one / other for one, other in zip(values[0], values[1]))
        text = "{} takes {:.3g} times as much as {} ({:.3g} to {:.3g} over {} rounds)"
        labels = [side["label"] for side in SIDES]
        print(text.format(labels[0], ratios[ROUNDS // 2], labels[1], ratios[0], ratios[-1], ROUNDS))


if __name__ == "__main__":
    main(sys.argv[1:])
