"""Compares two environments of a run, from the rounds that measured both."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.analysis.comparisons import compare, ratios
from harness.analysis.observations import find_commit
from harness.analysis.quantities import PIECE, calls_looked_at, growth_difference
from harness.analysis.results import Results
from harness.analysis.statistics import log_ratios
from harness.analysis.verdicts import Verdict, Withheld
from harness.analysis.work_counts import StepWork
from harness.model.defaults import ALPHA
from harness.model.scenario import GROWTH, STEP, Cell
from harness.model.texts import counted, format_number


@dataclass(frozen=True, slots=True)
class PairComparison:
    """A comparison of the newer of two environments with the older one.

    `step`, with its interval from `low` to `high`, is on the scale of the comparison: the log of the ratio, or, if not
    `is_ratio`, the difference in bytes per call. `what` is a clause with the value. `floor` is the largest step that
    isn't reported. `remark` replaces the verdict, for example if the work differs. `pythons` are the Python versions if
    they differ.
    """

    step: float
    low: float
    high: float
    rounds: int
    floor: float
    what: str
    remark: str = ""
    is_ratio: bool = True
    pythons: tuple[str, str] | None = None

    @property
    def is_step(self) -> bool:
        """Return whether the results establish a difference: the interval excludes 0, and the step exceeds `floor`."""
        return (self.low > 0.0 or self.high < 0.0) and abs(self.step) > self.floor

    @property
    def is_same(self) -> bool:
        """Return whether the results establish equality: the whole interval is within `floor`."""
        return -self.floor < self.low and self.high < self.floor

    @property
    def is_clear(self) -> bool:
        """Return whether more rounds would not change the result."""
        return self.is_step or self.is_same

    @property
    def relation(self) -> str:
        """Return `differ`, `do not differ`, or `are not shown to differ`."""
        return "differ" if self.is_step else "do not differ" if self.is_same else "are not shown to differ"

    @property
    def clause(self) -> str:
        """Return the comparison as text: `tf2.1 takes ×17.6 the time of tf2.0 (16.3 to 18.9, 3 rounds: slower)`."""
        ends = self.low, self.high
        low, high = (format_number(math.exp(end)) if self.is_ratio else f"{end:+,.0f}" for end in ends)
        decrease, increase = ("faster", "slower") if self.is_ratio else ("less", "more")
        direction = increase if self.step > 0.0 else decrease
        verdict = direction if self.is_step else "same" if self.is_same else "unclear"
        return f"{self.what} ({low} to {high}, {counted(self.rounds, 'round')}: {self.remark or verdict})"


@dataclass(frozen=True, slots=True)
class PairedRun:
    """A stored run of a cell in several environments, and the quantity `of` that is compared.

    `names` maps the environments' values of -e to their names. If the run has several cells, `axes` select one.
    """

    results: Results
    names: Mapping[str, str]
    of: str = STEP
    axes: Mapping[str, str] = field(default_factory=dict)

    def values(self, text: str) -> Mapping[int, float]:
        """Return the quantity's value in each round of an environment, in the quantity's unit."""
        cell = self.find_cell(text)
        return self.results.values_of(self.of, cell) if cell else {}

    def differences(self, text: str, fixed: str, after: int = 0) -> list[float]:
        """Return log(value(text) / value(fixed)) for each later round than `after` that has both values.

        For memory growth, the differences aren't logarithmic.
        """
        values, fixed_values = (
            {number: value for number, value in self.values(side).items() if number > after} for side in (text, fixed)
        )
        if self.of != GROWTH:
            return log_ratios(values, fixed_values)
        return [values[number] - fixed_values[number] for number in sorted(values.keys() & fixed_values.keys())]

    def find_cell(self, text: str) -> Cell | None:
        """Return the cell of an environment; None if it was not measured."""
        name, axes = self.names.get(text), self.axes.items()
        cells = (cell for cell in self.results.found.cells if cell.environment == name and axes <= cell.axes.items())
        return next(cells, None)

    def why_not(self, text: str, after: int = 0) -> str:
        """Return why an environment has no value in a later round than `after`; empty if it has one."""
        if any(number > after for number in self.values(text)):
            return ""
        cell, index = self.find_cell(text), self.results.found_of(self.of)
        if cell is None:
            return "it was not measured"
        if cell in index.unavailable:
            return index.unavailable[cell].reason.rstrip(".")
        launch = index.culprit(cell)
        return (launch.error or launch.status.value).rstrip(".") if launch else f"{self.of} was not recorded"

    def work(self, text: str) -> StepWork | str:
        """Return the counted work of a step in an environment, or why it is unknown."""
        cell = self.find_cell(text)
        work = self.results.work.get(cell) if cell else None
        return work or self.why_not(text) or "its calls could not be counted exactly"

    def compare(self, text: str, fixed: str, alpha: float | None = None) -> PairComparison | None:
        """Compare an environment with another one. Return None if no round has both.

        The interval has the level 1 - `alpha`; by default, the level of the run's last look (analysis/looks.py).
        If the A/A control is biased, the interval is widened by the bias.
        """
        cell, fixed_cell, index = self.find_cell(text), self.find_cell(fixed), self.results.found_of(self.of)
        if cell is None or fixed_cell is None or not self.differences(text, fixed):
            return None
        margin = self.results.run.plan.margin
        alpha = ALPHA * index.look(cell).share if alpha is None else alpha
        if self.of == GROWTH:
            return self._compare_growth(text, fixed, alpha, index.pythons(cell.environment, fixed_cell.environment))
        (result,) = compare([(cell, fixed_cell)], index, margin)
        (estimate,) = ratios([(cell, fixed_cell)], index, alpha)
        if result is None:
            return None
        ratio = estimate or result.ratio
        bias = result.bias.distance if result.bias else 0.0
        # a table has no verdict if the work differs or the control is biased, but a pair has only its interval
        remark = "the two launches of the control cell differ" if result.withheld is Withheld.CONTROL else ""
        verb, noun = ("takes", "time") if self.of == STEP else ("has", self.of)
        return PairComparison(
            step=math.log(ratio.value),
            low=math.log(ratio.interval.low) - bias if ratio.interval else -math.inf,
            high=math.log(ratio.interval.high) + bias if ratio.interval else math.inf,
            rounds=ratio.rounds,
            floor=math.log1p(margin),
            what=f"{text} {verb} ×{format_number(ratio.value)} the {noun} of {fixed}",
            remark=result.verdict if result.verdict is Verdict.DIFFERENT_WORK else remark,
            pythons=result.pythons,
        )

    def build(self, text: str) -> str:
        """Return the commit of an environment's TensorFlow, in the format of `git describe`; empty if unknown."""
        return find_commit(self.results.launches, self.names.get(text, ""))

    def _compare_growth(
        self, text: str, fixed: str, alpha: float, pythons: tuple[str, str] | None
    ) -> PairComparison | None:
        difference = growth_difference(self.values(text), self.values(fixed), 1.0 - alpha)
        if difference is None or difference.interval is None:
            return None
        calls = min((calls_looked_at(launch) for launch in self.results.launches if launch.memory), default=1.0)
        comparative = "more" if difference.value > 0 else "fewer"
        return PairComparison(
            step=difference.value,
            low=difference.interval.low,
            high=difference.interval.high,
            rounds=difference.rounds,
            # the allocator takes memory in pieces, so a difference of one piece isn't reported
            floor=PIECE / max(calls, 1.0),
            what=f"{text} retains {abs(difference.value):,.0f} {comparative} bytes per call than {fixed}",
            is_ratio=False,
            pythons=pythons,
        )
