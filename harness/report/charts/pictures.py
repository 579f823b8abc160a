"""The charts of a report, by what they show; each is drawn from the results and has its words."""

from collections.abc import Iterator, Sequence

from harness.analysis.attribution import Attribution
from harness.analysis.results import Results
from harness.analysis.sweeps import Sweep
from harness.analysis.tables import Table
from harness.report.charts.picture import Picture
from harness.report.comparisons import Line


def ratios(results: Results, table: Table, compared: Sequence[Line]) -> Iterator[Picture]:
    """The comparisons of a table; nothing where none did the same work."""
    yield from ()


def times(results: Results, table: Table) -> Iterator[Picture]:
    """The times of a table."""
    yield from ()


def sweeps(results: Results, table: Table, swept: Sequence[Sweep]) -> Iterator[Picture]:
    """The curves of one table along each numeric axis, with their crossings."""
    yield from ()


def effects(results: Results, made: Attribution) -> Iterator[Picture]:
    """What accounts for the differences in one scenario, on one device."""
    yield from ()


def phases(results: Results, table: Table) -> Iterator[Picture]:
    """What comes before the steady state, cell by cell."""
    yield from ()


def course(results: Results, table: Table) -> Iterator[Picture]:
    """A table's launches in order of time, each against the mean of its cell."""
    yield from ()
