"""Changes between two runs of a series: segment boundaries, across which nothing is compared, and annotations.

Driver, kit and the baseline's version and lock affect both sides of a ratio, so a change of them starts a new segment.
The measured side may change at any time: changes of its version, its lock, its image and the scenario's file are
annotations, and the first suspects of a change in the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.model.history import Origin, Series

#: How much of a hash is shown.
_SHOWN = 8

#: Facts that are shown in full.
_WHOLE = ("driver", "version", "reference_version")

#: With another version, the lock is another one too, and with another lock the image.
_IMPLIED = {
    "lock": frozenset({"version"}),
    "image": frozenset({"version", "lock"}),
    "reference_lock": frozenset({"reference_version"}),
}


@dataclass(frozen=True, slots=True)
class SegmentBoundary:
    """Something else was measured, or was measured with, from point `index` of a series on; `words` say what.

    `is_version` is true for another version of a release line.
    """

    index: int
    is_cut: bool
    words: str
    is_version: bool = False


def breaks(series: Series) -> list[SegmentBoundary]:
    """Return every segment boundary of a series, in order; several if several things changed at one place."""
    key = series.key
    cuts = {
        "driver": "the driver",
        "kit": "the kit",
        "reference_version": f"the version of {key.reference}",
        "reference_lock": f"the lock of {key.reference}",
    }
    marks = {
        "version": f"the version of {key.environment}",
        "lock": f"the lock of {key.environment}",
        "image": f"the image of {key.environment}",
        "scenario": f"the file of {key.scenario}",
    }
    boundaries = []
    for index, (one, other) in enumerate(pairwise(point.origin for point in series.points), start=1):
        if one is other:  # a series of an index has one origin for all points of the same
            continue
        for names, is_cut in ((cuts, True), (marks, False)):
            changed = [name for name in names if _has_changed(one, other, name)]
            boundaries += [
                SegmentBoundary(
                    index, is_cut, f"{names[name]} ({_between(one, other, name)})", is_version=name == "version"
                )
                for name in changed
                if _IMPLIED.get(name, frozenset()).isdisjoint(changed)
            ]
    return boundaries


def epochs(series: Series, boundaries: Sequence[SegmentBoundary]) -> list[range]:
    """Return the positions of the points of each segment, in order."""
    edges = [0, *sorted({boundary.index for boundary in boundaries if boundary.is_cut}), len(series.points)]
    return [range(first, end) for first, end in pairwise(edges)]


def _has_changed(one: Origin, other: Origin, name: str) -> bool:
    """Return whether a fact differs. Points of earlier harness versions have no version."""
    old, new = getattr(one, name), getattr(other, name)
    return old != new and (name not in _WHOLE[1:] or "" not in (old, new))


def _between(one: Origin, other: Origin, name: str) -> str:
    """Return the old and the new value, as short as the difference allows."""
    old, new = (str(getattr(origin, name)).removeprefix("sha256:") for origin in (one, other))
    if name not in _WHOLE:
        old, new = old[:_SHOWN], new[:_SHOWN]
    return f"{old or 'none'} → {new or 'none'}"
