"""Numbers of TOML: which are finite, the text that a cell has for one, and what JSON can hold."""

import sys
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold; a boolean is none, nor is infinity."""
    most = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most


def number_text(number: float) -> str:
    """A number as cells have it: "1024" for 1024 and for 1024.0, "0.5". The kit's `byhand.choices` does the same."""
    return str(int(number)) if number == int(number) else repr(number)


def is_json(value: object) -> bool:
    """Whether a value of TOML is one of JSON too: dates and infinities are not."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    return isinstance(value, str | bool) or is_number(value)
