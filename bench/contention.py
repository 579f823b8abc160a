"""Is CPU contention subtracted correctly? `python -m bench.contention` checks the stored runs of docs/examples.

The model is: log time = cell effect + round effect + (slope + deviation of the cell) · loss + noise. The loss of a
launch is log 1/(1 - taken). The slope is 0 if the subtraction is correct, and positive if too little is subtracted. The
standard deviation of the cells' slopes is estimated by restricted maximum likelihood. Its upper limit is where the
profile likelihood is lower by 1.92, half of a chi-squared quantile (95 %, one degree of freedom). In the model with
cell effects only, changes that affect a whole round count too. Source: H. D. Patterson and R. Thompson, Biometrika 58,
1971.
"""

import argparse
import math
import tarfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.examples import LAUNCHES, find_examples
from harness import session
from harness.analysis.distributions import Floats
from harness.analysis.rounds import compute_loss

#: The tried ratios of two variances: of the cells' slopes, and of the noise.
RATIOS = (0.0, *np.exp(np.linspace(-9.0, 4.0, 131)).tolist())
#: The profile likelihood is lower by this amount at the ends of a 95 % interval.
DROP = 1.92


@dataclass(frozen=True, slots=True)
class Timed:
    """A launch: run and cell, run and round, the log of its time after the correction, and its loss."""

    cell: Hashable
    round: Hashable
    log: float
    lost: float


@dataclass(frozen=True, slots=True)
class Slope:
    """The common slope with its standard error, and the standard deviation of the cells' slopes with its 95 % limit."""

    mean: float
    error: float
    own: float
    most: float
    noise: float


def main() -> None:
    """Print a table with one line per run in which something was subtracted, and one line for all runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs, in place of docs/examples")
    runs = parser.parse_args().runs
    by_run = {path.name: launches(path) for path in runs} if runs else dict(map(_example, find_examples()))
    names = "slope, cell effects only | slope | slopes of cells | noise"
    print(f"| run | launches | with something subtracted | taken | {names} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, timed in by_run.items():
        if sum(entry.lost > 0.0 for entry in timed) > len({entry.cell for entry in timed}):
            print(_line(name, timed))
    print(_line("all", [entry for group in by_run.values() for entry in group]))


def _example(path: Path) -> tuple[str, list[Timed]]:
    with TemporaryDirectory() as folder:
        with tarfile.open(path / LAUNCHES) as archive:
            archive.extractall(folder, filter="data")
        return path.name, launches(Path(folder), path.name)


def launches(folder: Path, name: str = "") -> list[Timed]:
    """Return the launches of the rounds in which something was subtracted from a time of the group."""
    numbers = session.read(folder).found.numbers.values()
    pairs = [
        (
            (name, launch.group),
            Timed((name, launch.cell), (name, launch.group, launch.round, launch.block), log - lost, lost),
        )
        for launches_ in numbers
        for launch in launches_
        for log, lost in [(math.log(launch.mean), compute_loss(launch))]
    ]
    groups = {group for group, entry in pairs if entry.lost > 0.0}
    return [entry for group, entry in pairs if group in groups]


def slope(made: Sequence[Timed], *, by_round: bool = True) -> Slope:
    """Return the slope that the launches show. Without `by_round`, the model has no effects of rounds."""
    lost = np.array([entry.lost for entry in made])
    of_cell = _indicators([entry.cell for entry in made])
    effects = np.hstack([of_cell, *([_indicators([entry.round for entry in made])] if by_round else [])])
    left, sizes, _ = np.linalg.svd(effects, full_matrices=True)
    # the part of the data that effects of cells and rounds can't explain
    beside = left[:, np.count_nonzero(sizes > 1e-9 * sizes[0]) :].T
    logs, lost, own = (
        beside @ np.array([entry.log for entry in made]),
        beside @ lost,
        beside @ (of_cell * lost[:, None]),
    )
    tried = [_at(ratio, logs, lost, own) for ratio in RATIOS]
    best = max(tried)
    most = max(fit[1].own for fit in tried if fit[0] > best[0] - DROP)
    return Slope(best[1].mean, best[1].error, best[1].own, most, best[1].noise)


def _at(ratio: float, logs: Floats, lost: Floats, own: Floats) -> tuple[float, Slope]:
    """Return the restricted log likelihood at a ratio of variances, and the estimates there."""
    inverse = np.linalg.inv(shape := np.eye(logs.size) + ratio * own @ own.T)
    square = float(lost @ inverse @ lost)
    mean = float(lost @ inverse @ logs) / square
    rest, freedom = logs - mean * lost, logs.size - 1
    variance = float(rest @ inverse @ rest) / freedom
    likelihood = -0.5 * (float(np.linalg.slogdet(shape)[1]) + math.log(square) + freedom * math.log(variance))
    own_size = math.sqrt(ratio * variance)
    return likelihood, Slope(mean, math.sqrt(variance / square), own_size, own_size, math.sqrt(variance))


def _indicators(labels: Sequence[Hashable]) -> Floats:
    """Return a matrix with one column per label, which has 1 in the label's rows."""
    columns = list(dict.fromkeys(labels))
    return np.array([[float(label == column) for column in columns] for label in labels])


def _line(name: str, timed: Sequence[Timed]) -> str:
    lost = sorted(entry.lost for entry in timed if entry.lost > 0.0)
    fit, alone = slope(timed), slope(timed, by_round=False)
    shares = " to ".join(f"{-math.expm1(-end):.0%}" for end in (lost[0], lost[-1]))
    own = f"{fit.own:.3f} (at most {fit.most:.3f})"
    slopes = " | ".join(f"{estimate.mean:+.3f} ± {estimate.error:.3f}" for estimate in (alone, fit))
    return f"| {name} | {len(timed)} | {len(lost)} | {shares} | {slopes} | {own} | {fit.noise:.1%} |"


if __name__ == "__main__":
    main()
