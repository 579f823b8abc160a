"""The subject of a bundle: one or two cells of a run, with their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis.claim_rules import ClaimOutcome
from harness.analysis.claims import ClaimPlace, ClaimResult
from harness.analysis.environments import pins
from harness.analysis.quantities import growth_difference, is_time, linear
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Estimate, combine, exp_limited, log_ratios
from harness.model.defaults import LEVEL
from harness.model.environment import NIGHTLIES, Environment
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.launch import Clock
from harness.model.scenario import GROWTH, STEP, Cell, Scenario
from harness.plan.selection import make_unknown_error, resolve
from harness.report import format

#: Values or globs for each axis.
Axes = Mapping[str, Sequence[str]]

#: Outcomes without a measured value. A claim with such an outcome can't be the subject.
_OUTCOMES_WITHOUT_VALUE = (ClaimOutcome.CANNOT_RUN, ClaimOutcome.NOT_MEASURED)


@dataclass(frozen=True)
class IssueSide:
    """A cell, its scenario and environment, its value in each round, and the mean of these values, or None."""

    cell: Cell
    scenario: Scenario
    environment: Environment
    values: Mapping[int, float]
    mean: Estimate | None


@dataclass(frozen=True)
class Subject:
    """A comparison of the quantity `of` between `worse` and `better`.

    The interval of `ratio` has the confidence level `level`. `ratio` is None if there is no `better`, or no result.
    `claim` is the result of an issue's claim about the two sides.
    """

    of: str
    worse: IssueSide
    better: IssueSide | None
    ratio: Estimate | None
    level: float = LEVEL
    claim: ClaimResult | None = None

    @property
    def sides(self) -> list[IssueSide]:
        """The one or two sides, the worse one first."""
        return [self.worse, *([self.better] if self.better else [])]

    @property
    def has_results(self) -> bool:
        """Whether each side has a value."""
        return all(side.mean for side in self.sides)

    @property
    def is_shown(self) -> bool:
        """Whether the value of the worse side is significantly larger."""
        if self.ratio is None or self.ratio.interval is None:
            return False
        return self.ratio.interval.low > (0.0 if isinstance(self.ratio, Difference) else 1.0)

    @property
    def ordered(self) -> "Subject":
        """The comparison with the larger value on the worse side."""
        neutral_value = 0.0 if isinstance(self.ratio, Difference) else 1.0
        if self.better is None or self.ratio is None or self.ratio.value >= neutral_value:
            return self
        return replace(self, worse=self.better, better=self.worse, ratio=self.ratio.inverse)

    def label(self, side: IssueSide) -> str:
        """Return a name for a side that shows how the sides differ: `predict`, `tf2.2`, or `tf2.2, predict`."""
        axes = [side.cell.axes[axis] for axis in side.cell.axes if not self._is_shared(axis)]
        is_named = len(self.environments) > 1 or not axes
        return ", ".join([*([side.environment.name] if is_named else []), *axes])

    @property
    def shared(self) -> list[str]:
        """The properties that the sides have in common: the environment if it is the same, and axis values."""
        environment = [self.worse.environment.name] if len(self.environments) == 1 else []
        axes = self.worse.cell.axes
        return [*environment, *(f"{axis}={value}" for axis, value in axes.items() if self._is_shared(axis))]

    def _is_shared(self, axis: str) -> bool:
        return len({side.cell.axes.get(axis) for side in self.sides}) == 1

    @property
    def environments(self) -> list[Environment]:
        """The environments of the sides, without duplicates."""
        return list({side.environment.name: side.environment for side in self.sides}.values())

    def amount(self, value: float) -> str:
        """Format a value of the quantity with its unit."""
        unit = format.unit_of_quantity(self.of, [value], Clock.WALL)
        suffix = " per call" if self.of == GROWTH else ""
        return f"{format.number(value * unit.factor)} {unit.symbol}{suffix}".rstrip()

    def format_interval(self, estimate: Estimate, level: float) -> str:
        """Format the interval of a value of the quantity: ` (95 %: 3.9 ms to 4.3 ms)`; empty without an interval."""
        if estimate.interval is None:
            return ""
        return (
            f" ({format.level(level)}: {self.amount(estimate.interval.low)} to {self.amount(estimate.interval.high)})"
        )

    @property
    def clause(self) -> str:
        """The result as a clause: `predict takes 4.10 times as long as model(x) (95 %: 3.90 to 4.30)`."""
        worse, ratio = self.label(self.worse), self.ratio
        verb = "takes" if is_time(self.of) else "has"
        quantity = "" if self.of == STEP else f" {self.of}:"
        if self.worse.mean is None:
            return f"no result for {worse}"
        if self.better is None or ratio is None:
            return f"{worse}{quantity} {self.amount(self.worse.mean.value)}"
        better = self.label(self.better)
        if isinstance(ratio, Difference):
            suffix = self.format_interval(ratio, self.level)
            return f"{worse}{quantity} {self.amount(ratio.value)} more than {better}{suffix}"
        suffix = f" ({format.level(self.level)}: {format.format_interval(ratio.interval)})" if ratio.interval else ""
        comparison = "as long" if verb == "takes" else "as much"
        return f"{worse}{quantity} {verb} {format.number(ratio.value)} times {comparison} as {better}{suffix}"


def subject(results: Results) -> Subject:
    """Return the main comparison of a run: a claim of an upstream issue, otherwise the first answer, otherwise a cell.

    Claims that hold come first, each in the newest release in which it holds. For a claim that doesn't hold anywhere,
    the result in the claimed environment is used. `worse` is the side that the claim calls worse; in an answer, it is
    the slower side. Raises NothingSelectedError if the run has no result.
    """
    for claim_result in sorted(
        results.claims, key=lambda entry: not any(place.outcome.holds for place in entry.places)
    ):
        for place in _order_places(results, claim_result):
            if place.outcome in _OUTCOMES_WITHOUT_VALUE:
                continue
            candidate = _make_subject(results, claim_result.claim.of, *place.cells)
            if place.estimate is not None and place.better is not None:
                candidate = replace(candidate, ratio=place.estimate, level=place.level)
            if candidate.has_results:
                return replace(candidate, claim=claim_result)
    for answer in results.answers:
        same_work = [finding for finding in answer.findings if not finding.compared.work.differs]
        if not same_work:
            continue
        compared = max(same_work, key=lambda finding: finding.ratio.distance).compared
        candidate = _make_subject(results, answer.comparison.of, compared.cell, compared.other)
        if candidate.has_results:
            return replace(candidate, ratio=compared.ratio, level=compared.level).ordered
    for cell in results.found.series:
        candidate = _make_subject(results, STEP, cell)
        if candidate.has_results:
            return candidate
    raise NothingSelectedError(
        "The run doesn't contain a result to report upstream.", "For the reasons, see its report.md."
    )


def _order_places(results: Results, claim_result: ClaimResult) -> list[ClaimPlace]:
    """Return the results of a claim: first the environments in which it holds, and then the claimed environment.

    Among the former, newer releases come first, and nightlies last.
    """
    releases = {environment.name: environment.release for environment in results.run.environments}
    nightlies = find_nightlies(results)
    holding_places = [place for place in claim_result.places if place.outcome.holds]
    holding_places.sort(
        key=lambda place: (place.environment not in nightlies, releases[place.environment]), reverse=True
    )
    return [*holding_places, claim_result.at]


def select(results: Results, scenarios: Sequence[str], environments: Sequence[str], axes: Axes) -> Subject:
    """Return a subject of one or two cells of the run, selected by names and globs. The cells may have no result.

    Raises UsageError for a name that isn't in the run, and if no cell or more than two cells are selected.
    """
    cells = list(dict.fromkeys(results.run.plan.cells))
    names = sorted({axis for cell in cells for axis in cell.axes})
    for axis in axes:
        if axis not in names:
            raise make_unknown_error(axis, names, "axis")
    facts = {cell: {"scenario": cell.scenario, "environment": cell.environment, **cell.axes} for cell in cells}
    for name, patterns in {"scenario": scenarios, "environment": environments, **axes}.items():
        if patterns:
            noun = f"value of {name}" if name in axes else name
            selected = resolve(patterns, list(dict.fromkeys(facts[cell].get(name, "") for cell in cells)), noun)
            cells = [cell for cell in cells if facts[cell].get(name, "") in selected]
    if len(cells) not in (1, 2):
        raise UsageError(
            f"{len(cells)} cells are selected, but a script can run only 1 or 2.",
            "Select them with -s (scenario), -e (environment) or -a (axis). The first two are:\n    "
            + "\n    ".join(map(str, cells[:2])),
        )
    return _make_subject(results, STEP, *cells).ordered


def move_subject(results: Results, original: Subject, environment: str) -> Subject:
    """Return the comparison in another environment, in which a side may have no result.

    If the sides have different environments, only the environment of the worse side is replaced.
    """
    cells = [
        replace(side.cell, environment=environment) if side.environment == original.worse.environment else side.cell
        for side in original.sides
    ]
    return _make_subject(results, original.of, *cells)


def find_nightlies(results: Results) -> list[str]:
    """Return the names of the run's nightly environments. Issue forms ask whether a nightly has the problem."""
    return [
        environment.name
        for environment in results.run.environments
        if any(name in pins(results.run, environment.name) for name in NIGHTLIES)
    ]


def _make_subject(results: Results, quantity: str, worse_cell: Cell, better_cell: Cell | None = None) -> Subject:
    """Return a subject of one or two cells of the run. The cells may have no result."""
    worse = _make_side(results, quantity, worse_cell)
    if better_cell is None:
        return Subject(quantity, worse, None, None)
    better = _make_side(results, quantity, better_cell)
    if quantity == GROWTH:
        return Subject(quantity, worse, better, growth_difference(worse.values, better.values))
    logs = log_ratios(worse.values, better.values)
    return Subject(quantity, worse, better, combine([exp_limited(log) for log in logs]) if logs else None)


def _make_side(results: Results, quantity: str, cell: Cell) -> IssueSide:
    scenario = next(entry for entry in results.run.scenarios if entry.name == cell.scenario)
    environment = next(entry for entry in results.run.environments if entry.name == cell.environment)
    values = results.values_of(quantity, cell)
    estimate = linear if quantity == GROWTH else combine
    mean = estimate(list(values.values())) if values else None
    return IssueSide(cell, scenario, environment, values, mean)
