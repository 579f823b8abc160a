"""The nearest name for a misspelt one."""

import re
from collections.abc import Iterable


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that is most like what was typed; None where none is like it."""
    from difflib import SequenceMatcher

    def likeness(name: str) -> tuple[float, bool]:
        ratio = SequenceMatcher(a=plain(typed), b=plain(name)).ratio()
        # of names as like, the one with the same letters: two of them were swapped
        return ratio, sorted(plain(typed)) == sorted(plain(name))

    best = max(names, key=likeness, default=None)
    return best if best is not None and likeness(best)[0] >= 0.5 else None


def plain(name: str) -> str:
    """A name without case, and with `_` for each space and dash: those that a reader takes for one are equal."""
    return re.sub(r"[\s_-]", "_", name.casefold())
