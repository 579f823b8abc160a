"""What the kernel has counted, from systems made of files and from this one."""

import os

import psutil

from harness.machine.doctor.counters import Ticks, read_processes, read_ticks

STAT = """cpu  30 0 30 300 0 0 0 5 10 0
cpu0 10 1 10 100 5 2 3 4 10 0
cpu2 20 0 20 200 0 0 0 1 0 0
intr 1 2 3
"""


def test_ticks_are_read_by_the_cpus_own_numbers(tree):
    assert read_ticks(tree({"proc/stat": STAT})) == {
        0: Ticks(total=135, busy=26, stolen=4),
        2: Ticks(total=241, busy=40, stolen=1),
    }
    for files in ({}, {"proc/stat": ""}, {"proc/stat": "cpu0 1 2\n\n"}):
        assert read_ticks(tree(files, "none")) == {}


def test_this_process_is_read_with_what_it_has_used_and_may_call_itself_anything():
    before = psutil.Process().name()
    try:
        with open("/proc/self/comm", "wb") as comm:  # noqa: PTH123 - as the kernel wants it
            comm.write(b"a) R \x1b[31mred\n")
        sum(range(2_000_000))
        (use,) = [use for process, use in read_processes().items() if process.pid == os.getpid()]
    finally:
        with open("/proc/self/comm", "w") as comm:  # noqa: PTH123
            comm.write(before[:15])
    assert use.seconds > 0
    assert use.name.isprintable()
    assert use.name.startswith("a) R ?[31mred")
