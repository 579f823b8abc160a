"""Correlated ratios of nightly runs: false suspicions, and detected steps.

The ratio of a nightly run has a total standard deviation of 2, 3 or 5 %. The five rounds of the run contribute 0.9 %,
which the errors show. The rest is a first-order autoregression, as if something affected one of the two cells for some
days. A series has 60 nightly runs, and each rule runs after each of the last 30, which are a month of the series.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.simulation.machine import Floats
from bench.simulation.nights import NEAR, ROUND, ROUNDS, RULES, Kind, Nights, Rule, at_most, delay, ours
from harness.history.detection import LEAST, ChangePoint, P, keep_significant
from harness.history.levels import FEWEST, ValuesAndErrors, fit_all_levels

NIGHTS, HISTORY = 60, 30
#: The index of the nightly run at which a simulated step starts.
AT = 45
#: False suspicions are reported for these numbers of series.
SERIES = (50, 500, 5_000)


@dataclass(frozen=True, slots=True)
class Course:
    """The variation of ratios: standard deviation, lag-1 correlation between nightly runs, and other changes.

    `drift` is the change of the ratio over all nightly runs (0.03). `replaced` is the share by which another machine
    with the same id changes the ratio up or down, from some nightly run of the month on.
    """

    deviation: float
    correlation: float = 0.0
    drift: float = 0.0
    replaced: float = 0.0

    def __str__(self) -> str:
        """Return the course in words, as in the first column of a table."""
        text = f"{self.deviation:.0%}, " + (f"AR {self.correlation:g}" if self.correlation else "independent")
        text += f", drift by {self.drift:.0%}" if self.drift else ""
        return text + (f", another machine (± {self.replaced:.0%})" if self.replaced else "")


COURSES = [Course(deviation, correlation) for correlation in (0.0, 0.5, 0.8) for deviation in (0.02, 0.03, 0.05)]
OTHERS = [Course(0.02, drift=0.03), Course(0.02, 0.5, drift=0.03), Course(0.02, replaced=0.05)]


def autoregression(draw: np.random.Generator, correlation: float, nights: int = NIGHTS) -> Floats:
    """Return a stationary first-order autoregression with a variance of 1, of shape (nights,)."""
    values = draw.normal(size=nights)
    values[1:] *= math.sqrt(1.0 - correlation**2)
    for night in range(1, nights):
        values[night] += correlation * values[night - 1]
    return values


def correlated(of: Course, seed: int, trial: int, step: float = 0.0) -> Nights:
    """Return nightly runs of a course, slower by a step (0.05) from `AT` on. Each course has its own random numbers."""
    numbers = (round(1e4 * of.deviation), round(1e2 * of.correlation), round(1e3 * step))
    draw = np.random.default_rng([seed, *numbers, trial, round(1e3 * of.drift)])
    days = np.arange(NIGHTS)
    within = ROUND / math.sqrt(ROUNDS)
    between = math.sqrt(of.deviation**2 - within**2) * autoregression(draw, of.correlation)
    rounds = draw.normal(size=(ROUNDS, NIGHTS)) * ROUND
    moved = math.log1p(of.replaced) * draw.choice([-1.0, 1.0]) * (days >= draw.integers(HISTORY, NIGHTS))
    truth = between + math.log1p(step) * (days >= AT) + math.log1p(of.drift) * days / NIGHTS + moved
    ratios = truth + rounds.mean(axis=0)
    return Nights(Kind.STILL, ratios, ratios, rounds.std(axis=0, ddof=1) / math.sqrt(ROUNDS), NIGHTS)


def _detect_independently(series: Sequence[ValuesAndErrors]) -> list[list[ChangePoint]]:
    """Return the changes without the factor on errors, as if nightly runs were independent."""
    fits = fit_all_levels(series, fewest=FEWEST, least=LEAST)
    return [keep_significant(segments, p=P, least=LEAST, is_independent=True) for segments in fits]


def independent(of: Nights, values: Floats, first: int = HISTORY) -> Iterable[tuple[int, int]]:
    """Return the changes that harness would suspect if it treated nightly runs as independent."""
    return ours(of, values, first, _detect_independently)


COMPARED: dict[str, Rule] = {"harness without the factor": independent, **RULES}


def false_suspicions(name: str, of: Course, seed: int, trials: Sequence[int]) -> int:
    """Return how many changes a rule reports in the month of these series, although no cell gets slower.

    A change that is reported twice counts once. A change that was reported before the month doesn't count.
    """
    count = 0
    for trial in trials:
        simulated = correlated(of, seed, trial)
        reported: list[int] = []
        for nights, index in COMPARED[name](simulated, simulated.ratios, HISTORY):
            if all(abs(index - earlier) > NEAR for earlier in reported):
                reported.append(index)
                count += nights > HISTORY
    return count


def found_after(name: str, of: Course, step: float, seed: int, trials: Sequence[int]) -> list[int | None]:
    """Return, for each of these series, after how many nightly runs a rule reports a step (0.05), or None."""
    courses = (correlated(of, seed, trial, step) for trial in trials)
    return [delay(COMPARED[name], course, course.ratios, AT) for course in courses]


def inflations(correlation: float, nights: int, trials: int, seed: int) -> Floats:
    """Return the factor on errors in series of this length, if the last three nightly runs have a clear step."""
    logs = []
    for trial in range(trials):
        values = 0.03 * autoregression(np.random.default_rng([seed, trial]), correlation, nights)
        values[-3:] += 2.0
        (segments,) = fit_all_levels([(values.tolist(), [0.01] * nights)], fewest=3, least=LEAST)
        allowed, plain = (
            keep_significant(segments, p=0.01, least=LEAST, is_independent=is_independent)[-1]
            for is_independent in (False, True)
        )
        logs.append(math.log(allowed.high / allowed.low) / math.log(plain.high / plain.low))
    return np.array(logs)


def rates(count: int, months: int) -> list[str]:
    """Return the suspicions per month for each of `SERIES`, and the number of months of a series per suspicion."""
    if not count:
        return [*(f"0 (at most {_rate(series * at_most(0) / months)})" for series in SERIES), "-"]
    return [*(_rate(series * count / months) for series in SERIES), f"{months / count:,.1f}"]


def _rate(per: float) -> str:
    return f"{per:,.1f}" if per < 10.0 else f"{per:,.0f}"


def shares(delays: Sequence[int | None]) -> str:
    """Format the shares found within 5 and within 15 nightly runs, and the median delay: `32 / 96 % (6)`."""
    reached = sorted(nights for nights in delays if nights is not None)
    soon, late = (sum(nights <= within for nights in reached) / len(delays) for within in (5, NIGHTS - AT))
    return f"{100.0 * soon:.0f} / {100.0 * late:.0f} %" + (f" ({reached[len(reached) // 2]})" if reached else "")
