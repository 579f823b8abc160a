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
from tests import observing
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import RESOURCES, cell, cells, in_turns, launch, rounds, run
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import example, hostile, nothing, one_launch
from tests.report.sections.reading import text
from tests.swept import CROSSING, SIZES, seconds, swept_run

DOCS = Path(__file__).parents[3] / "docs" / "schema"


def read(planned: Any, launches: Any) -> Any:
    """What is written, which keeps the schema."""
    document = json.loads(render(Results(planned, launches)), parse_constant=pytest.fail)
    (schema,) = make_schemas().values()
    jsonschema.validate(document, schema)
    return document


@pytest.fixture(scope="module")
def report() -> Any:
    return read(*example())


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """The sentences of the report of the same run."""
    blocks = [block for section in sections.build(Results(*example())) for block in section.blocks]
    return [text(block.words) for block in blocks if isinstance(block, Text)]


@pytest.mark.parametrize("name", sorted(make_schemas()))
def test_the_schema_in_the_docs_is_that_of_the_dataclasses(name: str) -> None:
    assert json.loads((DOCS / name).read_text()) == make_schemas()[name], "make schema writes it again"


@pytest.mark.parametrize("stored", [hostile, nothing, one_launch])
def test_what_is_written_keeps_the_schema(stored: Any) -> None:
    assert read(*stored())["schema"] == SCHEMA


def test_every_cell_has_a_name_of_its_own_and_comparisons_are_of_these_cells(report: Any) -> None:
    assert len({entry["name"] for entry in report["cells"]}) == len(report["cells"]) == 10
    planned = [entry["cell"] for entry in report["cells"]]
    compared = [entry["compared"] for entry in report["comparisons"]]
    compared += [finding for answer in report["answers"] for finding in answer["findings"]]
    assert compared
    assert all(entry[side] in planned for entry in compared for side in ("cell", "other"))
    assert all(member in planned for entry in report["missing"] for member in entry["cells"])


def test_a_cell_has_its_number_its_statistics_and_its_launches(report: Any) -> None:
    first = report["cells"][0]
    estimate = first["estimate"]
    assert estimate["interval"]["low"] < estimate["value"] < estimate["interval"]["high"]
    assert (first["status"], estimate["rounds"], len(first["launches"])) == ("ok", 5, 10)
    assert first["used"]["phases"]["import"]["median"] == 1.24
    assert first["shape"]["uneven"] == {"count": 0, "of": 10}
    assert list(first["shape"]["statistics"]) == [statistic.name for statistic in STATISTICS]
    # a cell without a number has its status
    (lost,) = (entry for entry in report["cells"] if entry["status"] == "oom")
    assert (lost["estimate"], lost["launches"]) == (None, [])
    (reason,) = (entry for entry in report["missing"] if lost["cell"] in entry["cells"])
    assert (reason["reason"], reason["stderr"]) == ("killed at 2 GiB", "allocating\nKilled")


