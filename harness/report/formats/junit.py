"""JUnit XML for Jenkins: one suite per scenario, with one case per claim, cell and comparison.

The time of a cell is its seconds per step. `error` means that a launch failed. `failure` means that a launch ran on a
device other than the requested one, or that a comparison has the verdict slower or more. `skipped` means that there is
no result.

The case of an upstream claim passes with any clear outcome, which is its output. Otherwise, it is skipped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.analysis.cells import CellResult
from harness.analysis.claims import ClaimResult
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.launch import Clock, Status
from harness.model.run import Run
from harness.model.scenario import GROWTH, STEP
from harness.report import format
from harness.report.comparisons import ComparisonLine, list_all_lines
from harness.report.escape import clean, escape_terminal
from harness.report.names import measure
from harness.report.sections import claims, no_results
from harness.report.sections.remarks import make_remark

_STATUS_OUTCOMES = {
    Status.FAILED: "error",
    Status.TIMEOUT: "error",
    Status.OOM: "error",
    Status.CPU_FALLBACK: "failure",
    Status.OTHER_GPU: "failure",
    Status.NOT_AVAILABLE: "skipped",
    Status.INTERRUPTED: "skipped",
}
_VERDICT_OUTCOMES: Mapping[Verdict | None, str] = {
    Verdict.FASTER: "",
    Verdict.LESS: "",
    Verdict.SAME: "",
    Verdict.SLOWER: "failure",
    Verdict.MORE: "failure",
}


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case.

    `outcome` is the name of its result element; empty if the case passed. `seconds` is None if it has no time.
    """

    name: str
    outcome: str = ""
    kind: str = ""
    message: str = ""
    stderr: str = ""
    stdout: str = ""
    seconds: float | None = None

    def element(self, scenario: str) -> Element:
        element = Element("testcase", name=escape_terminal(self.name), classname=escape_terminal(scenario))
        if self.seconds is not None:
            element.set("time", f"{self.seconds:.9f}")
        if self.outcome:
            SubElement(element, self.outcome, type=self.kind, message=self.message).text = self.message
        if self.stdout:
            SubElement(element, "system-out").text = clean(self.stdout)
        if self.stderr:
            SubElement(element, "system-err").text = clean(self.stderr)
        return element


def render(results: Results) -> str:
    """Return the run as one document. Its suites are in the order of the run's scenarios."""
    run = results.run
    cases = [
        *((result.scenario.name, _build_claim_case(results, result)) for result in results.claims),
        *((result.cell.scenario, _build_cell_case(results, result)) for result in results.cells),
        *((line.table.scenario.name, _build_comparison_case(results, line)) for line in list_all_lines(results)),
    ]
    root = Element("testsuites", name=escape_terminal(run.id))
    for scenario in run.scenarios:
        root.append(_make_suite(run, scenario.name, [case for name, case in cases if name == scenario.name]))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    indent(root)
    text = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _name_case(name: str, run: Run) -> str:
    """Return the name of a case. It is the same in every run with the same clock.

    Tools that compare runs match results by this name.
    """
    return f"{name}, CPU time" if run.plan.clock is Clock.CPU else name


def _build_claim_case(results: Results, result: ClaimResult) -> _Case:
    outcome, text = result.at.outcome, escape_terminal(claims.format_claim(results, result))
    machine = f", on {result.machine}" if result.machine else ""
    name = _name_case(f"{result.claim.issue.short}: {result.claim.reported}{machine}", results.run)
    is_answered = outcome.holds or outcome.is_gone
    return _Case(name, stdout=text) if is_answered else _Case(name, "skipped", outcome.value, text)


def _build_comparison_case(results: Results, line: ComparisonLine) -> _Case:
    verdict = line.compared.verdict
    # the name of a `pick` comparison already starts with the name of its entry
    name = line.name if line.entry.pick else f"{line.entry.name}: {line.name}"
    name = _name_case(name if line.table.quantity == STEP else f"{name}: {measure(line.table)}", results.run)
    ratio = "" if verdict is Verdict.DIFFERENT_WORK else format.ratio(line.compared.ratio)
    kind = "difference" if line.table.quantity == GROWTH else "ratio"
    text = ", ".join(filter(None, [line.verdict, ratio and f"{measure(line.table)} {kind} {ratio}"]))
    remarks = make_remark(results, line.compared, of=line.table.quantity)
    message = f"{line.name}: {text}{f'; {remarks}' if remarks else ''}"
    return _Case(name, _VERDICT_OUTCOMES.get(verdict, "skipped"), line.verdict, escape_terminal(message))


def _build_cell_case(results: Results, result: CellResult) -> _Case:
    seconds = result.estimate.value if result.estimate else None
    cause, name = results.causes.get(result.cell), _name_case(result.name, results.run)
    # a cell with a result passes, unless some of its launches failed
    if cause is None or (cause.partial and _STATUS_OUTCOMES[cause.status] == "skipped"):
        return _Case(name, seconds=seconds)
    advice = no_results.advise(results, cause)
    reason = no_results.explain(cause).rstrip(".")
    message = f"{cause.status}: {reason}.{f' {advice}' if advice else ''}"
    return _Case(
        name,
        _STATUS_OUTCOMES[cause.status],
        cause.status.value,
        escape_terminal(message),
        cause.stderr,
        seconds=seconds,
    )


def _make_suite(run: Run, scenario: str, cases: Sequence[_Case]) -> Element:
    outcomes = Counter(case.outcome for case in cases)
    suite = Element(
        "testsuite",
        name=escape_terminal(scenario),
        tests=str(len(cases)),
        failures=str(outcomes["failure"]),
        errors=str(outcomes["error"]),
        skipped=str(outcomes["skipped"]),
        # the schema allows three decimals for the time of a suite, and any number of decimals for a case
        time=f"{sum(case.seconds or 0.0 for case in cases):.3f}",
        timestamp=escape_terminal(run.started),
    )
    facts = {
        "run": run.id,
        "harness": run.harness,
        "reference": run.reference,
        "margin": format.share(run.plan.margin),
        "clock": run.plan.clock.value,
        "seed": str(run.plan.seed),
        "cpu": str(run.host.get("cpu") or ""),
    }
    properties = SubElement(suite, "properties")
    for name, value in facts.items():
        SubElement(properties, "property", name=name, value=escape_terminal(value))
    suite.extend(case.element(scenario) for case in cases)
    return suite
