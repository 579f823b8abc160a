"""JUnit XML as Jenkins reads it: a suite a scenario, in it a case for each cell and for each comparison.

A cell's time is its seconds per step. `error` is a launch that went wrong, `failure` one that did not do what was
asked, and a comparison that came out slower; `skipped` is what says nothing either way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from harness.analysis.verdicts import Verdict
from harness.model.launch import Launch, Status
from harness.model.run import Run
from harness.report import course, format
from harness.report.document import Absence
from harness.report.escape import clean, plain
from harness.report.formats.content import CellResult, ComparisonResult, gather
from harness.report.templates import environment

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
    """`outcome` names the element in it, empty where it passed; `seconds` is empty for one that has no time."""

    name: str
    outcome: str = ""
    kind: str = ""
    message: str = ""
    stderr: str = ""
    seconds: float | None = None


def render(run: Run, launches: Sequence[Launch]) -> str:
    """The run as one document, its suites in the run's order."""
    content = gather(run, launches)
    words: Any = environment(plain).get_template("formats.j2").module
    folder = run.folder or f"results/{run.id}"
    resolution = course.resolution(run, content.found)

    def judged(result: ComparisonResult) -> _Case:
        verdict, ratio = result.compared.verdict, result.compared.estimate
        gain = "" if verdict is Verdict.DIFFERENT_WORK else format.gain(ratio)
        said = words.comparison(result.name, result.compared, gain, resolution, run.plan.margin)
        outcome = _FOUND.get(verdict, "skipped") if verdict else "skipped"
        return _Case(result.full_name, outcome, verdict or "no verdict", str(said))

    def measured(result: CellResult) -> _Case:
        seconds = result.estimate.value if result.estimate else None
        cause = result.cause
        # a cell with a number passes unless some of its launches went wrong
        if cause is None or (cause.partial and _ENDED[cause.status] == "skipped"):
            return _Case(result.name, seconds=seconds)
        said = words.absent(Absence(cause, [], 0), folder)
        return _Case(result.name, _ENDED[cause.status], cause.status.value, str(said), cause.stderr, seconds)

    root = ElementTree.Element("testsuites", name=plain(run.id))
    for scenario in run.scenarios:
        cells = [measured(result) for result in content.cells if result.cell.scenario == scenario.name]
        compared = [judged(each) for each in content.comparisons if each.compared.cell.scenario == scenario.name]
        root.append(_suite(run, scenario.name, [*cells, *compared]))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


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
