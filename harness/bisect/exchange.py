"""Exchanges packages between the two candidates that a search found, to find the package that causes the change.

A release also brings newer versions of other packages. So one package is exchanged, and all others stay the same:
`tf2.15+keras==3.0.5` is TensorFlow 2.15 with the Keras of the newer release.
"""

from dataclasses import dataclass, replace

from harness.bisect.candidates import find_moving
from harness.bisect.comparison import LookResult
from harness.bisect.probe import Probe
from harness.bisect.search import Looks, Search
from harness.model.environment import differences

#: Packages other than TensorFlow that can change the time of a step, in the order in which they are exchanged.
EXCHANGED_PACKAGES = ("keras", "keras-nightly", "tf-keras", "numpy")

#: A package makes the difference if its exchange accounts for at least this share of the change, on the search's scale.
DECISIVE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Exchange:
    """The environment `text`: the candidate `base` with the other candidate's version of a package.

    `result` compares `text` with `base`. If they were not measured, it is None, and `why_not` is the reason. `shares`
    are the share of the change that the exchange accounts for, and the limits of its interval.
    """

    package: str
    base: str
    text: str
    result: LookResult | None = None
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    why_not: str = ""

    @property
    def moves(self) -> bool:
        """Return whether the results establish that the package makes the difference."""
        return self.result is not None and self.result.is_step and self.shares[0] >= DECISIVE_SHARE

    @property
    def role(self) -> str:
        """Return `makes the difference`, `doesn't make the difference` or `may or may not make the difference`."""
        if self.moves:
            return "makes the difference"
        verb = "doesn't make" if max(self.shares) < DECISIVE_SHARE else "may or may not make"
        return f"{verb} the difference"


def exchange(search: Search, budget: float, probe: Probe) -> list[Exchange]:
    """Exchange packages of the confirmed pair, until one makes the difference. `budget` is in seconds of launches.

    A package is moved into the older candidate or, if that isn't possible, into the newer one.
    """
    exchanges: list[Exchange] = []
    for package in EXCHANGED_PACKAGES if len(list_differences(search, probe)) > 1 else ():
        for entry in _list_exchanges(search, package, probe):
            exchanges.append(_measure_exchange(entry, search, budget, probe))
            if exchanges[-1].result:
                break
        if exchanges and exchanges[-1].moves:
            break
    return exchanges


def get_pair(search: Search) -> tuple[str, str] | None:
    """Return the values of -e of the two candidates, the older first; None if nothing was found, or for commits."""
    if search.found is None or search.candidates[search.found[1]].title:
        return None
    return search.text(search.found[0]), search.text(search.found[1])


def list_differences(search: Search, probe: Probe) -> list[str]:
    """Return all packages that differ between the two candidates, such as `keras 3.0.5 instead of 2.15.0`."""
    pair = get_pair(search)
    return differences(probe.pins(pair[1]), probe.pins(pair[0])) if pair else []


def find_versions(search: Search, package: str, probe: Probe) -> tuple[str, str] | None:
    """Return the versions of a package in the two candidates; None if they are equal, or if one is missing."""
    pair = get_pair(search)
    older, newer = (probe.pins(text).get(package, "") for text in pair) if pair else ("", "")
    return (older, newer) if older and newer and older != newer else None


def _list_exchanges(search: Search, package: str, probe: Probe) -> list[Exchange]:
    """Return the two possible exchanges of a package, or none if both candidates have the same version."""
    pair, versions = get_pair(search), find_versions(search, package, probe)
    if pair is None or versions is None:
        return []
    return [
        Exchange(package, base, find_moving(base, package, probe.pins(base)).text(version))
        for base, version in zip(pair, reversed(versions), strict=True)
    ]


def _measure_exchange(entry: Exchange, search: Search, budget: float, probe: Probe) -> Exchange:
    looks = Looks("exchange", (entry.base, entry.text))
    if probe.spent + looks.seconds(probe) > budget:
        return replace(entry, why_not="the budget is spent")
    if reason := probe.why_not(entry.text):
        return replace(entry, why_not=reason)
    probe.say(f"Exchange of one package: {entry.text}, compared with {entry.base}.")
    run = looks.look(probe)
    if looks.result is None or search.pair is None:
        return replace(entry, why_not=run.why_not(entry.text) or "no round has results of both environments")
    # the newer candidate gets the older version: the change is undone
    step = search.pair.step if (get_pair(search) or ("",))[0] == entry.base else -search.pair.step
    value, low, high = (end / step for end in (looks.result.step, *looks.result.steps))
    return replace(entry, result=looks.result, shares=(value, low, high))
