"""The charts of a report: for each table its comparisons, its times and its phases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from harness.model.scenario import Scenario
from harness.report.charts import phases, ratios, times
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Kind, Picture, Words, file_names
from harness.report.document import Document, TableView
from harness.report.escape import plain
from harness.report.templates import environment

Chart = TypeVar("Chart")


def pictures(document: Document, templates: Path | None = None) -> list[Picture]:
    """The charts of the document's tables, in their order. `templates` is the folder of the templates."""
    say = environment(plain, templates).get_template("charts.j2").module
    stems = file_names(view.scenario.name for view in document.tables)
    return [
        picture for view in document.tables for picture in _of_table(document, view, stems[view.scenario.name], say)
    ]


def _of_table(document: Document, view: TableView, stem: str, say: Any) -> Iterator[Picture]:
    def picture(kind: Kind, chart: Chart, draw: Callable[[Chart, Words], Specification]) -> Picture:
        words = _words(say, kind, chart, view.scenario)
        return Picture(kind, view.scenario.name, f"{kind.value}-{stem}", words, draw(chart, words))

    control = document.control.estimate if document.control else None
    compared = view.comparisons and ratios.ratios(view.comparisons, control, document.run.plan.margin)
    if compared:
        yield picture(Kind.RATIOS, compared, ratios.specification)
    timed = times.times(view.table)
    if timed:
        yield picture(Kind.TIMES, timed, times.specification)
    stacked = phases.stacks(view.cells.measured)
    if stacked:
        yield picture(Kind.PHASES, stacked, phases.specification)


def _words(say: Any, kind: Kind, chart: object, scenario: Scenario) -> Words:
    def told(part: str) -> str:
        return str(getattr(say, f"{kind.value}_{part}")(chart, scenario)).strip()

    return Words(
        title=told("title"),
        notes=[line.strip() for line in told("notes").splitlines() if line.strip()],
        axis=told("axis"),
        alt=told("alt"),
    )
