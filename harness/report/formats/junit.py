"""JUnit XML as Jenkins reads it: a suite a scenario, in it a case for each cell and for each comparison.

A cell's time is its seconds per step. `error` is a launch that went wrong, `failure` one that did not do what was
asked, and a comparison that came out slower; `skipped` is what says nothing either way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from harness.analysis.cells import CellResult
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.launch import Status
from harness.model.run import Run
from harness.report import format
from harness.report.comparisons import ComparisonLine, lines
from harness.report.escape import clean, plain
from harness.report.sections import missing
from harness.report.sections.scenarios import remark

_ENDED = {
    Status.FAILED: "error",
    Status.TIMEOUT: "error",
    Status.OOM: "error",
    Status.CPU_FALLBACK: "failure",
    Status.NOT_AVAILABLE: "skipped",
    Status.INTERRUPTED: "skipped",
}
_FOUND = {Verdict.FASTER: "", Verdict.SAME: "", Verdict.SLOWER: "failure"}


@dataclass(frozen=True, slots=True)
class _Case:
    """`outcome` names the element in it, empty where it passed; `seconds` is None for one that has no time."""

    name: str
    outcome: str = ""
    kind: str = ""
    message: str = ""
    stderr: str = ""
    seconds: float | None = None


def render(results: Results) -> str:
    """The run as one document, its suites in the run's order."""
    run = results.run
    compared = [line for table in results.tables for line in lines(table)]
    root = ElementTree.Element("testsuites", name=plain(run.id))
    for scenario in run.scenarios:
        cells = [_measured(results, each) for each in results.cells if each.cell.scenario == scenario.name]
        judged = [_judged(results, each) for each in compared if each.table.scenario.name == scenario.name]
        root.append(_suite(run, scenario.name, [*cells, *judged]))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _judged(results: Results, line: ComparisonLine) -> _Case:
    verdict = line.compared.verdict
    # a pick's words have the name of its entry in front already
    name = line.name if line.entry.pick else f"{line.entry.name}: {line.name}"
    ratio = "" if verdict is Verdict.DIFFERENT_WORK else format.ratio(line.compared.takes)
    told = ", ".join(filter(None, [line.verdict, ratio and f"time ratio {ratio}"]))
    remarks = remark(results, line.compared)
    message = f"{line.name}: {told}{f'; {remarks}' if remarks else ''}"
    return _Case(name, _FOUND.get(verdict, "skipped") if verdict else "skipped", line.verdict, plain(message))


def _measured(results: Results, result: CellResult) -> _Case:
    seconds = result.estimate.value if result.estimate else None
    cause = results.causes.get(result.cell)
    # a cell with a number passes unless some of its launches went wrong
    if cause is None or (cause.partial and _ENDED[cause.status] == "skipped"):
        return _Case(result.name, seconds=seconds)
    advice = missing.advice(results.run, cause)
    reason = missing.reason(cause).rstrip(".")
    message = f"{cause.status}: {reason}.{f' {advice}' if advice else ''}"
    return _Case(result.name, _ENDED[cause.status], cause.status.value, plain(message), cause.stderr, seconds)


def _suite(run: Run, name: str, cases: Sequence[_Case]) -> ElementTree.Element:
    outcomes = [case.outcome for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        name=plain(name),
        tests=str(len(cases)),
        failures=str(outcomes.count("failure")),
        errors=str(outcomes.count("error")),
        skipped=str(outcomes.count("skipped")),
        # the schema has three decimals for a suite, and any number for a case
        time=f"{sum(case.seconds or 0.0 for case in cases):.3f}",
        timestamp=plain(run.started),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in _properties(run):
        ElementTree.SubElement(properties, "property", name=key, value=plain(value))
    for case in cases:
        suite.append(_element(case, name))
    return suite


def _properties(run: Run) -> Iterable[tuple[str, str]]:
    yield "run", run.id
    yield "harness", run.harness
    yield "reference", run.reference
    yield "margin", format.share(run.plan.margin)
    yield "seed", str(run.plan.seed)
    yield "cpu", str(run.host.get("cpu") or "")


def _element(case: _Case, scenario: str) -> ElementTree.Element:
    element = ElementTree.Element("testcase", name=plain(case.name), classname=plain(scenario))
    if case.seconds is not None:
        element.set("time", f"{case.seconds:.9f}")
    if case.outcome:
        outcome = ElementTree.SubElement(element, case.outcome, type=case.kind, message=case.message)
        outcome.text = case.message
    if case.stderr:
        ElementTree.SubElement(element, "system-err").text = clean(case.stderr)
    return element
