"""The report as JSON: the run and its analysis, in the types of `harness.analysis`.

Times are in seconds. Scenarios are identified by name, and results of cells by a name that is the same in every run.
Each printed number with several settings has its own scenario, and the settings are an axis of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.answers import Answer
from harness.analysis.attribution import Attribution
from harness.analysis.behaviour import SettingDifference
from harness.analysis.cells import CellResult, Missing, cell_name
from harness.analysis.claims import ClaimResult
from harness.analysis.comparisons import Compared
from harness.analysis.control import Control
from harness.analysis.interference import RunInterference
from harness.analysis.interleaving import Interleaving
from harness.analysis.observations import Statement
from harness.analysis.quality import Grade
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.sweeps import MeasuredSweep
from harness.analysis.verdicts import Verdict
from harness.model.run import Run
from harness.model.scenario import STEP
from harness.report.comparisons import ComparisonLine, list_all_lines
from harness.report.escape import dump_json
from harness.report.sections import attribution, claims, machines, main_results, measurement, settings
from harness.report.sections.remarks import make_remark

#: The version of the schema. In version 2, ratios were as in `harness.analysis`. In version 3, they are as in the
#: report: time(cell) / time(other).
SCHEMA = 3


@dataclass(frozen=True, slots=True)
class Description:
    """A main result of the report: its sentence, and the comparisons that it summarizes, the lowest ratio first.

    `comparison` is the comparison's name in the scenario's header, `along` is the axis (or `environment`) that differs,
    and `of` is the quantity.
    """

    text: str
    scenario: str
    comparison: str
    along: str
    findings: Sequence[Compared]
    of: str = STEP


@dataclass(frozen=True, slots=True)
class ComparisonFacts:
    """A comparison of a scenario. `comparison`, `along` and `of` are from the header, `remarks` are from the report.

    For memory growth, the ratio is a difference in bytes per call: the growth of `cell` minus the growth of `other`.
    """

    scenario: str
    comparison: str
    along: str
    what: str
    compared: Compared
    remarks: str
    of: str = STEP


@dataclass(frozen=True, slots=True)
class Quantified:
    """The value of a quantity other than the step time, for a cell: seconds, bytes, bytes per call, or a count.

    `name` is the name of the cell. If there is no value, `estimate` is None.
    """

    name: str
    of: str
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim of an upstream issue: the report's sentence about it, and its result as numbers.

    `issue` is the short name of the issue, and `url` is its address.
    """

    text: str
    issue: str
    url: str
    result: ClaimResult


@dataclass(frozen=True, slots=True)
class Accounted:
    """The effects of a scenario's changes, as the report's sentence and as numbers."""

    text: str
    attribution: Attribution


@dataclass(frozen=True, slots=True)
class UnrequestedDifference:
    """A TensorFlow setting that differs between compared cells, although the request didn't select it."""

    text: str
    difference: SettingDifference


@dataclass(frozen=True, slots=True)
class OnMachine:
    """Facts about the results of one machine in a merged run. `name` is its value of the axis `on machine`."""

    name: str
    control: Control | None
    disturbance: RunInterference
    turns: Interleaving | None


@dataclass(frozen=True, slots=True)
class Agreed:
    """A comparison that several machines measured: their verdicts, and whether they agree (null if unclear)."""

    scenario: str
    what: str
    verdicts: Mapping[str, Verdict | None]
    agrees: bool | None
    of: str = STEP


@dataclass(frozen=True, slots=True)
class Measurement:
    """How reliable the measurement is, with the facts behind the grade as in the report's line."""

    grade: Grade
    facts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a report as data. Keys may be added within a version of `schema`.

    `measurement` is null if nothing was timed.
    """

    schema: int
    run: Run
    control: Control | None
    answers: Sequence[Description]
    cells: Sequence[CellResult]
    comparisons: Sequence[ComparisonFacts]
    attributions: Sequence[Accounted]
    sweeps: Sequence[MeasuredSweep]
    statements: Sequence[Statement]
    missing: Sequence[Missing]
    disturbance: RunInterference
    turns: Interleaving | None
    settings: Sequence[UnrequestedDifference] = ()
    quantities: Sequence[Quantified] = ()
    claims: Sequence[Claimed] = ()
    machines: Sequence[OnMachine] = ()
    agreements: Sequence[Agreed] = ()
    measurement: Measurement | None = None


def render(results: Results) -> str:
    """Return the report as JSON in the format of docs/schema/report.v3.schema.json."""
    return dump_json(build(results))


def build(results: Results) -> Document:
    """Return the report as data, with unescaped strings."""
    with_settings = [results, *results.by_setting]
    return Document(
        schema=SCHEMA,
        run=results.run,
        control=results.control,
        answers=[_describe_answer(results, answer) for answer in results.answers],
        cells=[cell for entry in with_settings for cell in entry.cells],
        comparisons=[_describe_comparison(entry, line) for entry in with_settings for line in list_all_lines(entry)],
        attributions=[
            Accounted(attribution.describe_effects(breakdown, results.run.plan), breakdown)
            for breakdown in results.attributions
        ],
        sweeps=[sweep for _, sweep in results.sweeps],
        statements=results.statements,
        missing=results.missing,
        disturbance=results.disturbance,
        turns=results.turns,
        settings=[UnrequestedDifference(settings.describe_setting(setting), setting) for setting in results.settings],
        quantities=[
            Quantified(cell_name(cell), table.quantity, value.estimate)
            for entry in with_settings
            for table in entry.all_tables
            if table.quantity != STEP
            for cell, value in table.cells().items()
        ],
        claims=[
            Claimed(claims.format_claim(results, result), result.claim.issue.short, result.claim.issue.url, result)
            for result in results.claims
        ],
        machines=[
            OnMachine(name, machine.control, machine.disturbance, machine.turns)
            for name, machine in results.machines.items()
        ],
        agreements=[
            Agreed(
                agreement.table.scenario.name,
                machines.name_sides(agreement),
                agreement.verdicts,
                agreement.agrees,
                agreement.table.quantity,
            )
            for agreement in results.agreements
        ],
        measurement=(Measurement(results.quality.grade, measurement.list_facts(results)) if results.quality else None),
    )


def _describe_comparison(results: Results, line: ComparisonLine) -> ComparisonFacts:
    return ComparisonFacts(
        scenario=line.table.scenario.name,
        comparison=line.entry.name,
        along=line.entry.along,
        what=line.what,
        compared=line.compared,
        remarks=make_remark(results, line.compared, of=line.table.quantity),
        of=line.table.quantity,
    )


def _describe_answer(results: Results, answer: Answer) -> Description:
    return Description(
        text=main_results.describe_answer(results.run, answer),
        scenario=answer.table.scenario.name,
        comparison=answer.comparison.name,
        along=answer.comparison.along,
        findings=[finding.compared for finding in answer.findings],
        of=answer.table.quantity,
    )
