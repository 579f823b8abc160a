"""Resolves what was typed to the names that exist: globs, and the nearest name for a misspelt one."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from harness.model.errors import UsageError
from harness.model.nearest import nearest, plain


def resolve(patterns: Iterable[str], names: Sequence[str], kind: str) -> list[str]:
    """The `names` that each pattern matches, in the order typed, each once.

    Case, and `-`, `_` and spaces for one another, make no difference: `op-by-op` finds `op_by_op`. Raises UsageError
    for a pattern that matches nothing, with the nearest name and the list.
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [name for name in names if name == pattern] or [
            name for name in names if fnmatchcase(plain(name), plain(pattern))
        ]
        if not found:
            raise unknown(pattern, names, kind)
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def unknown(typed: str, names: Sequence[str], kind: str) -> UsageError:
    """The error for a name that does not exist."""
    near = nearest(typed, names)
    hint = f" Did you mean {near}?" if near else ""
    return UsageError(f"There is no {kind} {typed!r}.{hint}", f"There are: {', '.join(names) or 'none'}.")
