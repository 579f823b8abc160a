"""Resolves what was typed to the names that exist: globs, and the nearest name for a misspelt one."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from harness.model.errors import UsageError


def resolve(patterns: Iterable[str], names: Sequence[str], kind: str) -> list[str]:
    """The `names` that each pattern matches, in the order typed, each once.

    Case, and `-`, `_` and spaces for one another, make no difference: `op-by-op` finds `op_by_op`. Raises UsageError
    for a pattern that matches nothing, with the nearest name and the list.
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [name for name in names if name == pattern] or [
            name for name in names if fnmatchcase(_plain(name), _plain(pattern))
        ]
        if not found:
            raise unknown(pattern, names, kind)
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def unknown(typed: str, names: Sequence[str], kind: str) -> UsageError:
    """The error for a name that does not exist."""
    nearest = _nearest(typed, names)
    hint = f" Did you mean {nearest}?" if nearest else ""
    return UsageError(f"There is no {kind} {typed!r}.{hint}", f"There are: {', '.join(names) or 'none'}.")


def _nearest(typed: str, names: Sequence[str]) -> str | None:
    from difflib import SequenceMatcher

    def likeness(name: str) -> tuple[float, bool]:
        ratio = SequenceMatcher(a=_plain(typed), b=_plain(name)).ratio()
        # of names as like, the one with the same letters: two of them were swapped
        return ratio, sorted(_plain(typed)) == sorted(_plain(name))

    best = max(names, key=likeness, default=None)
    return best if best is not None and likeness(best)[0] >= 0.5 else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "_", name.casefold())
