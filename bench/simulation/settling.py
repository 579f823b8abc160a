"""How often the number of rounds that a report suggests settles a comparison, if the same run continues."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from bench.simulation.harness_rules import MARGIN, end_run
from bench.simulation.machine import Spread, Table, launches
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.looks import compute_last_share, compute_next_share
from harness.analysis.verdicts import MOST_ROUNDS, POWER, Verdict, judge, rounds_to_settle


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggestion for an unclear comparison: a total of `rounds` rounds settles it with this `probability`.

    `is_settled`: whether it is settled after these rounds of the continued run.
    """

    rounds: int
    probability: float
    is_settled: bool

    @property
    def is_number(self) -> bool:
        """Whether the report suggests a number of rounds. Otherwise it shows the probability for MOST_ROUNDS."""
        return self.probability >= POWER


def suggestions(table: Table, rounds: int, tables: int, *, within: float, seed: int) -> list[Suggestion]:
    """Return the suggestion for each comparison that is unclear after this number of rounds, in many tables.

    Each table draws new true differences, uniformly up to `within` in both directions, on the log scale.
    """
    draw = np.random.default_rng(seed)
    suggested = []
    for _ in range(tables):
        centres, samples = launches(table, MOST_ROUNDS, draw)
        centres[:, : table.others] += draw.uniform(-within, within, (table.groups, table.others, 1))
        after = {rounds: end_run(table, centres[:, :, :rounds], samples).logs}
        judged = judge(after[rounds], MARGIN)
        level = partial(compute_next_share, float(rounds), float(rounds))
        totals, chances = rounds_to_settle(after[rounds], judged.alpha, MARGIN, level=level)
        for at, verdict in enumerate(judged.verdicts):
            if verdict is Verdict.UNCLEAR:
                total = int(totals[at])
                if total not in after:
                    after[total] = end_run(table, centres[:, :, :total], samples).logs
                shares = np.full(judged.alpha.shape, compute_last_share([rounds, total]))
                then = judge(after[total], MARGIN, shares=shares).verdicts[at]
                suggested.append(Suggestion(total, float(chances[at]), then is not Verdict.UNCLEAR))
    return suggested


def settled_share(of: Sequence[Suggestion]) -> float:
    """Return the share of suggestions whose comparison was settled."""
    return float(np.mean([suggestion.is_settled for suggestion in of])) if of else 0.0


def print_settling(tables: int, seed: int) -> None:
    """Print how often the suggested number of rounds settles a comparison."""
    print("\n## Rounds to settle an unclear comparison\n")
    heads = ["comparisons", "variability of cells", "rounds", "unclear", "a number is reported", "this number settles"]
    kinds = product((Spread.EQUAL, Spread.UNEQUAL), (1, 13), (3, 5))
    rows = (_format_settling(*kind, tables, seed) for kind in kinds)
    print_table([*heads, "otherwise: probability computed for the limit", "the limit settles"], rows)


def _format_settling(spread: Spread, comparisons: int, rounds: int, tables: int, seed: int) -> list[str]:
    kind, count = Table(1, comparisons, 0.03, spread=spread), tables * 10 if comparisons == 1 else tables
    entries = suggestions(kind, rounds, count, within=math.log1p(0.12), seed=seed)
    numbers, others = (
        [entry for entry in entries if entry.is_number],
        [entry for entry in entries if not entry.is_number],
    )
    expected = sum(entry.probability for entry in others) / max(1, len(others))
    return [
        str(comparisons),
        "alike" if spread is Spread.EQUAL else "each cell differently (a third of that to three times as much)",
        str(rounds),
        f"{len(entries):,}",
        *map(format_percent, (len(numbers) / len(entries), settled_share(numbers), expected, settled_share(others))),
    ]
