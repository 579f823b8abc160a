"""Text for readers: counts, numbers, lists, CPU lists, and suggestions for misspelled names."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

#: LISTED: the largest number of names that an error lists. NEAREST: the number of most similar names that it lists if
#: there are more names.
LISTED, NEAREST = 12, 4

#: The longest valid range of CPUs: the highest NR_CPUS of the kernel.
_MAX_CPUS = 8192

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_PLURALS = {"is": "are", "was": "were", "has": "have", "differs": "differ", "changes": "change"}


def escape(text: str, keep: str = "") -> str:
    r"""Return the text with unprintable characters escaped, such as `\x1b`, except for the characters in `keep`.

    Control characters, characters that change the text's direction, and invalid code points are unprintable. Every
    string from outside, such as an axis value, a title or an error, goes through this function before a terminal shows
    it. So such a string can't add lines to the output.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def remove_password(address: str) -> str:
    """Return a URL without its user name and password."""
    return re.sub(r"(?<=://)[^/\s]*@", "", address)


def has_password(text: str) -> bool:
    """Return whether a text contains a URL with a password."""
    return re.search(r"://[^/\s:@]*:[^/\s]*@", text) is not None


def escape_json(text: str) -> str:
    r"""Return a JSON document with unprintable characters in its strings escaped, such as `\u202e`.

    A JSON writer only escapes control characters below U+0020. The result means the same document.
    """
    # line feeds are only between strings
    unprintable = {char for char in set(text) if not (char.isprintable() or char == "\n")}
    return text.translate({ord(char): json.dumps(char)[1:-1] for char in unprintable})


def counted(count: int, noun: str, verb: str = "") -> str:
    """Return a count with its noun: `1 round`, `2 launches`. With a verb (in the singular): `1 cell is`."""
    if count != 1:
        noun, verb = noun + ("es" if noun.endswith(("ch", "ss")) else "s"), _PLURALS.get(verb, verb)
    return f"{count:,} {noun} {verb}".rstrip()


def format_number(value: float) -> str:
    """Return three significant digits, with a separator for thousands: 0.0123, 5.52, 552, 12,300."""
    return format_decimals(value, count_decimals(value))


def format_decimals(value: float, decimals: int) -> str:
    """Return a number with this number of decimals. If it is negative, digits before the decimal point are rounded.

    Numbers of at least 10¹² become `1.17·10¹²`. Numbers below 10⁻¹⁰ become `1.17·10⁻¹¹`, unless they are rounded to 0.
    """
    is_tiny = abs(value) < 1e-10 and decimals > 10
    if value and math.isfinite(value) and (is_tiny or abs(value) >= 1e12):
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits}·10{str(int(power)).translate(_SUPERSCRIPTS)}"
    # adding zero turns a negative zero into zero
    return f"{round(value, decimals) + 0.0:,.{max(0, decimals)}f}" if math.isfinite(value) else f"{value:f}"


def count_decimals(value: float) -> int:
    """Return the number of decimals for three significant digits, which may be negative (see `format_decimals`)."""
    rounded = abs(float(f"{value:.2e}"))
    return 2 - math.floor(math.log10(rounded)) if 0.0 < rounded < math.inf else 2


def format_plain(value: float, digits: int = 12, thousands: str = "") -> str:
    """Return a number in the form that commands accept, without needless zeros: `1170`, `0.5`, `0.00001`.

    It has `digits` significant digits. `thousands` is a separator for thousands, by default none.
    """
    rounded = float(f"{value:.{digits}g}")
    if not rounded or not math.isfinite(rounded):
        return f"{abs(rounded):.0f}" if rounded == 0.0 else f"{rounded:f}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return trim_zeros(f"{rounded:{thousands}.{decimals}f}")


def format_exact(value: float) -> str:
    """Return a number with up to 10 significant digits and a separator for thousands: `0.5`, `12`, `1,234,567`."""
    return format_plain(value, 10, ",") if abs(value) < 1e12 else format_number(value)


def format_duration(seconds: float) -> str:
    """Return a duration with about two digits, in a readable unit: `45 s`, `2.5 min`, `12 min`, `3 h`."""
    for symbol, length, limit in (("s", 1.0, 99.5), ("min", 60.0, 99.5), ("h", 3600.0, math.inf)):
        value = seconds / length
        if value < limit:
            return f"{trim_zeros(format_decimals(value, 1 if value < 9.95 else 0))} {symbol}"
    raise ValueError(f"{seconds} isn't a valid duration")


def trim_zeros(text: str) -> str:
    """Return a formatted number without zeros at the end of its decimals."""
    return text.rstrip("0").rstrip(".") if "." in text and "·" not in text else text


def format_ordinal(number: int) -> str:
    """Return an ordinal, such as `1st`, `12th` or `1,203rd`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def joined(names: Sequence[str]) -> str:
    """Join names for a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def parse_cpus(text: str) -> frozenset[int]:
    """Parse a list of CPUs such as `0-3,8`, which may be empty. Raises ValueError, with a clause, if it is invalid."""
    cpus: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} isn't a CPU or a range of CPUs")
        if dash and int(last) - int(first) >= _MAX_CPUS:
            raise ValueError(f"{part} is a range of more than {_MAX_CPUS:,} CPUs")
        cpus.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(cpus)


def format_cpu_list(numbers: Iterable[int]) -> str:
    """Format CPU numbers as ranges: `0-3, 8`; empty without numbers."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)


def find_nearest(typed: str, names: Iterable[str]) -> str | None:
    """Return the name in `names` that is most similar to `typed`, or None if no name is similar."""
    best = max(names, key=lambda name: _rate_likeness(typed, name), default=None)
    return best if best is not None and _rate_likeness(typed, best)[1] >= 0.5 else None


def list_valid_names(typed: str, names: Sequence[str], listing: str) -> str:
    """Return a sentence with the valid names. If there are many, list similar names and the command `listing`."""
    if len(names) <= LISTED:
        return f"Valid names: {', '.join(names) or 'none'}."
    nearest = sorted(names, key=lambda name: _rate_likeness(typed, name), reverse=True)[:NEAREST]
    return f"There are {len(names)} valid names, such as {joined(nearest)}. To see all: {listing}"


def _rate_likeness(typed: str, name: str) -> tuple[bool, float]:
    from difflib import SequenceMatcher

    ratio = SequenceMatcher(a=normalize_name(typed), b=normalize_name(name)).ratio()
    # a name with the same letters comes first, because swapped letters are a more frequent mistake than an added letter
    return ratio >= 0.5 and sorted(normalize_name(typed)) == sorted(normalize_name(name)), ratio


def normalize_name(name: str) -> str:
    """Normalize a name for comparisons: lower case, with `_` for each space and dash."""
    return re.sub(r"[\s_-]", "_", name.casefold())


def match_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that a pattern matches. An equal name takes precedence.

    Case is ignored, and `-`, `_` and spaces are equivalent: `op-by-op` finds `op_by_op`. Ranges such as `[0-5]` stay.
    """
    parts = re.split(r"(\[[^\]]+\])", pattern)
    normalized = "".join(part.casefold() if part.startswith("[") else normalize_name(part) for part in parts)
    equal = [name for name in names if name == pattern]
    return equal or [name for name in names if fnmatchcase(normalize_name(name), normalized)]
