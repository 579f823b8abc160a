"""The side of harness: one `harness matrix`, and its result for the two cells."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.asv_comparison.results import Measured
from bench.pairs import seconds
from harness.analysis.cell_index import lookup
from harness.analysis.comparisons import Compared
from harness.analysis.statistics import combine
from harness.analysis.tables import tables
from harness.model.launch import Launch
from harness.model.run import Run
from harness.store.folder import RunFolder

#: The comparison in the header of TensorFlow 1.14 in graph mode with 2.0 in eager mode.
COMPARISON = "each release in its default mode"


def measure(results: Path, options: Sequence[str]) -> tuple[Measured, tuple[int, ...] | None]:
    """Run `harness matrix` once with these options in the folder `results`. Return its result and its CPUs.

    The progress is printed on stderr. Raises CalledProcessError if a cell fails.
    """
    command = [sys.executable, "-m", "harness", "matrix", "--backend", "local", "--results", str(results)]
    command += ["--suite", "quick"]
    before = set(results.glob("*"))
    whole = seconds(lambda: subprocess.run([*command, *options], stdout=subprocess.DEVNULL, check=True))
    (folder,) = set(results.glob("*")) - before
    stored = RunFolder.open(folder)
    run, launches = stored.read_run(), stored.read_launches()
    compared, times = _picked(run, launches)
    ratio = compared.ratio
    assert ratio.interval is not None, "one round has no interval: --rounds 2 or more"
    note = f"{ratio.rounds} rounds, with the control; {100 * compared.level:.3g} %"
    verdict = compared.verdict or f"none: {compared.withheld}"
    return Measured("harness", whole, note, times, ratio.value, ratio.interval, verdict), run.plan.limits.cpus


def _picked(run: Run, launches: Sequence[Launch]) -> tuple[Compared, tuple[float, float]]:
    """Return the run's comparison of TF 2.0 with TF 1.14 in their default modes, and the seconds per step of both."""
    index = lookup(run, launches)
    (table,) = tables(run, index)
    (row,) = table.rows
    shown = zip(table.columns, row.values, strict=True)
    (compared,) = (value.compared for head, value in shown if head.comparison and head.comparison.name == COMPARISON)
    first, second = (combine(list(index.series[cell].values())).value for cell in (compared.other, compared.cell))
    return compared, (first, second)
