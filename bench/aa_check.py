"""A/A comparisons on this machine: `python -m bench.aa_check` counts verdicts that call a cell different from itself.

A copy of scenarios/keras_step.py gets two more axes: `pair`, whose number of values is the number of groups, and
`twin`, which has no effect and is compared. So the two cells of each group do the same work in the same image. Half of
the runs have the machine to themselves. In the other half, one process per CPU loads the machine on and off.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench import loads
from bench.overhead import AXES
from harness.analysis.cell_index import lookup
from harness.analysis.comparisons import Compared
from harness.analysis.interference import find_noisy_rounds
from harness.analysis.tables import tables
from harness.model.launch import Launch
from harness.model.run import Run
from harness.project import Project
from harness.store.folder import RunFolder

MACHINES = {"to itself": loads.nothing, "loaded on and off": loads.on_and_off}


def main() -> None:
    """Measure, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="A/A comparisons per run")
    parser.add_argument("--environments", default="tf1.14,tf2.0")
    parser.add_argument("--machine", choices=list(MACHINES), help="measure only this half")
    parser.add_argument("--results", type=Path, help="the folder for the runs (default: they are deleted)")
    parser.add_argument("options", nargs="*", help="more options for harness matrix, after --")
    arguments = parser.parse_args()
    print(
        "| machine | environment | verdicts | without repetitions | largest difference | disturbed rounds | control |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "twins.py"
        scenario.write_text(twins((Project.find().scenarios / "keras_step.py").read_text(), arguments.pairs))
        results = arguments.results or Path(folder) / "results"
        for name, load in MACHINES.items():
            if arguments.machine not in (None, name):
                continue
            for environment in arguments.environments.split(","):
                with load(os.sched_getaffinity(0)):
                    run, launches = measure(scenario, environment, results, arguments.options)
                print(f"| {name} | {environment} | {' | '.join(cells(run, launches))} |", flush=True)


def twins(source: str, pairs: int) -> str:
    """Return keras_step with the axes `pair` and `twin`, which its function accepts and doesn't use."""
    numbers = ", ".join(f'"{number}"' for number in range(1, pairs + 1))
    added = [
        ("# [tool.harness.axes]\n", f'# [tool.harness.axes]\n# pair = [{numbers}]\n# twin = ["a", "b"]\n'),
        ("# [[tool.harness.compare]]\n", _COMPARE + "# [[tool.harness.unused]]\n"),
        ("    bench,\n    *,\n", '    bench,\n    *,\n    pair="1",\n    twin="a",\n'),
    ]
    for old, new in added:
        if old not in source:
            raise SystemExit(f"scenarios/keras_step.py has no {old!r} any more: adapt bench/aa_check.py")
        source = source.replace(old, new, 1)
    # without the header's comparisons, whose cells aren't measured here
    before, _, after = source.partition("# [[tool.harness.unused]]\n")
    return before + "# ///\n" + after.partition("# ///\n")[2]


_COMPARE = '# [[tool.harness.compare]]\n# name = "A/A"\n# along = "twin"\n# plus = "a"\n'


def measure(scenario: Path, environment: str, results: Path, options: Sequence[str]) -> tuple[Run, list[Launch]]:
    """Measure all pairs in one environment, in its default mode, and return the run's results."""
    mode = "graph" if environment.startswith("tf1") else "eager"
    axes = {**AXES, "mode": mode, "pair": "*", "twin": "*"}
    command = [sys.executable, "-m", "harness", "matrix", "--backend", "docker", "-e", environment, "-s", str(scenario)]
    chosen = [f"-a{axis}={value}" for axis, value in axes.items()]
    before = set(results.glob("*")) if results.exists() else set()
    subprocess.run([*command, *chosen, "--results", str(results), *options], check=True, stdout=subprocess.DEVNULL)
    (folder,) = set(results.glob("*")) - before
    stored = RunFolder.open(folder)
    return stored.read_run(), stored.read_launches()


def cells(run: Run, launches: Sequence[Launch]) -> list[str]:
    """Return the table cells of a run: verdicts, also with only the first attempt of each round, and their basis."""
    index = lookup(run, launches)
    ratios = [compared.ratio.value for compared in _compared(run, launches)]
    first = [launch for launch in launches if launch.attempt == 0]
    rounds = {(launch.group, launch.round, launch.attempt) for launch in launches if launch.round}
    ends = index.control.estimate.interval if index.control else None
    return [
        _counted(run, launches),
        _counted(run, first),
        f"{max(max(ratio, 1 / ratio) for ratio in ratios) - 1:.1%}",
        f"{len(find_noisy_rounds(launches))} of {len(rounds)}",
        f"{ends.low - 1:+.1%} to {ends.high - 1:+.1%}" if ends else "",
    ]


def _counted(run: Run, launches: Sequence[Launch]) -> str:
    verdicts = Counter(compared.verdict.value if compared.verdict else "none" for compared in _compared(run, launches))
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))


def _compared(run: Run, launches: Sequence[Launch]) -> list[Compared]:
    values = [value for table in tables(run, lookup(run, launches)) for row in table.rows for value in row.values]
    return [value.compared for value in values if value.compared]


if __name__ == "__main__":
    main()
