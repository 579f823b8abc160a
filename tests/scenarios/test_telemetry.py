"""What the CPUs did meanwhile, from books that a test writes."""

import mmap
import os
import subprocess
import sys
from functools import partial
from time import process_time

import pytest
from kit import telemetry as kit_telemetry
from kit.telemetry import Telemetry, between, waiting

TICK = os.sysconf("SC_CLK_TCK")


def stat(*cpus):
    """/proc/stat of CPUs: number, user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice of each."""
    totals = [sum(column) for column in zip(*(cpu[1:] for cpu in cpus), strict=True)]
    lines = [["cpu", "", *totals], *([f"cpu{cpu[0]}", *cpu[1:]] for cpu in cpus)]
    return "".join(" ".join(map(str, line)) + "\n" for line in lines) + "intr 9 0 1\nctxt 5\n"


BEFORE = stat((0, 100, 10, 20, 500, 7, 1, 2, 3, 50, 5), (1, 900, 0, 0, 100, 0, 0, 0, 0, 0, 0))
AFTER = stat((0, 160, 20, 50, 510, 9, 2, 4, 8, 90, 9), (1, 900, 0, 50, 200, 0, 0, 0, 1, 0, 0))


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A function that gives what is known after watching a block between two texts of /proc/stat, None: no file."""

    def watch(before, after, own=frozenset({0}), at_start=frozenset({0})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: at_start)
        path = tmp_path / "stat"
        telemetry = Telemetry(str(path), threads=str(tmp_path / "task"))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: own)
        write(path, before)
        with telemetry:
            write(path, after)
        return telemetry.resources()

    return watch


def write(path, text):
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


def test_what_happened_in_the_block_on_its_own_cpus_and_on_all(watched):
    resources = watched(BEFORE, AFTER)
    assert resources["steady_own_cpus"] == 1
    assert resources["steady_own_cpus_busy_seconds"] == pytest.approx((60 + 10 + 30 + 1 + 2) / TICK)
    assert resources["steady_own_cpus_steal_seconds"] == pytest.approx(5 / TICK)
    assert resources["steady_all_cpus"] == 2
    assert resources["steady_all_cpus_busy_seconds"] == pytest.approx((103 + 50) / TICK)
    assert resources["steady_seconds"] > 0
    assert resources["steady_cpu_seconds"] >= 0
    assert resources["load_before"] == pytest.approx(os.getloadavg()[0], abs=1)
    # a process may be moved before its steps
    moved = watched(BEFORE, AFTER, own=frozenset({1}))
    assert moved["steady_own_cpus_busy_seconds"] == pytest.approx(50 / TICK)


OWN = {"steady_own_cpus", "steady_own_cpus_busy_seconds", "steady_own_cpus_steal_seconds"}
ALL = {"steady_all_cpus", "steady_all_cpus_busy_seconds"}
CLOCKS = {"steady_started", "steady_ended", "steady_seconds", "steady_cpu_seconds"}
ALWAYS = {"load_before", "steady_pieces", "steady_minor_faults"} | CLOCKS


#: The counters before and after, and what is known from them.
COUNTERS = [
    (None, None, set()),
    (BEFORE, None, set()),
    ("cpu0 1 2 three\n", AFTER, set()),
    ("cpu0 1 2 3 4\n", AFTER, set()),  # no steal: kernels of another age
    ("cpu0 0 0 0 0 0 0 0 0 0 0\n", "cpu0 0 0 0 0 0 0 0 0 0 0\n", set()),  # kept by nobody
    (stat((1, 900, 0, 0, 100, 0, 0, 0, 0, 0, 0)), AFTER, ALL),  # its own CPU came later
    (AFTER, BEFORE, {"steady_own_cpus", "steady_all_cpus"}),  # books that go back
]


def test_what_cannot_be_known_is_left_out(watched, monkeypatch):
    for before, after, names in COUNTERS:
        assert set(watched(before, after)) == ALWAYS | names, (before, after)
    assert OWN.isdisjoint(watched(BEFORE, AFTER, own=frozenset()))
    monkeypatch.delattr(os, "sched_getaffinity")
    with Telemetry() as elsewhere:
        pass
    assert OWN.isdisjoint(elsewhere.resources())


def test_a_cpu_that_came_or_went_is_none_of_all():
    before, after = {0: (10, 0), 1: (10, 0)}, {1: (10 + TICK, 0), 2: (99, 0)}
    assert between(before, after, frozenset()) == {"steady_all_cpus": 1, "steady_all_cpus_busy_seconds": 1.0}


def test_where_nothing_was_measured_only_the_load_is_known(monkeypatch):
    assert set(Telemetry().resources()) == {"load_before"}
    broken = Telemetry()
    with pytest.raises(ValueError, match="a step"), broken:
        raise ValueError("a step that fails")
    assert set(broken.resources()) == {"load_before"}

    def no_load():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", no_load)
    assert Telemetry().resources() == {}


def test_memory_that_is_touched_for_the_first_time_faults():
    pages, faults = 1000, []
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for _ in range(2):
            with Telemetry() as telemetry:
                for page in range(pages):
                    memory[page * mmap.PAGESIZE] = 1
            faults.append(telemetry.resources()["steady_minor_faults"])
    assert faults[1] < pages / 2 < pages <= faults[0] < 2 * pages


@pytest.fixture
def clocks(monkeypatch):
    now = {"perf_counter": 100.0, "cpu": 10.0, "time": 1e9}
    for name in list(now):
        monkeypatch.setattr(kit_telemetry, name, partial(now.__getitem__, name))
    return now


@pytest.fixture
def threads(tmp_path):
    """The folder of the process's threads, and a function that writes how long, in seconds, each waited so far."""
    folder = tmp_path / "task"
    folder.mkdir()

    def waited(**seconds):
        for path in list(folder.iterdir()):
            (path / "schedstat").unlink()
            path.rmdir()
        for number, path in seconds.items():
            (folder / number).mkdir()
            (folder / number / "schedstat").write_text(f"123456789 {round(path * 1e9)} 42\n")

    return str(folder), waited


