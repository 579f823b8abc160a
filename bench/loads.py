"""Verdicts on a slow and on a busy machine: `python -m bench.loads` runs a suite in containers during other work.

For each run, it prints the predicted duration, the duration from the first launch to the last, the number of rounds,
and the verdicts. Before and after a run, nothing else runs. `half a core` sets a quota for the control group of all
containers, like Kubernetes and `docker run --cpus 0.5`. It needs root rights, and an engine whose containers are in the
control group `docker`. With this load, launches have no priority, which would move them out of that group. With `same
core, equal weight`, launches have no priority either, so the loop gets about half of the core.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from unittest import mock

from harness import session
from harness.backends.docker.backend import DockerBackend
from harness.model.launch import Launch
from harness.report.comparisons import list_lines
from harness.runner.schedule import RunEstimate

GROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000  # microseconds, the kernel's default
#: The ranges of seconds for which intermittent loops run and pause. Each duration is random.
ON, OFF = (2.0, 8.0), (4.0, 16.0)


class Progress(session.Listener):
    """Records the start of the first launch, the end of the last launch, and the predicted durations."""

    def __init__(self) -> None:
        self.begun = self.ended = 0.0
        self.announced: list[float] = []

    def begin(self, cell: object, number: int) -> None:
        """Record the start of the first launch."""
        self.begun = self.begun or time.monotonic()

    def end(self, launch: Launch) -> None:
        """Record the end of a launch, which was stored."""
        self.ended = time.monotonic()

    def estimate(self, estimate: RunEstimate) -> None:
        """Record a duration that the run predicts."""
        self.announced.append(estimate.seconds)


def main() -> None:
    """Measure, and print a Markdown table with one line per run, and one line for the median of each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="headline")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--budget", type=float, help="the budget in seconds (default: the suite's)")
    parser.add_argument("--measure", type=float, help="the measuring time in seconds (default: the suite's)")
    parser.add_argument("--only", choices=list(LOADS), action="append", help="run only these loads")
    parser.add_argument("--results", type=Path, help="the folder for the runs (default: they are deleted)")
    arguments = parser.parse_args()
    names = ["announced after the pilots", "after round 1", "actual duration", "whole command", "rounds", "comparisons"]
    print(f"| other work | {' | '.join(names)} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        request = session.Request(
            suite=arguments.suite,
            backend="docker",
            budget=arguments.budget,
            measure=arguments.measure,
            results=arguments.results or Path(folder),
        )
        for name in arguments.only or LOADS:
            walls = [measure(name, request) for _ in range(arguments.repetitions)]
            if len(walls) > 1:
                print(f"| **{name}, median** | | | | {statistics.median(walls):.0f} s | | |", flush=True)


def measure(name: str, request: session.Request) -> float:
    """Run the suite during the load of that name, print its line, and return the seconds of the whole command."""
    began, progress = time.monotonic(), Progress()
    planned = session.plan(request)
    with LOADS[name](planned.plan.limits.cpus or os.sched_getaffinity(0)):
        ended = session.run(planned, progress)
    wall = time.monotonic() - began
    verdicts = Counter(line.verdict for table in ended.results.tables for line in list_lines(table))
    rounds = sorted({stop.rounds for stop in ended.results.run.stops.values()})
    announced = [f"{seconds:.0f} s" for seconds in progress.announced] + ["", ""]
    cells = [
        *(name, *announced[:2], f"{progress.ended - progress.begun:.0f} s", f"{wall:.0f} s"),
        " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1])))),
        ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())),
    ]
    print(f"| {' | '.join(cells)} |", flush=True)
    return wall


@contextmanager
def nothing(measured: Collection[int]) -> Iterator[None]:
    """Run no other work."""
    yield


@contextmanager
def other_core(measured: Collection[int]) -> Iterator[None]:
    """Run an endless loop on each core that isn't measured."""
    with _loops(os.sched_getaffinity(0) - set(measured)):
        yield


@contextmanager
def same_core(measured: Collection[int]) -> Iterator[None]:
    """Run an endless loop on each measured core."""
    with _loops(set(measured)):
        yield


@contextmanager
def same_core_at_equal_weight(measured: Collection[int]) -> Iterator[None]:
    """Run an endless loop on each measured core. The loop has the same CPU weight as all containers together."""
    with _no_priority(), _loops(set(measured)):
        yield


@contextmanager
def same_core_on_and_off(measured: Collection[int]) -> Iterator[None]:
    """Run an endless loop on each measured core for 2 to 8 seconds, pause it for 4 to 16 seconds, and repeat."""
    with on_and_off(measured):
        yield


@contextmanager
def half_a_core(measured: Collection[int]) -> Iterator[None]:
    """Give all containers together 50 ms of CPU time in each period of 100 ms."""
    old, new = GROUPS / "cpu/docker/cpu.cfs_quota_us", GROUPS / "docker/cpu.max"
    path, limit, none = (old, f"{PERIOD // 2}", "-1") if old.exists() else (new, f"{PERIOD // 2} {PERIOD}", "max")
    path.write_text(limit)
    try:
        with _no_priority():
            yield
    finally:
        path.write_text(none)


LOADS: dict[str, Callable[[Collection[int]], AbstractContextManager[None]]] = {
    "none": nothing,
    "other core": other_core,
    "same core": same_core,
    "same core, equal weight": same_core_at_equal_weight,
    "same core, on and off": same_core_on_and_off,
    "half a core": half_a_core,
}


@contextmanager
def on_and_off(cpus: Collection[int]) -> Iterator[None]:
    """Run an endless loop on each of these cores. All loops run and pause at the same time."""
    on = multiprocessing.Event()
    switch = multiprocessing.Process(target=_switch, args=(on,), daemon=True)
    switch.start()
    try:
        with _loops(cpus, on):
            yield
    finally:
        switch.kill()


def _no_priority() -> AbstractContextManager[object]:
    """Return a context in which launches have the usual CPU weight of containers."""
    return mock.patch.object(DockerBackend, "give_priority", return_value=[])


@contextmanager
def _loops(cpus: Collection[int], on: Event | None = None) -> Iterator[None]:
    workers = [multiprocessing.Process(target=_spin, args=(cpu, on), daemon=True) for cpu in cpus]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _spin(cpu: int, on: Event | None) -> None:
    os.sched_setaffinity(0, {cpu})
    while True:
        if on is not None:
            on.wait()
        for _ in range(100_000):
            pass


def _switch(on: Event) -> None:
    draw = random.Random(1)
    while True:
        time.sleep(draw.uniform(*OFF))
        on.set()
        time.sleep(draw.uniform(*ON))
        on.clear()


if __name__ == "__main__":
    main()
