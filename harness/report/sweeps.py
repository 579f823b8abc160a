"""Curves along a numeric axis and where they cross, as text. Nothing here is escaped yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.columns import Column, Side
from harness.analysis.crossings import Crossing
from harness.analysis.lookup import Lookup
from harness.analysis.statistics import Interval
from harness.analysis.sweeps import Race, Sweep, sweeps
from harness.analysis.tables import Table
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import format, names

#: So many crossings are told in sentences over the table.
SENTENCES = 4


@dataclass(frozen=True, slots=True)
class CrossingView:
    """One crossing: from `at` on, `after` takes less time than `before`.

    `low` and `high` are the ends of the interval, empty of a single round. Where one is no end, because the sweep ends
    before it, `opens_low` or `opens_high` is set, and on that side of it nothing is shown.
    """

    at: str
    low: str
    high: str
    opens_low: bool
    opens_high: bool
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RaceView:
    """One comparison along the sweep, from size `first` to `last`.

    `subject` and `base` are its sides, `context` is what both share. Without a crossing, `ahead` takes less time
    wherever that is shown; it is empty where it is shown nowhere. `unclear` are the sizes, from and to, at which it is
    not. Where they did different work, `different` says how, and nothing is looked for.
    """

    what: str
    subject: str
    base: str
    context: str
    first: str
    last: str
    crossings: Sequence[CrossingView]
    ahead: str
    unclear: Sequence[tuple[str, str]]
    different: str
    rounds: int

    @property
    def behind(self) -> str:
        """What takes longer where `ahead` takes less time."""
        return self.base if self.ahead == self.subject else self.subject


@dataclass(frozen=True, slots=True)
class SweepView:
    """The curves of one scenario along `axis`, in `place`: what its cells share, empty where it is the only one.

    `of` is what a size is counted in, the unit or else the axis. `sweep` holds the numbers. `withheld`: the control
    lies beyond the margin, so no crossing is told.
    """

    scenario: Scenario
    table: Table
    sweep: Sweep
    axis: str
    of: str
    place: str
    races: Sequence[RaceView]
    withheld: bool

    @property
    def told(self) -> list[tuple[RaceView, CrossingView]]:
        """The crossings that are told in sentences."""
        found = [(race, crossing) for race in self.races for crossing in race.crossings]
        return found[:SENTENCES]

    @property
    def more(self) -> int:
        """How many crossings are in the table alone."""
        return sum(len(race.crossings) for race in self.races) - len(self.told)


def views(table: Table, found: Lookup, margin: float) -> list[SweepView]:
    """The table's sweeps; `margin` is on the log scale."""
    withheld = found.control is not None and found.control.beyond(margin)
    return [_view(table, sweep, withheld=withheld) for sweep in sweeps(table, found)]


def size(value: float, sweep: Sweep) -> str:
    """A size with three digits; without decimals from 10 on, where all sizes of the sweep are whole."""
    if value in sweep.sizes:
        return f"{value:,.10g}"
    if value >= 10.0 and all(each.is_integer() for each in sweep.sizes):
        return f"{float(f'{value:.3g}'):,.0f}"
    return format.number(value)


def _view(table: Table, sweep: Sweep, *, withheld: bool) -> SweepView:
    device = [sweep.device.value] if table.several_devices else []
    shared = [
        names.label(table.scenario, axis, sweep.shared[axis]) for axis in names.varying(table) if axis in sweep.shared
    ]
    return SweepView(
        scenario=table.scenario,
        table=table,
        sweep=sweep,
        axis=sweep.axis,
        of=sweep.unit or sweep.axis,
        place=", ".join([*device, *shared]),
        races=[] if withheld else [_race(table, sweep, race) for race in sweep.races],
        withheld=withheld and bool(sweep.races),
    )


def _race(table: Table, sweep: Sweep, race: Race) -> RaceView:
    subject, base, context = _sides(table, race.column)
    lead, ahead = race.lead, ""
    if lead and not lead.crossings:
        ahead = subject if lead.above else base if lead.below else ""
    return RaceView(
        what=names.what(table, race.column),
        subject=subject,
        base=base,
        context=context,
        first=size(race.sizes[0], sweep),
        last=size(race.sizes[-1], sweep),
        crossings=[_crossing(each, sweep, subject, base) for each in lead.crossings] if lead else [],
        ahead=ahead,
        unclear=[_ends(each, sweep) for each in lead.unclear] if lead else [],
        different=race.different,
        rounds=race.rounds,
    )


def _crossing(crossing: Crossing, sweep: Sweep, subject: str, base: str) -> CrossingView:
    before, after = (base, subject) if crossing.rises else (subject, base)
    low, high = _ends(crossing.interval, sweep) if crossing.interval else ("", "")
    return CrossingView(
        at=size(crossing.at, sweep),
        low=low,
        high=high,
        opens_low=crossing.opens_low,
        opens_high=crossing.opens_high,
        before=before,
        after=after,
    )


def _ends(interval: Interval, sweep: Sweep) -> tuple[str, str]:
    return size(interval.low, sweep), size(interval.high, sweep)


def _sides(table: Table, head: Column) -> tuple[str, str, str]:
    """What the two sides of a comparison are called, and what they share."""
    assert head.other is not None, "a comparison has two sides"
    one, other = _facts(head.side), _facts(head.other)
    known = (ENVIRONMENT, *table.column_axes)
    subject, base = (
        " ".join(names.label(table.scenario, axis, facts[axis]) for axis in known if one[axis] != other[axis])
        for facts in (one, other)
    )
    shared = [names.label(table.scenario, axis, one[axis]) for axis in known if one[axis] == other[axis]]
    return subject, base, ", ".join(shared)


def _facts(side: Side) -> Mapping[str, str]:
    return {ENVIRONMENT: side.environment, **side.axes}
