"""What was found in series before: a series whose numbers are the same is not searched again.

Kept by a hash of the numbers, of what a change has to be, and of the search itself, so that a point more, another
option and another version find nothing here. Decisions are no part of it: they are applied to what is found.
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

from harness.files import cache_dir, parse_json, read, write_atomically
from harness.history import detection
from harness.history.detection import FEWEST, LEAST, ChangePoint, P, holding, segmented

#: What two nights in a row have to show to be watched.
WATCHED_P, WATCHED_FEWEST = 1e-3, 2

#: So many series are remembered, those that were asked for last.
MOST = 50_000


@dataclass(frozen=True, slots=True)
class Options:
    """What a change has to be: see `change_points`."""

    fewest: int = FEWEST
    p: float = P
    least: float = LEAST


@dataclass(frozen=True, slots=True)
class CachedChanges:
    """The changes in some nights: those that are `sure`, and what might become one (see `WATCHED_P`)."""

    sure: Sequence[ChangePoint]
    maybe: Sequence[ChangePoint]


def search(values: Sequence[float], errors: Sequence[float], options: Options) -> CachedChanges:
    """Return the changes in log ratios with these standard errors; raises ValueError as `change_points` does.

    What might become a change is tested as if nights were independent: a correlation costs it no night.
    """
    loose = segmented(values, errors, fewest=min(WATCHED_FEWEST, options.fewest), least=options.least)
    # levels that are long enough are the best of those that have to be
    is_same = loose.shortest >= options.fewest
    strict = loose if is_same else segmented(values, errors, fewest=options.fewest, least=options.least)
    sure = holding(strict, p=options.p, least=options.least)
    maybe = holding(loose, p=max(WATCHED_P, options.p), least=options.least, is_independent=True)
    return CachedChanges(sure, maybe)


class ChangeCache:
    """What was found before, in this process and, where a file is named, in others."""

    def __init__(self, path: Path | None = None) -> None:
        """A file that is not there, or that is damaged, knows nothing."""
        self._path = path
        self._found: dict[str, CachedChanges] = {}
        self._asked: dict[str, CachedChanges] = {}
        self._new = False
        if path:
            with suppress(OSError, ValueError, TypeError, AttributeError):
                kept = parse_json(read(path))
                self._found = {name: CachedChanges(*map(_changes, each)) for name, each in kept.items()}

    @classmethod
    def of_user(cls) -> "ChangeCache":
        """That of the user's cache folder."""
        return cls(cache_dir() / "history" / "changes.json")

    def found(self, values: Sequence[float], errors: Sequence[float], options: Options) -> CachedChanges:
        """What `search` finds, which it is asked only for what is new."""
        numbers = np.array([values, errors], np.float64).tobytes()
        name = hashlib.sha256(_searched() + repr(astuple(options)).encode() + numbers).hexdigest()[:32]
        found = self._asked.get(name) or self._found.get(name)
        if found is None:
            found = search(values, errors, options)
            self._new = True
        self._asked[name] = found
        return found

    def save(self) -> None:
        """Keep what is new. What cannot be kept is searched again."""
        if self._path and self._new:
            # those that were asked for last are the last in it
            older = {name: each for name, each in self._found.items() if name not in self._asked}
            last = list({**older, **self._asked}.items())[-MOST:]
            kept = {name: [[*map(astuple, each.sure)], [*map(astuple, each.maybe)]] for name, each in last}
            with suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._path, json.dumps(kept, separators=(",", ":")).encode())
            self._new = False


def _changes(kept: Any) -> list[ChangePoint]:
    return [ChangePoint(int(index), *map(float, numbers)) for index, *numbers in kept]


@cache
def _searched() -> bytes:
    """A hash of the search's own code."""
    return hashlib.sha256(b"".join(Path(each).read_bytes() for each in (detection.__file__, __file__))).digest()
