"""The report as JSON."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.report import markdown
from harness.report.formats.report_json import render
from harness.report.formats.schema import schemas
from tests.report.formats.examples import example, hostile, nothing, one_launch

DOCS = Path(__file__).parents[3] / "docs" / "schema"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(render(*example()))
    return read


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_schema_in_the_docs_is_that_of_the_dataclasses(name: str) -> None:
    assert json.loads((DOCS / name).read_text()) == schemas()[name], "make schema writes it again"


@pytest.mark.parametrize("made", [example, hostile, nothing, one_launch])
def test_what_is_written_keeps_the_schema(made: Any) -> None:
    (document,) = schemas().values()
    jsonschema.validate(json.loads(render(*made()), parse_constant=pytest.fail), document)


def test_cells_are_referred_to_by_name(report: dict[str, Any]) -> None:
    names = {cell["name"] for cell in report["cells"]}
    assert len(names) == 10
    assert {each[side] for each in report["comparisons"] for side in ("cell", "other")} <= names
    assert {name for entry in report["missing"] for name in entry["cells"]} <= names
    findings = [finding for answer in report["answers"] for finding in answer["findings"]]
    assert {finding[side] for finding in findings for side in ("subject", "base")} <= names


def test_a_cell_has_its_number_and_its_launches(report: dict[str, Any]) -> None:
    cell = report["cells"][0]
    assert cell["interval"]["low"] < cell["seconds_per_step"] < cell["interval"]["high"]
    assert (cell["status"], cell["rounds"], len(cell["launches"])) == ("ok", 5, 10)
    assert cell["phases"]["import"]["median"] == 1.24
    assert cell["shape"]["modes"] == {"count": 0, "of": 10}


def test_a_cell_without_a_number_has_its_status(report: dict[str, Any]) -> None:
    (lost,) = (cell for cell in report["cells"] if cell["status"] == "oom")
    assert (lost["seconds_per_step"], lost["interval"], lost["launches"]) == (None, None, [])
    (reason,) = (entry for entry in report["missing"] if lost["name"] in entry["cells"])
    assert (reason["reason"], reason["stderr"]) == ("killed at 2 GiB", "allocating\nKilled")


def test_a_comparisons_percentage_is_the_sources(report: dict[str, Any]) -> None:
    (slower,) = (
        each
        for each in report["comparisons"]
        if each["what"] == "tf2.0 against tf1.14, eager" and "fit" in each["cell"]
    )
    assert slower["verdict"] == "slower"
    assert slower["percent"] == pytest.approx((1.0 / slower["ratio"] - 1.0) * -100.0)
    assert slower["percent_interval"]["low"] < slower["percent"] < slower["percent_interval"]["high"]


def test_an_answers_verdict_is_its_subjects(report: dict[str, Any]) -> None:
    verdicts = {(each["cell"], each["other"]): each for each in report["comparisons"]}
    for answer in report["answers"]:
        assert answer["along"] == "environment"
        for finding in answer["findings"]:
            compared = verdicts[finding["subject"], finding["base"]]
            assert finding["verdict"] == compared["verdict"]
            assert finding["ratio"] == pytest.approx(1.0 / compared["ratio"])


def test_answers_are_the_reports_sentences(report: dict[str, Any]) -> None:
    (answer,) = report["answers"]
    assert answer["text"] in markdown.render(*example())


def test_what_accounts_for_the_times_is_told_as_factors(report: dict[str, Any]) -> None:
    (attribution,) = report["attributions"]
    assert attribution["text"] in markdown.render(*example())
    assert (attribution["scenario"], attribution["device"], attribution["rounds"]) == ("step", "cpu", 5)
    single = [effect for effect in attribution["effects"] if len(effect["changes"]) == 1]
    pairs = [effect for effect in attribution["effects"] if len(effect["changes"]) == 2]
    assert {change["axis"] for effect in single for change in effect["changes"]} <= {*attribution["axes"]}
    assert all(effect["interval"]["low"] < effect["factor"] < effect["interval"]["high"] for effect in single)
    assert all(effect["together"] is None for effect in single)
    assert pairs
    for effect in pairs:
        assert effect["factor"] == pytest.approx(effect["beside"] / effect["alone"])


def test_what_was_done_is_told(report: dict[str, Any]) -> None:
    assert (report["run"]["seed"], report["run"]["margin"], report["run"]["cpus"]) == (7, 0.03, [0])
    assert report["environments"][0]["pins"]["numpy"] == "1.17.4"
    assert report["control"]["groups"] == 2
    assert [(each["round"], each["repeated"]) for each in report["disturbed"]] == [(3, True)]
