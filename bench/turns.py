"""Does interleaving change ratios? `python -m bench.turns` measures pairs of cells with and without interleaving.

It alternates rounds with interleaved launches and rounds without interleaving. For each pair of cells, it prints the
ratio of the two ratios with a 95 % interval, and the standard deviation of each ratio.
"""

import argparse
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from harness import session
from harness.analysis.rounds import series
from harness.analysis.statistics import student
from harness.model.launch import Interleave, Role
from harness.model.scenario import Cell
from harness.store.folder import RunFolder

#: The pairs of cells: steps of a few milliseconds, a step whose weights and moments (about 40 MB) don't fit into an L2
#: cache, a step whose vectors (4 MiB each) don't fit either, and a step of microseconds.
WORK: Mapping[str, session.Request] = {
    "train_on_batch, small model": session.Request(
        scenarios=["keras_step"],
        environments=["tf1.14", "tf2.0"],
        axes={"model": ["small"], "data": ["small"], "call": ["train_on_batch"], "api": ["tf.keras"]}
        | {"inputs": ["numpy"], "mode": ["graph"]},
    ),
    "train_on_batch, medium model": session.Request(
        scenarios=["keras_step"],
        environments=["tf1.14", "tf2.0"],
        axes={"model": ["medium"], "data": ["small"], "call": ["train_on_batch"], "api": ["tf.keras"]}
        | {"inputs": ["numpy"], "mode": ["graph"]},
    ),
    "sigmoid of 1,048,576 values": session.Request(
        scenarios=["numpy_sigmoid"], environments=["tf2.21"], axes={"size": ["1048576"], "variant": ["numpy", "tnp"]}
    ),
    "sigmoid of 1,024 values": session.Request(
        scenarios=["numpy_sigmoid"], environments=["tf2.21"], axes={"size": ["1024"], "variant": ["numpy", "tnp"]}
    ),
}


def main() -> None:
    """Measure, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--work", nargs="*", choices=list(WORK), default=list(WORK))
    arguments = parser.parse_args()
    print("| work | ratio interleaved / not interleaved | sd, interleaved | sd, not interleaved |")
    print("| --- | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.work:
            logs: dict[Interleave, list[float]] = defaultdict(list)
            for number in range(arguments.repetitions):
                for way in list(Interleave) if number % 2 else reversed(Interleave):
                    logs[way].append(_log_ratio(WORK[name], way, Path(folder)))
            print(f"| {name} | {_format_row(logs)} |", flush=True)


def _log_ratio(work: session.Request, way: Interleave, results: Path) -> float:
    """Return the log of the second cell's time over the first cell's time, in one round."""
    fixed = {"rounds": 1, "warmup": 1.0, "measure": 1.0, "interleave": way, "results": results}
    # without page faults, whose number differs between processes
    axes = {**work.axes, "malloc": ["keep"]}
    ended = session.run(
        session.plan(session.Request(scenarios=work.scenarios, environments=work.environments, axes=axes, **fixed))
    )
    launches = [launch for launch in RunFolder.open(ended.folder).read_launches() if launch.role is not Role.PILOT]
    times: Mapping[Cell, Mapping[int, float]] = series(launches)
    first, second = (times[cell][1] for cell in ended.results.run.plan.cells)
    return math.log(second / first)


def _format_row(logs: Mapping[Interleave, list[float]]) -> str:
    differences = [a - b for a, b in zip(logs[Interleave.TURNS], logs[Interleave.LAUNCHES], strict=True)]
    count = len(differences)
    half = student(count - 1) * statistics.stdev(differences) / math.sqrt(count)
    mean = statistics.fmean(differences)
    ends = f"{math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})"
    return " | ".join(
        [ends, *(f"{statistics.stdev(logs[way]):.1%}" for way in (Interleave.TURNS, Interleave.LAUNCHES))]
    )


if __name__ == "__main__":
    main()
