"""A cache of change points, so that a time series with the same numbers isn't searched again.

The key of an entry is a hash of the numbers, the options and the code of the search. So a series with a new point is
searched again. Decisions aren't part of the key, because they are applied to the result.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.files import get_cache_dir, parse_json, read, write_atomically
from harness.history import detection
from harness.history.detection import FEWEST, LEAST, ChangePoint, P, fit_all_levels, keep_significant

#: The values of a series, and their standard errors.
ValuesAndErrors = tuple[Sequence[float], Sequence[float]]

#: The largest p of a tentative change, and the smallest number of points on each side of it.
WATCHED_P, WATCHED_FEWEST = 1e-3, 2

#: The largest number of series in the cache. The least recently used ones are removed.
MOST = 50_000


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The conditions for a change: see `fit_levels` and `keep_significant`."""

    fewest: int = FEWEST
    p: float = P
    least: float = LEAST


@dataclass(frozen=True, slots=True)
class CachedChanges:
    """The changes in a time series: `sure` contains significant changes, and `maybe` tentative ones (`WATCHED_P`)."""

    sure: Sequence[ChangePoint]
    maybe: Sequence[ChangePoint]


def search(values: Sequence[float], errors: Sequence[float], options: SearchOptions) -> CachedChanges:
    """Return the changes in log ratios with these standard errors. Raises ValueError as `fit_levels` does."""
    (changes,) = search_all([(values, errors)], options)
    return changes


def search_all(series: Sequence[ValuesAndErrors], options: SearchOptions) -> list[CachedChanges]:
    """Return the changes of each series, as `search` does for one.

    Tentative changes are tested as if nightly runs were independent, so that correlation doesn't delay them.
    """
    loose_fits = fit_all_levels(series, fewest=min(WATCHED_FEWEST, options.fewest), least=options.least)
    # if all levels are long enough already, a minimum length wouldn't change them
    changed_places = [place for place, fit in enumerate(loose_fits) if fit.shortest < options.fewest]
    refitted_series = [series[place] for place in changed_places]
    strict_fits = dict(
        zip(changed_places, fit_all_levels(refitted_series, fewest=options.fewest, least=options.least), strict=True)
    )
    return [
        CachedChanges(
            keep_significant(strict_fits.get(place, fit), p=options.p, least=options.least),
            keep_significant(fit, p=max(WATCHED_P, options.p), least=options.least, is_independent=True),
        )
        for place, fit in enumerate(loose_fits)
    ]


class ChangeCache:
    """Results of searches in this process and, if a file is given, in earlier processes."""

    def __init__(self, path: Path | None = None) -> None:
        """Load the cache. A missing or corrupt file counts as an empty cache."""
        self._path = path
        self._loaded: dict[str, CachedChanges] = {}
        self._used: dict[str, CachedChanges] = {}
        self._has_new_results = False
        if path:
            with suppress(OSError, ValueError, TypeError, AttributeError):
                document = parse_json(read(path))
                self._loaded = {name: CachedChanges(*map(_load_changes, pair)) for name, pair in document.items()}

    @classmethod
    def load_user_cache(cls) -> "ChangeCache":
        """Load the cache in the user's cache folder."""
        return cls(get_cache_dir() / "history" / "changes.json")

    def find_changes(self, series: Sequence[ValuesAndErrors], options: SearchOptions) -> list[CachedChanges]:
        """Return the result of `search_all`. The search runs only for new series."""
        names = [_make_name(values, errors, options) for values, errors in series]
        missing = {name: entry for name, entry in zip(names, series, strict=True) if name not in self._used}
        for name in self._loaded.keys() & missing:
            self._used[name] = self._loaded[name]
            del missing[name]
        if missing:
            self._used |= dict(zip(missing, search_all(list(missing.values()), options), strict=True))
            self._has_new_results = True
        return [self._used[name] for name in names]

    def save(self) -> None:
        """Save new results. If they can't be saved, the series will be searched again."""
        if self._path and self._has_new_results:
            # the most recently used entries are last
            unused_changes = {name: cached for name, cached in self._loaded.items() if name not in self._used}
            newest = list({**unused_changes, **self._used}.items())[-MOST:]
            document = {name: [[*map(astuple, cached.sure)], [*map(astuple, cached.maybe)]] for name, cached in newest}
            with suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._path, json.dumps(document, separators=(",", ":")).encode())
            self._has_new_results = False


def _make_name(values: Sequence[float], errors: Sequence[float], options: SearchOptions) -> str:
    numbers = np.array([values, errors], np.float64).tobytes()
    return hashlib.sha256(_hash_code() + repr(astuple(options)).encode() + numbers).hexdigest()[:32]


def _load_changes(rows: Any) -> list[ChangePoint]:
    return [ChangePoint(int(index), *map(float, numbers)) for index, *numbers in rows]


@cache
def _hash_code() -> bytes:
    """Return a hash of the search's code."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in (detection.__file__, __file__))).digest()
