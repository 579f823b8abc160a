"""JUnit XML, checked against the schema that Jenkins' plugins have.

junit-10.xsd is of Jenkins' xUnit plugin (MIT licence, in its head), as pytest's source package carries it.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.report.formats.junit import render
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import broken, cell, cells, launch, rounds, run
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")


def cases(text: str) -> dict[str, ElementTree.Element]:
    return {case.get("name", ""): case for case in ElementTree.fromstring(text).iter("testcase")}


def outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if not child.tag.startswith("system-")), "")


@pytest.mark.parametrize("made", [example, hostile, nothing, one_launch])
def test_it_is_what_jenkins_schema_says(made: Any) -> None:
    SCHEMA.validate(render(Results(*made())))


def test_a_run_of_nothing_has_an_empty_suite() -> None:
    text = render(Results(run([]), []))
    SCHEMA.validate(text)
    assert cases(text) == {}


def test_counts_are_those_of_the_cases() -> None:
    root = ElementTree.fromstring(render(Results(*example())))
    (suite,) = root
    found = Counter(outcome(case) for case in root.iter("testcase"))
    for element in (root, suite):
        assert int(element.get("tests", "")) == sum(found.values())
        assert (int(element.get("failures", "")), int(element.get("errors", ""))) == (found["failure"], found["error"])
    assert int(suite.get("skipped", "")) == found["skipped"] > 0


def test_a_cells_time_is_its_seconds_per_step() -> None:
    case = cases(render(Results(*one_launch())))["step tf1.14 cpu call=fit dtype=float32 mode=graph"]
    assert (case.get("time"), case.get("classname"), outcome(case)) == ("0.010000000", "step", "")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.FAILED, "error"),
        (Status.TIMEOUT, "error"),
        (Status.OOM, "error"),
        (Status.CPU_FALLBACK, "failure"),
        (Status.OTHER_GPU, "failure"),
        (Status.NOT_AVAILABLE, "skipped"),
        (Status.INTERRUPTED, "skipped"),
    ],
)
def test_what_became_of_a_cell(status: Status, expected: str) -> None:
    text = render(Results(run([cell()]), [broken(cell(), status, error="its reason", stderr="its end")]))
    (case,) = cases(text).values()
    assert outcome(case) == expected
    assert "its reason" in case[0].get("message", "")
    assert case.findtext("system-err") == "its end"


@pytest.mark.parametrize(("status", "expected"), [(Status.FAILED, "error"), (Status.INTERRUPTED, "")])
def test_a_cell_that_lost_some_launches_has_its_time_all_the_same(status: Status, expected: str) -> None:
    text = render(Results(run([cell()]), [launch(cell()), broken(cell(), status, 2, error="its reason")]))
    (case,) = cases(text).values()
    assert (outcome(case), case.get("time")) == (expected, "0.010000000")


def test_what_became_of_a_comparison() -> None:
    found = cases(render(Results(*example())))
    slower = found["TF 2 against TF 1: fit: tf2.0 vs tf1.14, eager"]
    assert outcome(slower) == "failure"
    assert "tf2.0 vs tf1.14, eager: slower, time ratio 1.35×" in slower[0].get("message", "")
    assert outcome(found["TF 2 against TF 1: train_on_batch: tf2.0 vs tf1.14, eager"]) == ""
    assert outcome(found["graph against eager: fit: graph vs eager, tf1.14"]) == ""


@pytest.mark.parametrize(
    ("seconds", "count", "works", "parts"),
    [
        # unclear, with what would settle it
        (0.0103, 5, (1, 1), [": unclear, "]),
        (0.01, 5, (6, 5), [": different work; size: difference of 1 (tf1.14, tf2.0)"]),
        (0.01, 2, (1, 1), [": no verdict, ", "; too few rounds"]),
    ],
)
def test_a_comparison_without_a_clear_verdict_is_skipped(seconds, count, works, parts) -> None:
    times = dict(zip(cells(modes=["graph"]), [0.010, seconds], strict=True))
    work = dict(zip(times, works, strict=True))
    launches = [replace(entry, fingerprint={"size": work[entry.cell]}) for entry in rounds(times, count, 0.02)]
    found = cases(render(Results(run(times), launches)))
    (case,) = (case for name, case in found.items() if name.startswith("TF 2"))
    assert outcome(case) == "skipped"
    assert all(part in case[0].get("message", "") for part in parts)


def test_hostile_names_are_shown_as_they_are() -> None:
    (suite,) = ElementTree.fromstring(render(Results(*hostile())))
    assert suite.get("name") == HOSTILE


# a few reports of many strings each: a report costs more than the strings in it
@settings(max_examples=5)
@given(st.lists(st.text(), min_size=20, unique=True))
def test_any_error_gives_xml_that_can_be_read(texts: list[str]) -> None:
    failed = [broken(cell(call=text), Status.FAILED, error=text, stderr=text) for text in texts]
    read = cases(render(Results(run([launch.cell for launch in failed]), failed)))
    assert all(outcome(case) == "error" for case in read.values())


def test_each_quantity_of_a_comparison_is_a_case_of_its_own() -> None:
    found = cases(render(Results(quantified_run("first call", "peak memory", "memory growth"), quantified())))
    told = {name: outcome(case) for name, case in found.items() if " vs " in name}
    assert told == {
        f"{of} of releases: tf2.0 vs tf1.14: {measure}": "failure"
        for of, measure in [
            ("first call", "first call time"),
            ("peak memory", "peak memory"),
            ("memory growth", "memory growth"),
        ]
    }


@pytest.mark.parametrize(("seconds", "expected"), [(0.03, ""), (0.01, ""), (0.005, ""), (None, "skipped")])
def test_a_claim_passes_whatever_its_answer_is_and_tells_it(seconds: float | None, expected: str) -> None:
    """A claim is a question: one that is confirmed is no failure, nor is one that is not."""
    launches = rounds({BETTER: 0.01, **({WORSE: seconds} if seconds else {})}, spread=0.0)
    text = render(Results(run([WORSE, BETTER], scenarios=[claimed_scenario()]), launches))
    SCHEMA.validate(text)
    case = cases(text)["T#33487: fit takes three times as long in eager mode"]
    assert outcome(case) == expected
    assert "".join(case.itertext()).strip().startswith("T#33487 reports: fit takes three times")
