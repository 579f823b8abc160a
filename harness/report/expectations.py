"""What the sources state, against what was observed, as tables of text. Nothing here is escaped yet."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.expectations import Check, Standing, Statement, statements
from harness.analysis.folding import fold
from harness.analysis.lookup import Lookup
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import names, observed
from harness.report.observed import Entry, Line, Told

# what a device is called among the axes
_DEVICE = "device"

#: The headings before the environments.
LABELS = ("observation", "where", "stated")


@dataclass(frozen=True, slots=True)
class StatementsView:
    """What one scenario's source states."""

    scenario: Scenario
    told: Told


@dataclass(frozen=True, slots=True)
class Expectations:
    """The statements that could be checked, scenario by scenario.

    Each is counted in every cell that it is about: `total` times in all, and by how it stands, in the order of
    `Standing`.
    """

    views: Sequence[StatementsView]
    counts: Sequence[tuple[str, int]]

    @property
    def total(self) -> int:
        """How often a statement was checked."""
        return sum(count for _, count in self.counts)


def expectations(run: Run, found: Lookup) -> Expectations | None:
    """What the sources state, against what was observed; None where nothing could be checked."""
    checked = statements(run, found)
    standings = Counter(check.standing for statement in checked for check in statement.checks)
    by_scenario: dict[str, list[Statement]] = {}
    for statement in checked:
        by_scenario.setdefault(statement.scenario.name, []).append(statement)
    if not checked:
        return None
    return Expectations(
        views=[_view(run, members) for members in by_scenario.values()],
        counts=[(standing.value, standings[standing]) for standing in Standing if standings[standing]],
    )


def _view(run: Run, members: Sequence[Statement]) -> StatementsView:
    present = {check.cell.environment for statement in members for check in statement.checks}
    environments = [known.name for known in run.environments if known.name in present]
    lines = [line for statement in members for line in _lines(statement, environments)]
    return StatementsView(members[0].scenario, observed.plain(LABELS, environments, lines))


def _lines(statement: Statement, environments: Sequence[str]) -> list[Line]:
    """A line for the statement, or several where it does not stand alike in all cells of an environment."""
    scenario, expectation = statement.scenario, statement.expectation
    cells = [check.cell for check in statement.checks]
    axes = [
        axis for axis in scenario.axes if axis not in expectation.when and len({cell.axes[axis] for cell in cells}) > 1
    ]
    # a device is told apart like an axis, after the header's own
    said = {
        ((*(check.cell.axes[axis] for axis in axes), check.cell.device.value), check.cell.environment): check
        for check in statement.checks
    }
    folded = fold(said, [*axes, _DEVICE], environments, lambda check: _entry(check).text)
    when = [names.label(scenario, axis, value) for axis, value in expectation.when.items()]
    lines = []
    for line in folded:
        where = ", ".join([*when, *(_label(scenario, axis, value) for axis, value in line.axes.items())])
        name = ", ".join(filter(None, [expectation.observation, where]))
        entries = [_entry(check) if check else None for check in line.entries]
        lines.append(Line(name, [expectation.observation, where, observed.text(expectation.value)], entries))
    return lines


def _label(scenario: Scenario, axis: str, value: str) -> str:
    return value if axis == _DEVICE else names.label(scenario, axis, value)


def _entry(check: Check) -> Entry:
    if check.standing is Standing.AS_STATED:
        return Entry(Standing.AS_STATED.value)
    if check.observed is None:
        return Entry(Standing.NOT_OBSERVED.value, is_value=False, stands_out=True)
    told = observed.seen(check.observed)
    return Entry(f"{Standing.VARIES.value}: {told}" if check.observed.varies else told, stands_out=True)