def test_a_launch_has_what_others_took_of_its_cpu() -> None:
    shared = launch(cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    document = read(run([shared.cell]), [shared])
    (centre,) = document["cells"][0]["launches"]
    assert (centre["seconds"], centre["taken"]) == (pytest.approx(0.008), pytest.approx(0.2))
    assert document["disturbance"]["taken"] == [pytest.approx(0.2)]


def test_comparisons_have_one_level_and_what_would_settle_one_has_its_width() -> None:
    times = dict(zip(cells(), [0.01, 0.0104, 0.01, 0.01], strict=True))
    compared = [entry["compared"] for entry in read(run(times), rounds(times, spread=0.02))["comparisons"]]
    assert [entry["level"] for entry in compared] == [pytest.approx(1 - 0.05 / 5)] * 5
    halves = [entry["settling"]["half"] for entry in compared if entry["settling"]]
    assert halves
    assert min(halves) > 0.0


def test_comparisons_and_answers_are_those_of_the_report(report: Any, sentences: list[str]) -> None:
    (slower,) = (
        entry
        for entry in report["comparisons"]
        if entry["what"] == "tf2.0 vs tf1.14, eager" and entry["compared"]["cell"]["axes"]["call"] == "fit"
    )
    assert (slower["scenario"], slower["comparison"], slower["along"]) == ("step", "TF 2 against TF 1", "environment")
    assert slower["compared"]["verdict"] == "slower"
    assert slower["compared"]["ratio"]["value"] == pytest.approx(27 / 20, rel=0.01)
    assert len(report["answers"]) == 5
    # what all its rows share is in the small print
    assert report["answers"][0]["text"].partition(" (step")[0] in " ".join(sentences)
    compared = [entry["compared"] for entry in report["comparisons"]]
    assert all(finding in compared for answer in report["answers"] for finding in answer["findings"])


def test_what_accounts_for_the_times_is_told_as_factors(report: Any, sentences: list[str]) -> None:
    (entry,) = report["attributions"]
    assert entry["text"] in sentences
    attribution = entry["attribution"]
    assert (attribution["scenario"], attribution["device"], attribution["rounds"]) == ("step", "cpu", 5)
    single = [effect for effect in attribution["effects"] if len(effect["changes"]) == 1]
    pairs = [effect for effect in attribution["effects"] if len(effect["changes"]) == 2]
    assert {change["axis"] for effect in single for change in effect["changes"]} <= {*attribution["axes"]}
    assert all(effect["parts"] is None for effect in single)
    assert pairs
    for effect in pairs:
        assert effect["estimate"]["value"] == pytest.approx(effect["parts"]["with_second"] / effect["parts"]["alone"])


def test_what_was_done_is_told(report: Any) -> None:
    plan = report["run"]["plan"]
    assert (plan["seed"], plan["margin"], plan["limits"]["cpus"]) == (7, 0.03, [0])
    assert report["run"]["pins"]["tf1.14"]["numpy"] == "1.17.4"
    assert report["run"]["scenarios"] == ["step"]
    assert report["control"]["groups"] == 2
    assert [(entry["round"], entry["repeated"]) for entry in report["disturbance"]["disturbed"]] == [(3, True)]


def test_what_was_found_of_turns_is_told(report: Any) -> None:
    assert report["turns"] is None
    members = cells()
    document = read(run(members, controlled=True), in_turns(dict.fromkeys(members, 0.01), alone={members[2]: 1.2}))
    turns = document["turns"]
    assert (turns["turns"], turns["alive"], turns["blocks"]) == ([20], 5, 1)
    name = "step tf2.0 cpu call=fit dtype=float32 mode=graph"
    (slower,) = (entry["cell"] for entry in document["cells"] if entry["name"] == name)
    pairs = [(turn["cell"], turn["other"]) for turn in turns["alone"] if turn["is_found"]]
    assert pairs
    assert all(slower in pair for pair in pairs)
    assert all(entry["compared"]["alone"] for entry in document["comparisons"])


def test_a_comparison_along_a_sweep_has_its_crossings_and_who_is_ahead_where() -> None:
    (sweep,) = read(*swept_run(seconds(CROSSING), spread=0.001))["sweeps"]
    assert (sweep["scenario"], sweep["axis"], sweep["unit"]) == ("sigmoid", "size", "values")
    (race,) = sweep["races"]
    assert race["sizes"] == [float(size) for size in SIZES]
    (crossing,) = race["lead"]["crossings"]
    low, high = crossing["interval"]["low"], crossing["interval"]["high"]
    assert low <= crossing["at"] <= high
    assert race["lead"]["below"] == [{"low": 1.0, "high": low}]
    assert race["lead"]["above"] == [{"low": high, "high": 32768.0}]
    assert race["lead"]["unclear"] == []
    # one round has no interval
    (race,) = read(*swept_run(seconds(CROSSING), count=1))["sweeps"][0]["races"]
    assert (race["lead"]["crossings"][0]["interval"], race["rounds"]) == (None, 1)


def test_observations_and_statements_are_told_cell_by_cell() -> None:
    document = read(*observing.example())
    checks = [
        (entry["expectation"]["observation"], check["standing"], check["observed"] and check["observed"]["values"])
        for entry in document["statements"]
        for check in entry["checks"]
    ]
    assert checks.count(("traces", "as stated", [[1, 2]])) == 2
    assert checks.count(("traces", "differs", [[1, 3]])) == 1
    assert {entry["status"] for entry in document["cells"]} == {"ok"}
    place = ("tf1.14", dict(observing.observer("tf1.14").axes))
    (first,) = [entry for entry in document["cells"] if (entry["cell"]["environment"], entry["cell"]["axes"]) == place]
    assert first["observations"] == {"traces": [[1, 2]], "kind": ["graph"]}
    assert first["estimate"] is None


def test_other_quantities_are_told_with_what_they_are() -> None:
    document = read(quantified_run("first call", "memory growth"), quantified())
    assert {entry["of"] for entry in document["answers"]} == {"first call", "memory growth"}
    assert {(entry["of"], entry["compared"]["verdict"]) for entry in document["comparisons"]} == {
        ("first call", "slower"),
        ("memory growth", "more"),
    }
    values = {(entry["of"], entry["name"].split()[1]): entry["estimate"]["value"] for entry in document["quantities"]}
    assert values["first call", "tf2.0"] == pytest.approx(1.2, rel=0.02)
    assert values["memory growth", "tf2.0"] == pytest.approx(1200.0, abs=30.0)


def test_claims_are_told_with_what_they_rest_on() -> None:
    claimed = run([WORSE, BETTER], scenarios=[claimed_scenario()])
    (claim,) = read(claimed, rounds({WORSE: 0.03, BETTER: 0.01}))["claims"]
    assert claim["text"].startswith("T#33487 reports: ")
    assert (claim["issue"], claim["url"][:38]) == ("T#33487", "https://github.com/tensorflow/tensorfl")
    result = claim["result"]
    assert (result["scenario"], result["at"]["outcome"], result["claim"]["ratio"]) == ("step", "confirmed", [2.0, 4.0])
    assert result["at"]["estimate"]["interval"]["low"] > 2.0
