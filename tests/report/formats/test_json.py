"""The report as JSON."""

import json
from collections import Counter
from typing import Any

import jsonschema
import pytest

from bench.schemas import schemas
from harness.analysis.distribution import STATISTICS
from harness.analysis.results import Results
from harness.report.formats.json_ import SCHEMA, render
from tests import observing
from tests.claims import BETTER, WORSE, claimed_scenario
from tests.factories import cells, in_turns, rounds, run
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import example, hostile, nothing, one_launch
from tests.swept import CROSSING, SIZES, seconds, swept_run

DOCUMENT = schemas()[f"report.v{SCHEMA}.schema.json"]
VALIDATOR = jsonschema.validators.validator_for(DOCUMENT)(DOCUMENT)


def read(planned: Any, launches: Any) -> Any:
    document = json.loads(render(Results(planned, launches)), parse_constant=pytest.fail)
    VALIDATOR.validate(document)
    return document


@pytest.fixture(scope="module")
def report() -> Any:
    return read(*example())


def test_a_cell_has_its_number_its_statistics_and_its_launches(report):
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


def test_what_was_done_is_told_and_untrusted_runs_keep_the_schema(report):
    plan = report["run"]["plan"]
    assert (plan["seed"], plan["margin"], plan["limits"]["cpus"]) == (7, 0.03, [0])
    assert report["run"]["pins"]["tf1.14"]["numpy"] == "1.17.4"
    assert report["run"]["scenarios"] == ["step"]
    assert report["control"]["groups"] == 2
    assert [(entry["round"], entry["repeated"]) for entry in report["disturbance"]["disturbed"]] == [(3, True)]
    assert {read(*stored())["schema"] for stored in (hostile, nothing, one_launch)} == {SCHEMA}


def test_comparisons_and_answers_are_of_cells_that_are_told(report):
    assert len({entry["name"] for entry in report["cells"]}) == len(report["cells"]) == 10
    planned = [entry["cell"] for entry in report["cells"]]
    compared = [entry["compared"] for entry in report["comparisons"]]
    findings = [finding for answer in report["answers"] for finding in answer["findings"]]
    assert (len(report["answers"]), len(findings) > 0) == (5, True)
    assert all(finding in compared for finding in findings)
    assert all(entry[side] in planned for entry in compared for side in ("cell", "other"))
    assert all(member in planned for entry in report["missing"] for member in entry["cells"])
    (slower,) = (
        entry
        for entry in report["comparisons"]
        if entry["what"] == "tf2.0 vs tf1.14, eager" and entry["compared"]["cell"]["axes"]["call"] == "fit"
    )
    assert (slower["scenario"], slower["comparison"], slower["along"]) == ("step", "TF 2 against TF 1", "environment")
    assert (slower["of"], slower["compared"]["verdict"]) == ("step", "slower")
    (attribution,) = report["attributions"]
    assert attribution["text"].startswith("Averaged over the other axes, 2 ")


def test_turns_sweeps_observations_quantities_and_claims_are_told(report):
    members = cells()
    claimed = run([WORSE, BETTER], scenarios=[claimed_scenario()])
    documents = {
        "turns": read(run(members, controlled=True), in_turns(dict.fromkeys(members, 0.01), alone={members[2]: 1.2})),
        "sweeps": read(*swept_run(seconds(CROSSING), count=1)),
        "statements": read(*observing.example()),
        "quantities": read(quantified_run("first call", "memory growth"), quantified()),
        "claims": read(claimed, rounds({WORSE: 0.03, BETTER: 0.01})),
    }
    assert not any(report[name] for name in documents)
    turns, (sweep,), statements, quantities, (claim,) = (documents[name][name] for name in documents)
    assert [turn["is_found"] for turn in turns["alone"]].count(True) > 0
    assert all(entry["compared"]["alone"] for entry in documents["turns"]["comparisons"])
    assert [race["sizes"] for race in sweep["races"]] == [[float(size) for size in SIZES]]
    assert Counter(check["standing"] for entry in statements for check in entry["checks"])["differs"] == 1
    assert documents["statements"]["cells"][0]["observations"] == {"traces": [[1, 2]], "kind": ["graph"]}
    values = {(entry["of"], entry["name"].split()[1]): entry["estimate"]["value"] for entry in quantities}
    assert values["first call", "tf2.0"] == pytest.approx(1.2, rel=0.02)
    assert claim["text"].startswith("T#33487 reports: ")
    assert (claim["issue"], claim["result"]["at"]["outcome"]) == ("T#33487", "confirmed")
