"""The charts of a report, by what they show, each under the name of its file."""

import re
from collections.abc import Iterable, Sequence

from harness.analysis.attribution import Attribution
from harness.analysis.results import Results
from harness.analysis.sweeps import MeasuredSweep
from harness.analysis.tables import ScenarioTable
from harness.model.scenario import Scenario
from harness.report.charts import course as course_chart
from harness.report.charts import forest
from harness.report.charts import phases as phases_chart
from harness.report.charts import sweeps as sweeps_chart
from harness.report.charts import times as times_chart
from harness.report.charts.picture import Picture
from harness.report.comparisons import ComparisonLine

#: Longer names of scenarios are cut in a file's name.
NAME_CHARACTERS = 60


def ratios(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> list[Picture]:
    """The comparisons of a table; nothing where none did the same work."""
    name, control = _name(results, "ratios", table.scenario), results.found.control
    estimate, margin = control.estimate if control else None, results.run.plan.margin
    return _any(forest.comparisons(name, table.scenario, compared, estimate, margin))


def times(results: Results, table: ScenarioTable) -> list[Picture]:
    """The times of a table."""
    return _any(times_chart.times(_name(results, "times", table.scenario), table))


def sweeps(results: Results, table: ScenarioTable, swept: Sequence[MeasuredSweep]) -> list[Picture]:
    """The curves of one table along each numeric axis, with their crossings."""
    axes = dict.fromkeys(each.axis for each in swept)
    return [
        sweeps_chart.curves(
            _name(results, "sweeps", table.scenario, str(number) if number > 1 else ""),
            table,
            [each for each in swept if each.axis == axis],
        )
        for number, axis in enumerate(axes, 1)
    ]


def effects(results: Results, made: Attribution) -> list[Picture]:
    """What accounts for the differences in one scenario, on one device."""
    table = next(table for table in results.tables if table.scenario.name == made.scenario.name)
    device = made.device.value if table.several_devices else ""
    return [forest.effects(_name(results, "effects", made.scenario, device), made, results.run.plan.margin, device)]


def phases(results: Results, table: ScenarioTable) -> list[Picture]:
    """What comes before the steady state, cell by cell."""
    measured = results.measured[table.scenario.name]
    return _any(phases_chart.phases(_name(results, "phases", table.scenario), table, measured))


def course(results: Results, table: ScenarioTable) -> list[Picture]:
    """A table's launches in order of time, each compared with the mean of its cell."""
    name, moments = _name(results, "course", table.scenario), results.timeline(table)
    return _any(course_chart.course(name, table.scenario, moments, results.run.plan.margin))


def _any(picture: Picture | None) -> list[Picture]:
    return [picture] if picture else []


def _name(results: Results, kind: str, scenario: Scenario, suffix: str = "") -> str:
    """The name of a chart's file, without its ending."""
    stems = file_names(table.scenario.name for table in results.tables)
    return "-".join(filter(None, [kind, stems[scenario.name], suffix]))


def file_names(scenarios: Iterable[str]) -> dict[str, str]:
    """For each scenario what stands for it in names of files: letters, digits, `-` and `_`, each different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for scenario in dict.fromkeys(scenarios):
        plain = re.sub(r"[^A-Za-z0-9_]+", "-", scenario)[:NAME_CHARACTERS].strip("-") or "scenario"
        name, number = plain, 1
        # file systems that do not tell upper from lower case hold both
        while name.lower() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.lower())
        found[scenario] = name
    return found
