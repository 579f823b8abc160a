"""Lists of CPUs, read and written as the kernel does: `0-3,8`."""

from collections.abc import Iterable

#: A longer range is a slip: the kernel knows no machine with more CPUs (its highest NR_CPUS).
LONGEST = 8192


def parse_cpus(text: str) -> frozenset[int]:
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


def format_cpus(cpus: Iterable[int]) -> str:
    """CPU numbers for a reader, those that follow one another joined: `0-3, 8`. Empty without any."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
