"""Lists of CPU numbers, as people and kernels write them: `0-3,8`."""

from collections.abc import Iterable

#: A longer range is a slip: the kernel knows no machine with more CPUs (its highest NR_CPUS).
LONGEST = 8192


def parse(text: str) -> frozenset[int]:
    """The CPUs of a list; none of an empty one. Raises ValueError, with a clause, for what is no such list."""
    cpus: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is no CPU and no range of CPUs")
        if dash and int(last) - int(first) >= LONGEST:
            raise ValueError(f"{part} is a range of more than {LONGEST:,} CPUs")
        cpus.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(cpus)


def shown(numbers: Iterable[int]) -> str:
    """CPU numbers with runs joined: `0-3, 8`. Empty without any."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)
