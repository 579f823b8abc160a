from dataclasses import replace

import pytest

from harness.machine.probes.memory import Memory, findings, read
from tests.machine.conftest import Tree

PLENTY = Memory(total=1000, available=500, swap_total=100, swap_free=100, swapped_pages=7)
INFO = (
    "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 500 kB\nSwapTotal: 100 kB\nSwapFree: 50 kB\nHugePages_Total: 0\n"
)


def test_memory_is_read_in_bytes(tree: Tree) -> None:
    root = tree({"proc/meminfo": INFO, "proc/vmstat": "nr_free_pages 3\npswpin 2\npswpout 5\n"})
    assert read(root) == Memory(1024000, 512000, 102400, 51200, 7)


def test_what_cannot_be_read_is_none(tree: Tree) -> None:
    assert read(tree({})) is None
    found = read(tree({"proc/meminfo": INFO}))
    assert found
    assert found.swapped_pages is None


@pytest.mark.parametrize(
    ("after", "level"),
    [
        (PLENTY, "good"),
        (replace(PLENTY, swap_free=50), "good"),
        (replace(PLENTY, swapped_pages=8), "warn"),
        (replace(PLENTY, available=99), "warn"),
        (replace(PLENTY, available=99, swapped_pages=8), "bad"),
        (replace(PLENTY, swapped_pages=None), "unknown"),
        (replace(PLENTY, swapped_pages=None, swap_total=0, swap_free=0), "good"),
        (None, "unknown"),
    ],
)
def test_swapping_and_short_memory_are_not_good(after: Memory | None, level: str) -> None:
    assert findings(PLENTY, after)[0].level == level