def test_pieces_are_summed_and_what_lies_between_them_is_told_apart(tmp_path, clocks, threads):
    folder, _ = threads
    path = tmp_path / "stat"
    telemetry = Telemetry(str(path), threads=folder)
    for texts in [(BEFORE, AFTER), (BEFORE, BEFORE), (BEFORE, AFTER)]:
        with telemetry.between():
            clocks["perf_counter"] += 5.0
            clocks["cpu"] += 0.0625
        path.write_text(texts[0])
        clocks["time"] += 1.0
        with telemetry:
            clocks["perf_counter"] += 0.5
            clocks["cpu"] += 0.25
            clocks["time"] += 0.5
            path.write_text(texts[1])
    resources = telemetry.resources()
    assert resources["steady_pieces"] == 3
    assert (resources["steady_seconds"], resources["steady_cpu_seconds"]) == (1.5, 0.75)
    assert (resources["steady_started"], resources["steady_ended"]) == (1e9 + 1.0, 1e9 + 4.5)
    assert (resources["between_seconds"], resources["between_cpu_seconds"]) == (15.0, 0.1875)
    assert resources["steady_all_cpus"] == 2
    assert resources["steady_all_cpus_busy_seconds"] == pytest.approx(2 * (103 + 50) / TICK)
    # what one piece does not know is not known of all
    path.write_text(AFTER)
    with telemetry:
        path.write_text(BEFORE)
    assert "steady_all_cpus_busy_seconds" not in telemetry.resources()


#: The seconds and CPU seconds of a piece, how long each thread waited before and after it, and how long the process.
WAITS = [
    ((1.0, 0.25), [{"7": 2.0}, {"7": 2.5}], 0.5),
    ((1.0, 0.25), [{"7": 2.0, "8": 1.0}, {"7": 2.125, "8": 1.125}], 0.25),
    ((1.0, 0.25), [{"7": 2.0, "8": 1.0}, {"7": 2.5, "8": 1.5}], 0.75),  # both waited at once, while it did not run
    ((1.0, 1.0), [{"7": 2.0, "8": 1.0}, {"7": 2.0, "8": 1.5}], 0.0),  # while the other ran
    ((1.0, 1.5), [{"7": 2.0}, {"7": 2.5}], 0.0),  # on more CPUs than one
    ((1.0, 0.25), [{"7": 2.0}, {"7": 2.0, "9": 0.25}], 0.25),  # one that is new
    ((1.0, 0.25), [{"7": 2.0, "8": 9.0}, {"7": 2.125}], 0.125),  # one that is gone
    ((1.0, 0.25), [{"7": 2.0, "8": 9.0}, {"7": 2.125, "8": 0.0}], 0.125),  # its number is another's now
]


def test_time_in_which_the_process_was_ready_and_did_not_run(clocks, threads):
    folder, write_waited = threads
    for (seconds, cpu_seconds), (before, after), waited in WAITS:
        write_waited(**before)
        telemetry = Telemetry(threads=folder)
        with telemetry:
            clocks["perf_counter"] += seconds
            clocks["cpu"] += cpu_seconds
            write_waited(**after)
        assert telemetry.resources()["steady_waited_seconds"] == pytest.approx(waited), (before, after)


def test_a_kernel_that_does_not_tell_what_threads_wait_says_nothing(tmp_path):
    thread = tmp_path / "7"
    thread.mkdir()
    assert waiting(str(tmp_path)) is waiting(str(tmp_path / "nowhere")) is None
    for text in ("0 0 0\n", "", "1 2\n", "1 two 3\n"):
        (thread / "schedstat").write_text(text)
        assert waiting(str(tmp_path)) is None


def test_the_work_of_a_child_that_runs_is_its_own():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        pid = str(child.pid).encode()
        with Telemetry() as here:
            before, until = process_time(), process_time() + 5.0
            while kit_telemetry.child_cpu(pid) < 0.1 and process_time() < until:
                pass
            own_seconds = process_time() - before
        child.kill()
    # the child's clock ticks before the block are not in it
    assert here.resources()["steady_cpu_seconds"] >= own_seconds + 0.02
    assert kit_telemetry.child_cpu(pid) == 0
