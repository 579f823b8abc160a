"""Strings of strangers in data: cleaned and bounded, as JSON that may stand in a page."""

import json
import math
from collections.abc import Mapping
from typing import Any

from harness.report.escape import clean

#: More of one string than this is not handed on.
CHARACTERS = 4000


def harmless(value: Any) -> Any:
    """A JSON value whose strings, names too, are bounded and hold no control characters but line feeds and tabs.

    Numbers that are not finite become None: JSON has none.
    """
    if isinstance(value, str):
        return clean(value[:CHARACTERS])
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {harmless(str(key)): harmless(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in value]
    return value


def dumps(value: Any) -> str:
    """A harmless JSON document, with a line feed at its end. No `<` is in it, so it cannot end a script element."""
    text = json.dumps(harmless(value), ensure_ascii=False, indent=2, allow_nan=False)
    return text.replace("<", "\\u003c") + "\n"
