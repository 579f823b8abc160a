"""What of a run is told upstream: two cells, or one, with what was measured of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.analysis.claims import ClaimResult, Outcome
from harness.analysis.environments import pins
from harness.analysis.quantities import growth_difference, growth_estimate, growths, kind, launches_of
from harness.analysis.results import Results
from harness.analysis.rounds import series
from harness.analysis.shape import Quantity
from harness.analysis.statistics import Difference, Estimate, combine, exp, log_ratios
from harness.model.defaults import LEVEL
from harness.model.environment import Environment
from harness.model.errors import NothingSelectedError
from harness.model.scenario import GROWTH, STEP, Cell, Scenario
from harness.report import format

#: A nightly's packages, of which a form asks.
_NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")

#: Of a claim with one of these there is nothing to tell.
_NOTHING = (Outcome.CANNOT_RUN, Outcome.NOT_MEASURED)


@dataclass(frozen=True)
class IssueSide:
    """A cell, its scenario and environment, by round its value of what is compared, and their centre."""

    cell: Cell
    scenario: Scenario
    environment: Environment
    values: Mapping[int, float]
    centre: Estimate


@dataclass(frozen=True)
class Subject:
    """`worse` takes so many times as long as `better`, or that much more: `of` is what is compared.

    `ratio`, whose interval is `level` wide, is None where there is no `better`. `claim` is what an issue says of them.
    """

    of: str
    worse: IssueSide
    better: IssueSide | None
    ratio: Estimate | None
    level: float = LEVEL
    claim: ClaimResult | None = None

    @property
    def sides(self) -> list[IssueSide]:
        """Those that there are, the worse first."""
        return [self.worse, *([self.better] if self.better else [])]

    @property
    def is_shown(self) -> bool:
        """Whether the worse side is shown to take longer, or more."""
        if self.ratio is None or self.ratio.interval is None:
            return False
        return self.ratio.interval.low > (0.0 if isinstance(self.ratio, Difference) else 1.0)

    @property
    def is_turned(self) -> bool:
        """Whether the better side takes longer."""
        equal = 0.0 if isinstance(self.ratio, Difference) else 1.0
        return self.ratio is not None and self.ratio.value < equal

    @property
    def turned(self) -> "Subject":
        """The same from the other side."""
        assert self.better
        return replace(self, worse=self.better, better=self.worse, ratio=self.ratio and self.ratio.inverse)

    def label(self, side: IssueSide) -> str:
        """What a side is called, by what the sides differ in: `predict`, `tf2.2`, `tf2.2, predict`."""
        axes = [side.cell.axes[axis] for axis in side.cell.axes if not self._is_shared(axis)]
        is_named = len(self.environments) > 1 or not axes
        return ", ".join([*([side.environment.name] if is_named else []), *axes])

    @property
    def shared(self) -> list[str]:
        """What the sides have in common: the environment where it is one, and axes' values."""
        alone = [self.worse.environment.name] if len(self.environments) == 1 else []
        return [*alone, *(f"{axis} {value}" for axis, value in self.worse.cell.axes.items() if self._is_shared(axis))]

    def _is_shared(self, axis: str) -> bool:
        return len({side.cell.axes.get(axis) for side in self.sides}) == 1

    @property
    def environments(self) -> list[Environment]:
        """The sides' environments, each once."""
        return list({side.environment.name: side.environment for side in self.sides}.values())

    def amount(self, value: float) -> str:
        """A value of what is compared, with its unit."""
        match kind(self.of):
            case Quantity.BYTES:
                return f"{'' if value >= 0 else '-'}{format.bytes_(abs(value))}{' a call' if self.of == GROWTH else ''}"
            case Quantity.COUNT:
                return format.number(value)
        factor, unit = next(((f, u) for f, u in ((1.0, "s"), (1e3, "ms")) if value * f >= 1), (1e6, "µs"))
        return f"{format.number(value * factor)} {unit}"

    @property
    def sentence(self) -> str:
        """The two set side by side: `predict takes 4.10 times as long as model(x) (95 %: 3.90 to 4.30)`."""
        worse, ratio = self.label(self.worse), self.ratio
        takes = "takes" if kind(self.of) in (Quantity.STEP, Quantity.SECONDS) else "has"
        what = "" if self.of == STEP else f" {self.of}:"
        if self.better is None or ratio is None:
            return f"{worse}{what} {self.amount(self.worse.centre.value)}"
        better = self.label(self.better)
        if isinstance(ratio, Difference):
            span = ratio.interval
            between = (
                f" ({format.level(self.level)}: {self.amount(span.low)} to {self.amount(span.high)})" if span else ""
            )
            return f"{worse}{what} {self.amount(ratio.value)} more than {better}{between}"
        between = f" ({format.level(self.level)}: {format.between(ratio.interval)})" if ratio.interval else ""
        long = "as long" if takes == "takes" else "as much"
        return f"{worse}{what} {takes} {format.number(ratio.value)} times {long} as {better}{between}"


