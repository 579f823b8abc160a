"""How much time does it save to start launches at the same time? `python -m bench.starts` alternates both ways.

Each time, it measures one round of a group of the suite `headline`. For each way, it prints the seconds from the start
of the round until its first sample, and the seconds of the whole round. For each cell, it prints the ratio of the times
per step (started together / one after the other), also relative to the mean of all cells of the round. Ratios are
paired, with 95 % intervals.
"""

import argparse
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from harness import session
from harness.analysis.rounds import series
from harness.analysis.statistics import student
from harness.machine import cpus
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell
from harness.store.folder import RunFolder


def main() -> None:
    """Measure, and print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--backend", choices=["docker", "local"], default="docker")
    parser.add_argument("--api", choices=["keras", "tf.keras"], default="tf.keras")
    arguments = parser.parse_args()
    before: dict[bool, list[float]] = defaultdict(list)
    whole: dict[bool, list[float]] = defaultdict(list)
    logs: dict[Cell, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        request = session.Request(
            suite="headline",
            axes={"call": ["train_on_batch"], "api": [arguments.api]},
            backend=arguments.backend,
            rounds=1,
            results=Path(folder),
        )
        for number in range(arguments.repetitions):
            for together in (True, False) if number % 2 else (False, True):
                launches = _round(request, together=together)
                before[together].append(_until_first_sample(launches))
                whole[together].append(sum(launch.seconds for launch in launches))
                times: Mapping[Cell, Mapping[int, float]] = series(launches)
                for cell, by_round in times.items():
                    logs[cell][together].append(math.log(by_round[1]))
    print("| seconds | at the same time | one after the other | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for name, seconds in (("until the first sample", before), ("the round", whole)):
        ways = " | ".join(f"{statistics.median(seconds[way]):.1f}" for way in (True, False))
        print(f"| {name} | {ways} | {_ratio(_logs(seconds[True]), _logs(seconds[False]))} |")
    means = {
        way: [statistics.fmean(column) for column in zip(*(ways[way] for ways in logs.values()), strict=True)]
        for way in before
    }
    print("\n| time per step | ratio | relative to the mean of the cells |\n| --- | ---: | ---: |")
    for cell, ways in logs.items():
        own = {way: [a - b for a, b in zip(ways[way], means[way], strict=True)] for way in ways}
        print(f"| {cell} | {_ratio(ways[True], ways[False])} | {_ratio(own[True], own[False])} |")


def _round(request: session.Request, *, together: bool) -> list[Launch]:
    """Return the launches of one round. `together`: whether they start at the same time."""
    starting = cpus.choose_starting_cpus
    if not together:
        cpus.choose_starting_cpus = lambda *_: ()  # type: ignore[assignment]
    try:
        ended = session.run(session.plan(request))
    finally:
        cpus.choose_starting_cpus = starting
    return [launch for launch in RunFolder.open(ended.folder).read_launches() if launch.role is not Role.PILOT]


def _until_first_sample(launches: Sequence[Launch]) -> float:
    """Return the seconds from the start of the first launch until the first timed step."""
    started = min(datetime.fromisoformat(launch.started).timestamp() for launch in launches)
    return min(launch.resources["steady_started"] for launch in launches) - started


def _logs(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]


def _ratio(first: Sequence[float], second: Sequence[float]) -> str:
    """Format the geometric mean of paired ratios, from their logs, with its 95 % interval."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    mean, count = statistics.fmean(differences), len(differences)
    half = student(count - 1) * statistics.stdev(differences) / math.sqrt(count)
    return f"{math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})"


if __name__ == "__main__":
    main()
