"""A machine without noise, for searches."""

import math

from harness.analysis.work_counts import COUNTS, StepWork
from harness.bisect.candidates import Candidate
from harness.bisect.probe import COMPARING
from harness.bisect.search import Search
from harness.paired.comparison import PairComparison


class MachineRun:
    """A run without noise; `missing` has the reasons of environments without a value."""

    def __init__(self, values, rounds, missing, off=0.01):
        self._values, self.rounds, self._missing, self._off = values, rounds, missing, off

    def differences(self, text, fixed, after=0):
        if text in self._missing or fixed in self._missing:
            return []
        # two values of a round that no float makes equal, as in life
        step = math.log(self._values[text] / self._values[fixed])
        return [step + 1e-3 * (-1) ** number for number in range(after, self.rounds)]

    def why_not(self, text, after=0):
        return self._missing.get(text, "")

    def work(self, text):
        calls = self._values[text]
        return self._missing.get(text) or StepWork(dict.fromkeys(COUNTS, calls), {("a.py", "reset"): (calls,) * 3})

    def compare(self, text, fixed, alpha):
        value = self._values[text] / self._values[fixed]
        step = math.log(value)
        return PairComparison(
            step=step,
            low=step - self._off,
            high=step + self._off,
            rounds=self.rounds,
            floor=math.log(1.03),
            what=f"{text} takes ×{value:g}",
        )


class SearchedMachine:
    """Measures candidates `c0`, `c1`, … with these seconds; `broken` have no result, `absent` cannot be made.

    `off` is half the width of the intervals, on the log scale. `packages` are the pins by environment.
    """

    def __init__(self, seconds, broken=(), absent=(), off=0.01):
        self.off = off
        self.values = {f"c{place}": value for place, value in enumerate(seconds)}
        self.broken = {f"c{at}": "it fails" for at in broken}
        self.absent = {f"c{at}": "it was yanked" for at in absent}
        self.asked = []
        self.made = []
        self.said = []
        self.say = self.said.append
        self.spent = 0.0
        self.packages = {}

    def measure(self, kind, texts, rounds, earlier=None):
        self.asked.append((kind, list(texts), rounds))
        added = rounds - (earlier.rounds if earlier else 0)
        self.spent += self.estimated(len(texts), added, with_control=kind in COMPARING)
        return MachineRun(self.values, rounds, self.broken, self.off)

    def why_not(self, text):
        self.made.append(text)
        return self.absent.get(text, "")

    def pins(self, text):
        return self.packages.get(text, {})

    def estimated(self, environments, rounds, *, with_control=False):
        return 10.0 * rounds * (environments + with_control)

    def search(self, **changes):
        candidates = [Candidate(text) for text in self.values]
        return Search(candidates, 0, len(candidates) - 1, **changes)