def subject(results: Results) -> Subject:
    """What an upstream issue says of the run's cells, one that holds first; else the run's first answer, or a cell.

    A claim counts that was measured where it was made, or holds elsewhere. Of one, `worse` is what was said to take
    longer; else what does. Raises NothingSelectedError where nothing was
    measured.
    """
    for told in sorted(results.claims, key=lambda each: not any(place.outcome.holds for place in each.places)):
        for place in told.places:
            if place.outcome.holds or (place is told.at and place.outcome not in _NOTHING):
                found = _subject(results, told.claim.of, place.worse, place.better)
                if found is not None and place.estimate is not None and place.better is not None:
                    found = replace(found, ratio=place.estimate, level=place.level)
                if found is not None:
                    return replace(found, claim=told)
    for answer in results.answers:
        compared = max(answer.findings, key=lambda each: each.distance).compared
        found = _subject(results, answer.comparison.of, compared.cell, compared.other)
        if found is not None:
            found = replace(found, ratio=compared.ratio, level=compared.level)
            return found.turned if found.is_turned else found
    for cell in results.found.series:
        found = _subject(results, STEP, cell, None)
        if found is not None:
            return found
    raise NothingSelectedError("The run has no number to tell upstream.", "Why is in its report.md.")


def moved(results: Results, about: Subject, name: str) -> Subject | None:
    """The same in another environment: both sides there, or the worse where the sides' environments differ."""
    there = replace(about.worse.cell, environment=name)
    if about.better is None:
        return _subject(results, about.of, there, None)
    together = about.better.environment == about.worse.environment
    return _subject(
        results, about.of, there, replace(about.better.cell, environment=name) if together else about.better.cell
    )


def nightlies(results: Results) -> list[str]:
    """The run's environments that are nightlies."""
    return [
        each.name
        for each in results.run.environments
        if any(name in pins(results.run, each.name) for name in _NIGHTLIES)
    ]


def _subject(results: Results, of: str, one: Cell, other: Cell | None) -> Subject | None:
    """Two cells as they are given; None where one of them has no number."""
    sides = [_side(results, of, cell) for cell in (one, other) if cell is not None]
    if None in sides:
        return None
    known = [side for side in sides if side]
    if len(known) == 1:
        return Subject(of, known[0], None, None)
    worse, better = known
    if of == GROWTH:
        return Subject(of, worse, better, growth_difference(worse.values, better.values))
    logs = log_ratios(worse.values, better.values)
    return Subject(of, worse, better, combine([exp(log) for log in logs]) if logs else None)


def _side(results: Results, of: str, cell: Cell) -> IssueSide | None:
    launches = results.found.numbers.get(cell, ())
    scenario = next((each for each in results.run.scenarios if each.name == cell.scenario), None)
    environment = next((each for each in results.run.environments if each.name == cell.environment), None)
    if scenario is None or environment is None:
        return None
    if of == GROWTH:
        values: Mapping[int, float] = growths(launches)
        centre: Estimate | None = growth_estimate(launches)
    else:
        values = series(launches_of(of, launches, results.run.plan.clock)).get(cell, {})
        centre = combine(list(values.values())) if values else None
    return IssueSide(cell, scenario, environment, values, centre) if centre else None
