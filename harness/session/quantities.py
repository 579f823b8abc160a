"""Reads the quantities that options and suites give as text: `10m`, `3%`, `8g`. All raise UsageError."""

import re

from harness.model.errors import UsageError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"b": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}

_NUMBER = r"(\d+(?:\.\d+)?)"


def seconds(text: str, option: str, *, or_none: bool = False) -> float:
    """`90s`, `10m`, `1.5h`: seconds, more than none unless `or_none`. The error names the option."""
    value = _quantity(text, option, _SECONDS, "a length of time such as 90s, 10m or 1h", "{0}s or {0}m")
    if not value and not or_none:
        raise UsageError(f"{option} {text!r} is zero.", "Give more than 0.")
    return value


def share(text: str, option: str) -> float:
    """`3%`, `2.5 %`, `0.03`: a share above 0 and below 1. The error names the option."""
    match = re.fullmatch(rf"{_NUMBER}\s*(%?)", text.strip())
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        advice = f"Type {match[1]}%." if match and not match[2] and 1.0 <= value < 100.0 else ""
        raise UsageError(f"{option} {text!r} is not a share such as 3% or 0.03.", advice)
    return value


def size(text: str, option: str) -> int:
    """`512m`, `8g`, `8GiB`: bytes, at least one. The error names the option."""
    plain = re.sub(r"(?i)(?<=[kmgt])i?b$", "", text.strip())
    value = int(_quantity(plain, option, _BYTES, "a size such as 512m or 8g", "{0}m or {0}g"))
    if not value:
        raise UsageError(f"{option} {text!r} is zero.", "Give more than 0.")
    return value


def _quantity(text: str, option: str, units: dict[str, float], what: str, such: str) -> float:
    """A number with a unit. One without is refused: nobody knows whether `--budget 10` means seconds or minutes."""
    match = re.fullmatch(rf"{_NUMBER}\s*([a-z]*)", text.strip().lower())
    if match and not match[2]:
        raise UsageError(f"{option} {text!r} has no unit.", f"Type {such.format(match[1])}.")
    if not match or match[2] not in units:
        raise UsageError(f"{option} {text!r} is not {what}.")
    value = float(match[1]) * units[match[2]]
    if value == float("inf"):
        raise UsageError(f"{option} {text!r} is not {what}.")
    return value
