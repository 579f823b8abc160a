"""Lists of CPU numbers, as people and kernels write them."""

from collections.abc import Iterable


def shown(numbers: Iterable[int]) -> str:
    """CPU numbers with runs joined: `0-3, 8`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)
