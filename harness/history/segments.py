"""Software changes between successive runs of a series: segment boundaries and annotations.

The driver, the kit, and the baseline's version and lock affect both sides of a ratio. So if one of them changes, a new
segment starts, and results aren't compared across the boundary. Changes of the measured side (its version, lock and
image, and the scenario's file) are only annotations. They are the first suspects if the results change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from harness.model.history import Origin, Series, SeriesPoint

#: The number of characters of a hash that are shown.
_HASH_LENGTH = 8

#: Facts that aren't hashes, and are shown in full.
_UNSHORTENED_FACTS = ("driver", "version", "reference_version")

#: Changes that aren't reported if another one of these changes explains them: a new version has a new lock, and a new
#: lock has a new image.
_IMPLIED_BY = {
    "lock": frozenset({"version"}),
    "image": frozenset({"version", "lock"}),
    "reference_lock": frozenset({"reference_version"}),
}

#: The number of equal counts before a change of a count.
STEADY = 2


@dataclass(frozen=True, slots=True)
class SegmentBoundary:
    """A software change at the point `index` of a series. `words` describe the change.

    `is_cut` is true for a segment boundary, and false for an annotation. `is_version` is true for a new version of a
    release line.
    """

    index: int
    is_cut: bool
    words: str
    is_version: bool = False


def find_boundaries(series: Series) -> Sequence[SegmentBoundary]:
    """Return the segment boundaries and annotations of a series, in order. A point can have several."""
    key = series.key
    origins = tuple(point.origin for point in series.points)
    return _compare_origins(origins, key.scenario, key.environment, key.reference)


# most series of a scenario have the same origins
@lru_cache(maxsize=1_000)
def _compare_origins(
    origins: Sequence[Origin], scenario: str, environment: str, reference: str
) -> Sequence[SegmentBoundary]:
    return [
        SegmentBoundary(index, is_cut, words, is_version)
        for index, (one, other) in enumerate(pairwise(origins), start=1)
        if one is not other  # points of a history with equal origins share one object
        for is_cut, words, is_version in _describe_changes(one, other, scenario, environment, reference)
    ]


# other series have most of their origins in common
@lru_cache(maxsize=50_000)
def _describe_changes(
    one: Origin, other: Origin, scenario: str, environment: str, reference: str
) -> Sequence[tuple[bool, str, bool]]:
    """Return the changes between two successive points, as the fields of boundaries after `index`."""
    cuts = {
        "driver": "the driver",
        "kit": "the kit",
        "reference_version": f"the version of {reference}",
        "reference_lock": f"the lock of {reference}",
    }
    marks = {
        "version": f"the version of {environment}",
        "lock": f"the lock of {environment}",
        "image": f"the image of {environment}",
        "scenario": f"the file of {scenario}",
    }
    changed_names = _find_changed_facts(one, other)
    return [
        (is_cut, f"{text} ({_format_change(one, other, name)})", name == "version")
        for names, is_cut in ((cuts, True), (marks, False))
        for name, text in names.items()
        if name in changed_names and _IMPLIED_BY.get(name, frozenset()).isdisjoint(changed_names)
    ]


def find_count_changes(points: Sequence[SeriesPoint]) -> Iterator[tuple[int, float, float]]:
    """Yield the index of each point with a changed number of calls per step, and the numbers before and after.

    Counts have no noise, so one point is enough. But STEADY points before it must have had equal counts. Points without
    a count are skipped. Counts of different versions of the kit, which counts, aren't compared.
    """
    count, kit, steady = 0.0, "", 0
    for index, point in enumerate(points):
        if point.calls is not None:
            is_equal = (point.calls, point.origin.kit) == (count, kit)
            if steady >= STEADY and not is_equal and point.origin.kit == kit:
                yield index, count, point.calls
            count, kit, steady = point.calls, point.origin.kit, steady + 1 if is_equal else 1


def split_segments(series: Series, boundaries: Sequence[SegmentBoundary]) -> list[range]:
    """Return the positions of the points of each segment, in order."""
    edges = [0, *sorted({boundary.index for boundary in boundaries if boundary.is_cut}), len(series.points)]
    return [range(first, end) for first, end in pairwise(edges)]


def _find_changed_facts(one: Origin, other: Origin) -> list[str]:
    """Return the names of the facts that differ. Points of earlier harness versions have no version."""
    return [
        name
        for name, old, new in zip(Origin._fields, one, other, strict=True)
        if old != new and (name not in _UNSHORTENED_FACTS[1:] or (old and new))
    ]


def _format_change(one: Origin, other: Origin, name: str) -> str:
    """Format the old and the new value of a fact. Hashes are shortened."""
    old, new = (str(getattr(origin, name)).removeprefix("sha256:") for origin in (one, other))
    if name not in _UNSHORTENED_FACTS:
        old, new = old[:_HASH_LENGTH], new[:_HASH_LENGTH]
    return f"{old or 'none'} → {new or 'none'}"
