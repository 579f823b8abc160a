"""Changes between two runs of a series: segment boundaries, across which nothing is compared, and annotations.

Driver, kit and the baseline's lock affect both sides of a ratio, so a change of them starts a new segment. The measured
side may change at any time: changes of its lock, its image and the scenario's file are annotations, and the first
suspects of a change in the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.model.history import Origin, Series

#: How much of a hash is shown.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class SegmentBoundary:
    """Something else was measured, or was measured with, from point `index` of a series on; `words` say what."""

    index: int
    is_cut: bool
    words: str


def breaks(series: Series) -> list[SegmentBoundary]:
    """Every break of a series, in order; several at one place where several things changed."""
    of = series.key
    cuts = {"driver": "the driver", "kit": "the kit", "reference_lock": f"the lock of {of.reference}"}
    marks = {
        "lock": f"the lock of {of.environment}",
        "image": f"the image of {of.environment}",
        "scenario": f"the file of {of.scenario}",
    }
    found = []
    for index, (one, other) in enumerate(pairwise(point.origin for point in series.points), start=1):
        if one is other:  # a series of an index has one origin for all points of the same
            continue
        for names, is_cut in ((cuts, True), (marks, False)):
            changed = [name for name in names if getattr(one, name) != getattr(other, name)]
            # with another lock the image is another one too
            shown = [name for name in changed if name != "image" or "lock" not in changed]
            found += [SegmentBoundary(index, is_cut, f"{names[name]} ({_between(one, other, name)})") for name in shown]
    return found


def epochs(series: Series, found: Sequence[SegmentBoundary]) -> list[range]:
    """The places of the points of each epoch, in order."""
    edges = [0, *sorted({each.index for each in found if each.is_cut}), len(series.points)]
    return [range(first, end) for first, end in pairwise(edges)]


def _between(one: Origin, other: Origin, name: str) -> str:
    """Return the old and the new value, as short as the difference allows."""
    old, new = (str(getattr(each, name)).removeprefix("sha256:") for each in (one, other))
    if name != "driver":
        old, new = old[:_SHOWN], new[:_SHOWN]
    return f"{old or 'none'} → {new or 'none'}"
