"""The charts of a report: each table's comparisons, times, sweeps, effects and phases, and how its launches went."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from harness.model.scenario import Scenario
from harness.report.charts import course, effects, phases, ratios, sweeps, times
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
    def picture(kind: Kind, chart: Chart, draw: Callable[[Chart, Words], Specification], device: str = "") -> Picture:
        words = _words(say, kind, chart, view.scenario)
        name = "-".join([kind.value, stem, *([device] if device else [])])
        return Picture(kind, view.scenario.name, name, words, draw(chart, words), device)

    margin = document.run.plan.margin
    control = document.control.estimate if document.control else None
    compared = view.comparisons and ratios.ratios(view.comparisons, control, margin)
    if compared:
        yield picture(Kind.RATIOS, compared, ratios.specification)
    timed = times.times(view.table)
    if timed:
        yield picture(Kind.TIMES, timed, times.specification)
    swept = [each for each in document.sweeps if each.scenario.name == view.scenario.name]
    for number, axis in enumerate(dict.fromkeys(each.axis for each in swept), 1):
        curves = sweeps.curves([each for each in swept if each.axis == axis], view.rounds)
        if curves:
            drawn = picture(Kind.SWEEPS, curves, sweeps.specification)
            yield drawn if number == 1 else replace(drawn, name=f"{drawn.name}-{number}")
    for each in document.attributions:
        if each.scenario.name == view.scenario.name:
            yield picture(Kind.EFFECTS, effects.effects(each, margin), effects.specification, each.device)
    stacked = phases.stacks(view.cells.measured)
    if stacked:
        yield picture(Kind.PHASES, stacked, phases.specification)
    went = course.course(view.timeline, margin)
    if went:
        yield picture(Kind.COURSE, went, course.specification)


def _words(say: Any, kind: Kind, chart: object, scenario: Scenario) -> Words:
    def told(part: str) -> str:
        return str(getattr(say, f"{kind.value}_{part}")(chart, scenario)).strip()

    return Words(
        title=told("title"),
        notes=[line.strip() for line in told("notes").splitlines() if line.strip()],
        axis=told("axis"),
        alt=told("alt"),
    )
