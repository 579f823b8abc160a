"""`python -m bench.history_demo FOLDER`: measure a small week of nightly runs, and generate docs/examples/week.

It makes seven runs of one scenario with TensorFlow, one after the other. From the fourth run on, the scenario's file is
slower. harness finds this change, and confirms it by measuring both files in one run. The history is stored with its
page and its changes in Markdown. If the week in FOLDER was interrupted, it is continued. `python -m bench.history_demo`
regenerates the page and the Markdown from the stored history.
"""

import os
import subprocess
import sys
from pathlib import Path

from harness.history.folder import History

WEEK = Path(__file__).parent.parent / "docs" / "examples" / "week"
KEPT, PAGE, TEXT = "nights", "history.html", "changes.md"

#: The number of nightly runs, and the first one with the slower file.
NIGHTS, SLOWER = 7, 4

#: The options of the measurement: short, and with CPU time, because the machine may be busy.
ASKED = ("-e", "tf2.2", "--backend", "local", "--trust", "--rounds", "3", "--clock", "cpu")
LENGTHS = ("--warmup", "0.3s", "--measure", "0.5s")

SCENARIO = '''# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title = "Twenty layers by hand"
#
# [tool.harness.axes]
# mode = ["graph", "eager"]
#
# [[tool.harness.compare]]
# name    = "eager vs graph"
# along   = "mode"
# plus    = "eager"
# against = "graph"
# ///
"""Twenty products and activations in a row: as one graph, or one by one."""

from kit import main


def scenario(bench, mode="eager"):
    with bench.phase("import"):
        import numpy
        import tensorflow
    bench.device()
    with bench.phase("build"):
        given = numpy.full((64, 64), 1.0 / 64, "float32")
        weights = WEIGHTS
        start = tensorflow.ones((32, 64))

    def step():
        state = start
        for _ in range(20):
            state = tensorflow.tanh(tensorflow.matmul(state, weights))
        return state

    run = tensorflow.function(step) if mode == "graph" else step
    with bench.phase("first call"):
        result = bench.fetch(run())
    bench.measure(run)
    bench.fingerprint(total=float(tensorflow.reduce_sum(result)))


if __name__ == "__main__":
    main(scenario)
'''

#: The weights in the first nightly runs and in the slower ones. Each eager product converts the list to a tensor.
WEIGHTS = {False: "tensorflow.constant(given)", True: "given.tolist()"}


def measure(folder: Path) -> None:
    """Measure seven nightly runs and a confirmation in `folder`."""
    scenario, results = folder / "layers.py", folder / "results"
    for night in range(len(list(results.glob("*/report.md"))) + 1, NIGHTS + 1):
        scenario.write_text(SCENARIO.replace("WEIGHTS", WEIGHTS[night >= SLOWER]))
        before = set(results.glob("*"))
        _harness("matrix", "-s", str(scenario), *ASKED, *LENGTHS, "--results", str(results))
        (run,) = set(results.glob("*")) - before
        _harness("history", "add", str(run))
    _harness(
        "history",
        "confirm",
        "--all-suspected",
        "--backend",
        "local",
        "--rounds",
        "3",
        "--results",
        str(results),
        good=(0, 5),
    )


def write() -> None:
    """Write the page and the Markdown from the stored history."""
    _harness("history", "report", "-o", str(WEEK / PAGE))
    (WEEK / TEXT).unlink(missing_ok=True)
    first = History(WEEK / KEPT).runs()[0].run
    _harness("history", "report", "-o", str(WEEK / TEXT), "--since", first)


def _harness(*words: str, good: tuple[int, ...] = (0,)) -> None:
    """Run a command of harness with the stored history."""
    environment = {**os.environ, "HARNESS_HISTORY": str(WEEK / KEPT)}
    process = subprocess.run([sys.executable, "-m", "harness", *words], env=environment, check=False)
    if process.returncode not in good:
        sys.exit(f"bench.history_demo: harness {' '.join(words)} ended with {process.returncode}")


def main() -> None:
    """Measure in the folder, if one is passed, and write the example."""
    WEEK.mkdir(exist_ok=True)
    if sys.argv[1:]:
        measure(Path(sys.argv[1]))
    write()


if __name__ == "__main__":
    main()
