"""What accounts for a scenario's gap, as lines of text. Nothing here is escaped yet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.attribution import Attribution, attributions
from harness.analysis.comparisons import Withheld
from harness.analysis.effects import Change, Effect
from harness.analysis.lookup import Lookup
from harness.analysis.statistics import Estimate
from harness.analysis.tables import Table
from harness.analysis.verdicts import Verdict
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import format, names
from harness.report.comparisons import Tally, tally

#: More interactions than this are not shown: those that are, are beyond the margin, or else furthest from 1.
INTERACTIONS = 12

#: How many changes the sentence over the table names.
NAMED = 3


@dataclass(frozen=True, slots=True)
class Dependence:
    """How the factor of one change, `what`, depends on another: from `base` to `level`.

    The factor is `alone` with `base` and `beside` with `level`; that of both changes is `together`.
    """

    what: str
    base: str
    level: str
    alone: str
    beside: str
    together: str


@dataclass(frozen=True, slots=True)
class Line:
    """The effect of one change, `tf2.0 against tf1.14`, or the interaction of two, `tf2.0 × eager`.

    `estimate` is the factor with its interval. Only an interaction has `depends`. `pythons` are the two interpreters'
    versions where they differ.
    """

    term: str
    estimate: Estimate
    factor: str
    interval: str
    verdict: Verdict | None
    withheld: Withheld | None
    depends: Dependence | None
    pythons: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class AttributionView:
    """The effects in one scenario, on `device` where its table has several (else empty).

    `axes` and their levels span the factorial of `cells` cells, of the `of` that have a number, at the values `held`
    of the other axes; `rounds` is how many rounds all of them have. `left` counts the interactions that are not shown.
    `leading` are single changes beyond the margin, the furthest first, and `more` counts those after them; `depending`
    is the interaction furthest beyond it. `judged` effects got their verdicts together.
    """

    scenario: Scenario
    device: str
    axes: Sequence[tuple[str, Sequence[str]]]
    held: Sequence[str]
    cells: int
    of: int
    rounds: int
    lines: Sequence[Line]
    left: Tally
    leading: Sequence[Line]
    more: int
    depending: Line | None
    judged: int
    moderated: bool
    unchecked: bool

    @property
    def environments(self) -> bool:
        """Whether environments are among what varies."""
        return any(axis == ENVIRONMENT for axis, _ in self.axes)


def views(run: Run, table: Table, found: Lookup) -> list[AttributionView]:
    """What accounts for the table's gaps, device by device; empty where no two axes vary in a complete factorial."""
    made = attributions(run, table, found)
    return [view(each, found, each.device.value if table.several_devices else "") for each in made]


def view(made: Attribution, found: Lookup, device: str = "") -> AttributionView:
    """One attribution as text; `device` where it is to be told."""
    single = [effect for effect in made.effects if effect.parts is None]
    pairs = [effect for effect in made.effects if effect.parts]
    shown = sorted(pairs, key=_prominence)[:INTERACTIONS]
    leading = [effect for effect in sorted(single, key=_prominence) if _beyond(effect)]
    depending = next((effect for effect in shown if _beyond(effect)), None)
    return AttributionView(
        scenario=made.scenario,
        device=device,
        axes=list(made.axes.items()),
        held=[names.label(made.scenario, axis, value) for axis, value in made.held.items()],
        cells=made.cells,
        of=made.of,
        rounds=made.rounds,
        lines=[_line(effect, made, found) for effect in [*single, *(pair for pair in pairs if pair in shown)]],
        left=tally(effect.verdict for effect in pairs if effect not in shown),
        leading=[_line(effect, made, found) for effect in leading[:NAMED]],
        more=max(0, len(leading) - NAMED),
        depending=_line(depending, made, found) if depending else None,
        judged=len(made.effects) if made.judged else 0,
        moderated=made.moderated,
        unchecked=made.unchecked,
    )


def _beyond(effect: Effect) -> bool:
    return effect.verdict in (Verdict.SLOWER, Verdict.FASTER)


def _prominence(effect: Effect) -> tuple[bool, float]:
    """Beyond the margin first, then by the distance from 1."""
    return not _beyond(effect), -abs(math.log(effect.estimate.value))


def _line(effect: Effect, made: Attribution, found: Lookup) -> Line:
    first = effect.changes[0]
    return Line(
        term=_against(made.scenario, first)
        if effect.parts is None
        else " × ".join(names.label(made.scenario, change.axis, change.level) for change in effect.changes),
        estimate=effect.estimate,
        factor=format.times(effect.estimate),
        interval=format.between(effect.estimate.interval),
        verdict=effect.verdict,
        withheld=effect.withheld,
        depends=_depends(effect, made.scenario),
        pythons=_pythons(first, found) if effect.parts is None else None,
    )


def _depends(effect: Effect, scenario: Scenario) -> Dependence | None:
    if effect.parts is None:
        return None
    first, second = effect.changes
    return Dependence(
        what=_against(scenario, first),
        base=names.label(scenario, second.axis, second.base),
        level=names.label(scenario, second.axis, second.level),
        alone=format.number(effect.parts.alone),
        beside=format.number(effect.parts.beside),
        together=format.number(effect.parts.together),
    )


def _against(scenario: Scenario, change: Change) -> str:
    return " against ".join(names.label(scenario, change.axis, value) for value in (change.level, change.base))


def _pythons(change: Change, found: Lookup) -> tuple[str, str] | None:
    if change.axis != ENVIRONMENT:
        return None
    one, two = (found.interpreters.get(name, "") for name in (change.level, change.base))
    return (one, two) if one and two and one != two else None
