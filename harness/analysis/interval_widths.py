"""The widths of the intervals of comparisons, which determine whether a group needs further rounds."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from harness.analysis.cell_index import Lookup
from harness.analysis.pairs import PairFamily, make_family
from harness.analysis.statistics import half_widths
from harness.analysis.verdicts import compute_shown_alpha, margins, p_values
from harness.model.scenario import Cell


def log_intervals(
    pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, planned: int = 0
) -> list[tuple[float, float, float] | None]:
    """Return the mean log ratio of each pair, half the width of its interval at 1 - 0.05 / m, and the bias.

    m is the number of judged pairs, and at least `planned`, the number of pairs including those that aren't measured
    yet. In `compare`, the bias makes the same interval wider. More rounds don't remove it. A pair that isn't judged has
    None, and a pair with too few rounds has an infinite width.
    """
    return _list_intervals(make_family(pairs, lookup), lookup, planned)


def _list_intervals(family: PairFamily, lookup: Lookup, planned: int = 0) -> list[tuple[float, float, float] | None]:
    shares = np.array([lookup.look(pair.cell).share for pair in family.judged], np.float64)
    widths = half_widths(family.logs, shares * compute_shown_alpha(max(planned, len(family.judged))))
    judged = iter(zip(widths.tolist(), family.bias.tolist(), strict=True))
    return [
        None
        if pair is None or pair.work.differs or pair.lacks_common_steps
        else (fmean(pair.logs), *(next(judged) if pair.is_judged else (math.inf, 0.0)))
        for pair in family.candidates
    ]


def open_widths(
    pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup, margin: float, group_shares: Mapping[str, float]
) -> list[float | None]:
    """Return half the width of each pair's interval (see `log_intervals`), so that a run can stop at a width.

    A comparison whose verdict is already clear has 0. `margin` is a share: 0.03 for 3 %. `group_shares` contains, by
    group, the share of the level that a look may use now (analysis/looks.py). A verdict is clear if the interval at
    1 - 0.05 · share / m doesn't include the margin, and the control doesn't withhold the verdict.
    """
    family, log_margin = make_family(pairs, lookup), math.log1p(margin)
    halves = [interval and interval[1] for interval in _list_intervals(family, lookup)]
    shares = np.array([group_shares[lookup.groups[pair.cell]] for pair in family.judged], np.float64)
    p = p_values(family.logs, margins(family.logs.rounds, log_margin), family.bias)
    is_settled = (shares > 0.0) & (p <= shares * compute_shown_alpha(len(family.judged)))
    is_withheld = np.array([lookup.is_lost(pair.cell, log_margin) for pair in family.judged], np.bool_)
    is_clear = iter((is_settled & ~is_withheld).tolist())
    return [
        0.0 if pair and pair.is_judged and next(is_clear) else half_width
        for pair, half_width in zip(family.candidates, halves, strict=True)
    ]
