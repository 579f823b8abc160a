"""Count the calls of a step of each series, in one process: a program for the Python of an environment.

`PYTHONPATH=WHEEL:scenarios python count_once.py SCENARIO…` writes a line of JSON for each series. A scenario is its
file, and its axes as JSON. Counts don't depend on the machine, so a process can count one series after the other.
"""

import importlib.util
import json
import sys
from contextlib import contextmanager

from kit.counting import Counter

#: The calls of a step before the counted ones, which fill caches and trace.
WARM_CALLS = 5


class CountingBench:
    """The interface of the scenarios, for counts instead of times."""

    device_name = "cpu"
    document = False

    def __init__(self):
        self.counts = []
        self.steps = 1

    @contextmanager
    def phase(self, _name):
        """Do nothing around a phase."""
        yield

    def device(self):
        """Do nothing: TensorFlow uses the CPU."""

    def fetch(self, values):
        """Return the values, which a CPU has computed already."""
        return values

    def measure(self, step, steps=1, document=1):
        """Count two calls of `step`, after a few other calls."""
        for _ in range(WARM_CALLS):
            step()
        self.steps = steps
        self.counts = [Counter().count(step, self.fetch) for _ in range(2)]
        return steps

    def once(self, step):
        """Count the only call of `step`, and return its result."""
        results = []
        self.counts = [Counter().count(lambda: results.append(step()), self.fetch)]
        return results[0]

    def placed(self, _values):
        """Do nothing: TensorFlow uses the CPU."""

    def fingerprint(self, **values):
        """Do nothing."""


def count(path, axes):
    """Return the counts of a scenario: totals per step, whether two calls agree, and the calls of each function."""
    specification = importlib.util.spec_from_file_location(path.rsplit("/", 1)[-1][:-3], path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    bench = CountingBench()
    module.scenario(bench, **axes)
    row, functions = dict(bench.counts[0]), {}
    for file, names in row.pop("functions").items():
        for name, (calls, within, own) in names.items():
            functions[file + ":" + name] = [calls, within, own]
    return {
        "steps": bench.steps,
        "agree": all(counts == bench.counts[0] for counts in bench.counts),
        "counts": row,
        "functions": functions,
    }


def main():
    """Count the series in the arguments."""
    for word in sys.argv[1:]:
        path, _, axes = word.partition("?")
        line = {"series": word}
        try:
            line.update(count(path, json.loads(axes or "{}")))
        except Exception as error:  # noqa: BLE001 - the next series may run
            line["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        print("COUNTED " + json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
