"""Reads the quantities that options take."""

import re

from harness.model.errors import UsageError

_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def seconds(text: str, option: str) -> float:
    """`90`, `90s`, `10m`, `1.5h`: seconds, more than none. Raises UsageError, which names the option."""
    return _quantity(text, option, _SECONDS, "a length of time such as 90s, 10m or 1h")


def share(text: str, option: str) -> float:
    """`3%`, `2.5 %`, `0.03`: a share above 0 and below 1. Raises UsageError, which names the option."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        raise UsageError(f"{option} {text!r} is not a share such as 3% or 0.03.")
    return value


def size(text: str, option: str) -> int:
    """`512m`, `8g`, `8GiB`: bytes, more than none. Raises UsageError, which names the option."""
    plain = re.sub(r"(?i)(?<=[kmgt])i?b$", "", text.strip())
    return int(_quantity(plain, option, _BYTES, "a size such as 512m or 8g"))


def _quantity(text: str, option: str, units: dict[str, float] | dict[str, int], what: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    value = float(match[1]) * units[match[2]] if match and match[2] in units else 0.0
    if not value:
        raise UsageError(f"{option} {text!r} is not {what}.")
    return value
