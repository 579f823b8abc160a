"""The report as JSON."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.analysis.distribution import STATISTICS
from harness.analysis.results import Results
from harness.report import sections
from harness.report.blocks import Text
from harness.report.formats.json_ import SCHEMA, make_schemas, render
from tests import factories, observing
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import RESOURCES, launch, rounds, run
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import example, hostile, nothing, one_launch
from tests.report.sections.reading import text
from tests.swept import CROSSING, SIZES, seconds, swept_run

DOCS = Path(__file__).parents[3] / "docs" / "schema"


def written(asked: Any, launches: Any) -> Any:
    """What is written, which keeps the schema."""
    read = json.loads(render(Results(asked, launches)), parse_constant=pytest.fail)
    (document,) = make_schemas().values()
    jsonschema.validate(read, document)
    return read


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    read: dict[str, Any] = written(*example())
    return read


@pytest.fixture(scope="module")
def told() -> list[Any]:
    """The sentences of the report of the same run."""
    made = sections.build(Results(*example()))
    return [text(block.words) for section in made for block in section.blocks if isinstance(block, Text)]


@pytest.mark.parametrize("name", sorted(make_schemas()))
def test_the_schema_in_the_docs_is_that_of_the_dataclasses(name: str) -> None:
    assert json.loads((DOCS / name).read_text()) == make_schemas()[name], "make schema writes it again"


@pytest.mark.parametrize("made", [example, hostile, nothing, one_launch])
def test_what_is_written_keeps_the_schema(made: Any) -> None:
    assert written(*made())["schema"] == SCHEMA


def test_every_cell_has_a_name_of_its_own_and_comparisons_are_of_these_cells(report: dict[str, Any]) -> None:
    assert len({cell["name"] for cell in report["cells"]}) == len(report["cells"]) == 10
    known = [cell["cell"] for cell in report["cells"]]
    compared = [entry["compared"] for entry in report["comparisons"]]
    compared += [finding for answer in report["answers"] for finding in answer["findings"]]
    assert compared
    assert all(entry[side] in known for entry in compared for side in ("cell", "other"))
    assert all(cell in known for entry in report["missing"] for cell in entry["cells"])


def test_a_cell_has_its_number_its_statistics_and_its_launches(report: dict[str, Any]) -> None:
    cell = report["cells"][0]
    estimate = cell["estimate"]
    assert estimate["interval"]["low"] < estimate["value"] < estimate["interval"]["high"]
    assert (cell["status"], estimate["rounds"], len(cell["launches"])) == ("ok", 5, 10)
    assert cell["used"]["phases"]["import"]["median"] == 1.24
    assert cell["shape"]["uneven"] == {"count": 0, "of": 10}
    assert list(cell["shape"]["statistics"]) == [statistic.name for statistic in STATISTICS]


def test_a_launch_has_what_others_took_of_its_cpu() -> None:
    shared = launch(factories.cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    read = written(run([shared.cell]), [shared])
    (centre,) = read["cells"][0]["launches"]
    assert (centre["seconds"], centre["taken"]) == (pytest.approx(0.008), pytest.approx(0.2))
    assert read["disturbance"]["taken"] == [pytest.approx(0.2)]


def test_comparisons_have_one_level_and_what_would_settle_one_has_its_width() -> None:
    times = dict(zip(factories.cells(), [0.01, 0.0104, 0.01, 0.01], strict=True))
    found = [entry["compared"] for entry in written(run(times), rounds(times, spread=0.02))["comparisons"]]
    assert [entry["level"] for entry in found] == [pytest.approx(1 - 0.05 / 5)] * 5
    settled = [entry["settling"] for entry in found if entry["settling"]]
    assert settled
    assert all(entry["half"] > 0.0 for entry in settled)


def test_a_cell_without_a_number_has_its_status(report: dict[str, Any]) -> None:
    (lost,) = (cell for cell in report["cells"] if cell["status"] == "oom")
    assert (lost["estimate"], lost["launches"]) == (None, [])
    (reason,) = (entry for entry in report["missing"] if lost["cell"] in entry["cells"])
    assert (reason["reason"], reason["stderr"]) == ("killed at 2 GiB", "allocating\nKilled")


def test_a_comparison_is_told_as_the_report_tells_it(report: dict[str, Any]) -> None:
    (slower,) = (
        entry
        for entry in report["comparisons"]
        if entry["what"] == "tf2.0 vs tf1.14, eager" and entry["compared"]["cell"]["axes"]["call"] == "fit"
    )
    assert (slower["scenario"], slower["comparison"], slower["along"]) == ("step", "TF 2 against TF 1", "environment")
    assert slower["compared"]["verdict"] == "slower"
    assert slower["compared"]["ratio"]["value"] == pytest.approx(27 / 20, rel=0.01)


def test_answers_are_the_reports_sentences_with_what_they_rest_on(report: dict[str, Any], told: list[Any]) -> None:
    compared = [entry["compared"] for entry in report["comparisons"]]
    assert len(report["answers"]) == 5
    # what all its rows share is in the small print
    assert report["answers"][0]["text"].partition(" (step")[0] in " ".join(told)
    assert all(finding in compared for answer in report["answers"] for finding in answer["findings"])


def test_what_accounts_for_the_times_is_told_as_factors(report: dict[str, Any], told: list[Any]) -> None:
    (accounted,) = report["attributions"]
    assert accounted["text"] in told
    attribution = accounted["attribution"]
    assert (attribution["scenario"], attribution["device"], attribution["rounds"]) == ("step", "cpu", 5)
    single = [effect for effect in attribution["effects"] if len(effect["changes"]) == 1]
    pairs = [effect for effect in attribution["effects"] if len(effect["changes"]) == 2]
    assert {change["axis"] for effect in single for change in effect["changes"]} <= {*attribution["axes"]}
    assert all(effect["parts"] is None for effect in single)
    assert pairs
    for effect in pairs:
        assert effect["estimate"]["value"] == pytest.approx(effect["parts"]["with_second"] / effect["parts"]["alone"])


def test_what_was_done_is_told(report: dict[str, Any]) -> None:
    plan = report["run"]["plan"]
    assert (plan["seed"], plan["margin"], plan["limits"]["cpus"]) == (7, 0.03, [0])
    assert report["run"]["pins"]["tf1.14"]["numpy"] == "1.17.4"
    assert report["run"]["scenarios"] == ["step"]
    assert report["control"]["groups"] == 2
    assert [(entry["round"], entry["repeated"]) for entry in report["disturbance"]["disturbed"]] == [(3, True)]


def test_what_was_found_of_turns_is_told(report: dict[str, Any]) -> None:
    assert report["turns"] is None
    members = factories.cells()
    made = factories.in_turns(dict.fromkeys(members, 0.01), alone={members[2]: 1.2})
    read = written(run(members, controlled=True), made)
    turns = read["turns"]
    assert (turns["turns"], turns["alive"], turns["blocks"]) == ([20], 5, 1)
    found = [(turn["cell"], turn["other"]) for turn in turns["alone"] if turn["is_found"]]
    of = next(
        entry["cell"] for entry in read["cells"] if entry["name"] == "step tf2.0 cpu call=fit dtype=float32 mode=graph"
    )
    assert found
    assert all(of in pair for pair in found)
    assert all(entry["compared"]["alone"] for entry in read["comparisons"])


def test_a_comparison_along_a_sweep_has_its_crossings_and_who_is_ahead_where() -> None:
    (found,) = written(*swept_run(seconds(CROSSING), spread=0.001))["sweeps"]
    assert (found["scenario"], found["axis"], found["unit"]) == ("sigmoid", "size", "values")
    (race,) = found["races"]
    assert race["sizes"] == [float(size) for size in SIZES]
    (crossing,) = race["lead"]["crossings"]
    assert crossing["interval"]["low"] <= crossing["at"] <= crossing["interval"]["high"]
    assert race["lead"]["below"] == [{"low": 1.0, "high": crossing["interval"]["low"]}]
    assert race["lead"]["above"] == [{"low": crossing["interval"]["high"], "high": 32768.0}]
    assert race["lead"]["unclear"] == []


def test_one_round_has_a_crossing_without_an_interval() -> None:
    (found,) = written(*swept_run(seconds(CROSSING), count=1))["sweeps"]
    (race,) = found["races"]
    assert race["lead"]["crossings"][0]["interval"] is None
    assert race["rounds"] == 1


def test_each_statement_is_told_cell_by_cell_with_what_was_seen() -> None:
    read = written(*observing.example())
    seen = [
        (entry["expectation"]["observation"], check["standing"], check["observed"] and check["observed"]["values"])
        for entry in read["statements"]
        for check in entry["checks"]
    ]
    assert seen.count(("traces", "as stated", [[1, 2]])) == 2
    assert seen.count(("traces", "differs", [[1, 3]])) == 1


def test_a_cell_that_only_observes_is_ok_and_has_its_observations() -> None:
    cells = written(*observing.example())["cells"]
    assert {cell["status"] for cell in cells} == {"ok"}
    axes = dict(observing.observer("tf1.14").axes)
    (first,) = [cell for cell in cells if (cell["cell"]["environment"], cell["cell"]["axes"]) == ("tf1.14", axes)]
    assert first["observations"] == {"traces": [[1, 2]], "kind": ["graph"]}
    assert first["estimate"] is None


def test_other_quantities_are_told_with_what_they_are() -> None:
    read = written(quantified_run("first call", "memory growth"), quantified())
    assert {entry["of"] for entry in read["answers"]} == {"first call", "memory growth"}
    assert {(entry["of"], entry["compared"]["verdict"]) for entry in read["comparisons"]} == {
        ("first call", "slower"),
        ("memory growth", "more"),
    }
    told = {(entry["of"], entry["name"].split()[1]): entry["estimate"]["value"] for entry in read["quantities"]}
    assert told["first call", "tf2.0"] == pytest.approx(1.2, rel=0.02)
    assert told["memory growth", "tf2.0"] == pytest.approx(1200.0, abs=30.0)


def test_claims_are_told_with_what_they_rest_on() -> None:
    results = Results(run([WORSE, BETTER], scenarios=[claimed_scenario()]), rounds({WORSE: 0.03, BETTER: 0.01}))
    (claim,) = json.loads(render(results))["claims"]
    assert claim["text"].startswith("T#33487 reports: ")
    assert (claim["issue"], claim["url"][:38]) == ("T#33487", "https://github.com/tensorflow/tensorfl")
    result = claim["result"]
    assert (result["scenario"], result["at"]["outcome"], result["claim"]["ratio"]) == ("step", "confirmed", [2.0, 4.0])
    assert result["at"]["estimate"]["interval"]["low"] > 2.0
