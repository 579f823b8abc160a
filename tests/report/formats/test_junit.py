"""JUnit XML, checked against the schema that Jenkins' plugins have.

junit-10.xsd is of Jenkins' xUnit plugin (MIT licence, in its head), as pytest's source package carries it.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import xmlschema

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.scenario import MACHINE
from harness.report.formats.junit import render
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import broken, cell, cells, launch, rounds, run
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")


def read_cases(planned, launches) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(render(Results(planned, launches)))
    return {case.get("name", ""): case for case in root.iter("testcase")}


def read_case(planned, launches) -> ElementTree.Element:
    (case,) = read_cases(planned, launches).values()
    return case


def outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if not child.tag.startswith("system-")), "")


def test_it_is_what_jenkins_schema_says_with_the_counts_of_its_cases():
    for stored in (example(), hostile(), nothing(), one_launch(), (run([]), [])):
        SCHEMA.validate(render(Results(*stored)))
    assert read_cases(run([]), []) == {}
    (suite,) = ElementTree.fromstring(render(Results(*hostile())))
    assert suite.get("name") == HOSTILE
    root = ElementTree.fromstring(render(Results(*example())))
    (suite,) = root
    outcomes = Counter(outcome(case) for case in root.iter("testcase"))
    for element in (root, suite):
        assert int(element.get("tests", "")) == sum(outcomes.values())
        assert (int(element.get("failures", "")), int(element.get("errors", ""))) == (
            outcomes["failure"],
            outcomes["error"],
        )
    assert int(suite.get("skipped", "")) == outcomes["skipped"] > 0


def test_what_became_of_a_cell():
    for status, expected in (
        (Status.FAILED, "error"),
        (Status.TIMEOUT, "error"),
        (Status.OOM, "error"),
        (Status.CPU_FALLBACK, "failure"),
        (Status.OTHER_GPU, "failure"),
        (Status.NOT_AVAILABLE, "skipped"),
        (Status.INTERRUPTED, "skipped"),
    ):
        case = read_case(run([cell()]), [broken(cell(), status, error="its reason", stderr="its end")])
        assert outcome(case) == expected, status
        assert "its reason" in case[0].get("message", "")
        assert case.findtext("system-err") == "its end"
    # a cell that lost some launches has its time all the same
    for status, expected in ((Status.FAILED, "error"), (Status.INTERRUPTED, "")):
        case = read_case(run([cell()]), [launch(cell()), broken(cell(), status, 2, error="its reason")])
        assert (outcome(case), case.get("time")) == (expected, "0.010000000"), status


def test_what_became_of_comparisons_with_and_without_a_clear_verdict():
    cases = read_cases(*example())
    slower = cases["TF 2 against TF 1: fit: tf2.0 vs tf1.14, eager"]
    assert outcome(slower) == "failure"
    assert "tf2.0 vs tf1.14, eager: slower, time ratio 1.35×" in slower[0].get("message", "")
    assert outcome(cases["TF 2 against TF 1: train_on_batch: tf2.0 vs tf1.14, eager"]) == ""
    assert outcome(cases["graph against eager: fit: graph vs eager, tf1.14"]) == ""
    for seconds, count, works, parts in (
        # unclear, with what would settle it
        (0.0103, 5, (1, 1), [": unclear, "]),
        (0.01, 5, (6, 5), [": different work; size: difference of 1 (tf1.14, tf2.0)"]),
        (0.01, 2, (1, 1), [": no verdict, ", "; too few rounds"]),
    ):
        times = dict(zip(cells(modes=["graph"]), [0.010, seconds], strict=True))
        work = dict(zip(times, works, strict=True))
        launches = [replace(launch, fingerprint={"size": work[launch.cell]}) for launch in rounds(times, count, 0.02)]
        (case,) = (case for name, case in read_cases(run(times), launches).items() if name.startswith("TF 2"))
        assert outcome(case) == "skipped"
        assert all(part in case[0].get("message", "") for part in parts), parts


def test_a_claim_passes_whatever_its_answer_is_and_tells_it():
    """A claim is a question: one that is confirmed is no failure, nor is one that is not."""
    claimed = run([WORSE, BETTER], scenarios=[claimed_scenario()])
    for seconds, expected in ((0.03, ""), (0.01, ""), (0.005, ""), (None, "skipped")):
        launches = rounds({BETTER: 0.01, **({WORSE: seconds} if seconds else {})}, spread=0.0)
        SCHEMA.validate(render(Results(claimed, launches)))
        case = read_cases(claimed, launches)["T#33487: fit takes three times as long in eager mode"]
        assert outcome(case) == expected, seconds
        assert "".join(case.itertext()).strip().startswith("T#33487 reports: ")


def test_a_claim_has_a_case_for_each_machine_of_a_merged_run():
    seconds = {
        replace(member, axes={MACHINE: machine, **member.axes}): taken
        for machine in "ab"
        for member, taken in ((BETTER, 0.01), (WORSE, 0.03))
    }
    claimed = claimed_scenario()
    merged = run(seconds, scenarios=[replace(claimed, axes={MACHINE: ["a", "b"], **claimed.axes})])
    names = [name for name in read_cases(merged, rounds(seconds, spread=0.0)) if name.startswith("T#33487")]
    assert names == [f"T#33487: fit takes three times as long in eager mode, on {machine}" for machine in "ab"]
