"""Texts that people type and read: counts, lists, lists of CPUs, misspelt names."""

import re
from collections.abc import Iterable, Iterator, Sequence

#: An error lists as many names, and of more than that only the nearest.
LISTED, NEAREST = 12, 4

#: A longer range is a slip: the kernel knows no machine with more CPUs (its highest NR_CPUS).
_LONGEST = 8192

_PLURALS = {"is": "are", "was": "were", "has": "have", "differs": "differ"}


def escaped(text: str, keep: str = "") -> str:
    r"""The text with each control character that is not in `keep`, and what is no character, written like `\x1b`.

    So is what changes the direction of the text around it. Every string that is not ours, such as an axis value, a
    title or an error, is shown in a terminal by this function; then no such string is a line of its own.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def json_escaped(text: str) -> str:
    r"""A JSON document with each character in its strings that a terminal does not just show written like `\u202e`.

    JSON escapes no more than C0 itself. It is the same document for whoever parses it.
    """
    # out of strings there are none but line feeds
    acts = {char for char in set(text) if not (char.isprintable() or char == "\n")}
    return text.translate({ord(char): "".join(map("\\u{:04x}".format, _utf_16(char))) for char in acts})


def _utf_16(char: str) -> Iterator[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))


def counted(count: int, noun: str, verb: str = "") -> str:
    """`1 round`, `2 launches`, `1,200 cells`; with a verb, given in the singular: `1 cell is`, `2 cells are`."""
    if count != 1:
        noun, verb = noun + ("es" if noun.endswith("ch") else "s"), _PLURALS.get(verb, "")
    return f"{count:,} {noun} {verb}".rstrip()


def ordinal(number: int) -> str:
    """`1st`, `12th`, `1,203rd`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def joined(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of a list; none of an empty one. Raises ValueError, with a clause, for what is no such list."""
    cpus: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is no CPU and no range of CPUs")
        if dash and int(last) - int(first) >= _LONGEST:
            raise ValueError(f"{part} is a range of more than {_LONGEST:,} CPUs")
        cpus.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(cpus)


def cpu_list(numbers: Iterable[int]) -> str:
    """CPU numbers with runs joined: `0-3, 8`. Empty without any."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that is most like what was typed; None where none is like it."""
    best = max(names, key=lambda name: _likeness(typed, name), default=None)
    return best if best is not None and _likeness(typed, best)[1] >= 0.5 else None


def there_are(typed: str, names: Sequence[str], listing: str) -> str:
    """Which names there are in place of one that does not exist; of many the nearest, and the command for all."""
    if len(names) <= LISTED:
        return f"There are: {', '.join(names) or 'none'}."
    near = sorted(names, key=lambda name: _likeness(typed, name), reverse=True)[:NEAREST]
    return f"There are {len(names)}, such as {joined(near)}. All: {listing}"


def _likeness(typed: str, name: str) -> tuple[bool, float]:
    from difflib import SequenceMatcher

    ratio = SequenceMatcher(a=plain(typed), b=plain(name)).ratio()
    # the same letters in another order are two that were swapped, more often than one too many
    return ratio >= 0.5 and sorted(plain(typed)) == sorted(plain(name)), ratio


def plain(name: str) -> str:
    """A name without case, and with `_` for each space and dash: those that a reader takes for one are equal."""
    return re.sub(r"[\s_-]", "_", name.casefold())
