"""A machine without noise, for searches."""

import math

from harness.bisect.candidates import Candidate
from harness.bisect.search import LookResult, Search


class MeasuredEnvironments:
    """What a machine without noise tells of environments; `missing` says why some have no number."""

    def __init__(self, values, rounds, missing, off=0.01):
        self._values, self._rounds, self._missing, self._off = values, rounds, missing, off

    def differences(self, text, fixed):
        if text in self._missing or fixed in self._missing:
            return []
        # two values of a round that no float makes equal, as in life
        step = math.log(self._values[text] / self._values[fixed])
        return [step + 1e-3 * (-1) ** number for number in range(self._rounds)]

    def why_not(self, text):
        return self._missing.get(text, "")

    def judged(self, text, fixed):
        value = self._values[text] / self._values[fixed]
        return LookResult(
            value=value,
            low=value * math.exp(-self._off),
            high=value * math.exp(self._off),
            rounds=self._rounds,
            floor=math.log(1.03),
            what=f"{text} takes ×{value:g}",
        )

    def after(self, earlier):
        return MeasuredEnvironments(self._values, earlier._rounds + self._rounds, self._missing, self._off)


class Machine:
    """Measures candidates `c0`, `c1`, … with these seconds; `broken` have no number, `absent` cannot be made.

    `off` is half the width of the intervals, on the log scale.
    """

    def __init__(self, seconds, broken=(), absent=(), off=0.01):
        self.off = off
        self.values = {f"c{at}": each for at, each in enumerate(seconds)}
        self.broken = {f"c{at}": "it fails" for at in broken}
        self.absent = {f"c{at}": "it was yanked" for at in absent}
        self.asked = []
        self.made = []
        self.spent = 0.0

    def measure(self, kind, texts, rounds, *, verdict=False):
        self.asked.append((kind, list(texts), rounds))
        self.spent += self.estimated(len(texts), rounds, verdict=verdict)
        return MeasuredEnvironments(self.values, rounds, self.broken, self.off)

    def why_not(self, text, *, alone=True):
        self.made.append((text, alone))
        return self.absent.get(text, "")

    def estimated(self, environments, rounds, *, verdict=False):
        return 10.0 * rounds * (environments + verdict)

    def search(self, **changes):
        candidates = [Candidate(text) for text in self.values]
        return Search(candidates, 0, len(candidates) - 1, **changes)
