"""Packages that differ between the two candidates of an answer, and the package whose exchange moves the time.

A release brings newer versions of other packages along. So one package is exchanged, and the others stay the same:
`tf2.15+keras==3.0.5` is TensorFlow 2.15 with the Keras of the newer release.
"""

from dataclasses import dataclass, replace

from harness.bisect.candidates import find_moving
from harness.bisect.comparison import LookResult
from harness.bisect.probe import Probe
from harness.bisect.search import Looks, Search
from harness.model.environment import differences

#: Packages that can change the time of a step, other than TensorFlow itself; in the order in which they are exchanged.
EXCHANGED = ("keras", "keras-nightly", "tf-keras", "numpy")

#: A package makes the difference if its exchange moves at least this share of the change, on the scale of the search.
MOST = 0.5


@dataclass(frozen=True, slots=True)
class Exchange:
    """The candidate `base` with the other candidate's version of a package: the environment `text`.

    `result` compares the two. It is None if they were not measured, for the reason `why_not`. `shares` are the share of
    the change that moved with the package, and the ends of its interval.
    """

    package: str
    base: str
    text: str
    result: LookResult | None = None
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    why_not: str = ""

    @property
    def moves(self) -> bool:
        """Return whether the package is shown to make the difference."""
        return self.result is not None and self.result.is_step and self.shares[0] >= MOST

    @property
    def role(self) -> str:
        """Return `makes the difference`, `doesn't make the difference` or `is not shown to make the difference`."""
        if self.moves:
            return "makes the difference"
        verb = "doesn't make" if max(self.shares) < MOST else "is not shown to make"
        return f"{verb} the difference"


def exchange(search: Search, budget: float, probe: Probe) -> list[Exchange]:
    """Exchange packages of the confirmed pair, until one makes the difference. `budget` is in seconds of launches.

    A package is moved into the older candidate or, if that isn't possible, into the newer one.
    """
    exchanges: list[Exchange] = []
    for package in EXCHANGED if len(changes(search, probe)) > 1 else ():
        for entry in _ways(search, package, probe):
            exchanges.append(_measure(entry, search, budget, probe))
            if exchanges[-1].result:
                break
        if exchanges and exchanges[-1].moves:
            break
    return exchanges


def pair_of(search: Search) -> tuple[str, str] | None:
    """Return the values of -e of the two candidates, the older first; None without an answer, and for commits."""
    if search.found is None or search.candidates[search.found[1]].title:
        return None
    return search.text(search.found[0]), search.text(search.found[1])


def changes(search: Search, probe: Probe) -> list[str]:
    """Return all packages that differ between the two candidates, such as `keras 3.0.5 instead of 2.15.0`."""
    pair = pair_of(search)
    return differences(probe.pins(pair[1]), probe.pins(pair[0])) if pair else []


def versions(search: Search, package: str, probe: Probe) -> tuple[str, str] | None:
    """Return the different versions of a package in the two candidates; None if they are equal, or one is missing."""
    pair = pair_of(search)
    old, new = (probe.pins(text).get(package, "") for text in pair) if pair else ("", "")
    return (old, new) if old and new and old != new else None


def _ways(search: Search, package: str, probe: Probe) -> list[Exchange]:
    """Return the two exchanges of a package, or none if its version is the same."""
    pair, both = pair_of(search), versions(search, package, probe)
    if pair is None or both is None:
        return []
    return [
        Exchange(package, base, find_moving(base, package, probe.pins(base)).text(version))
        for base, version in zip(pair, reversed(both), strict=True)
    ]


def _measure(entry: Exchange, search: Search, budget: float, probe: Probe) -> Exchange:
    looks = Looks("exchange", (entry.base, entry.text))
    if probe.spent + looks.seconds(probe) > budget:
        return replace(entry, why_not="the budget is spent")
    if reason := probe.why_not(entry.text):
        return replace(entry, why_not=reason)
    probe.say(f"Exchange of one package: {entry.text}, compared with {entry.base}.")
    run = looks.look(probe)
    if looks.result is None or search.pair is None:
        return replace(entry, why_not=run.why_not(entry.text) or "no round has results of both")
    # the newer candidate gets the older version: the change is undone
    step = search.pair.step if (pair_of(search) or ("",))[0] == entry.base else -search.pair.step
    value, low, high = (end / step for end in (looks.result.step, *looks.result.steps))
    return replace(entry, result=looks.result, shares=(value, low, high))
