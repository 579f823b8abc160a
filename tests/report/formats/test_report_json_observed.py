"""Sweeps, statements and observations in the report as JSON."""

import json
from typing import Any

import jsonschema
import pytest

from harness.report.formats.report_json import render
from harness.report.formats.schema import schemas
from tests.observing import example, observer
from tests.swept import CROSSING, SIZES, seconds, swept_run


def written(run: Any, launches: Any) -> Any:
    """What is written, which keeps the schema."""
    read = json.loads(render(run, launches), parse_constant=pytest.fail)
    (document,) = schemas().values()
    jsonschema.validate(read, document)
    return read


def test_a_comparison_along_a_sweep_has_its_crossings_and_who_is_ahead_where() -> None:
    (found,) = written(*swept_run(seconds(CROSSING), spread=0.001))["sweeps"]
    assert (found["axis"], found["unit"], found["subject"], found["base"]) == ("size", "values", "compiled", "numpy")
    assert found["sizes"] == [float(size) for size in SIZES]
    (crossing,) = found["crossings"]
    assert crossing["after"] == "compiled"
    assert crossing["interval"]["low"] <= crossing["at"] <= crossing["interval"]["high"]
    assert found["base_ahead"] == [{"low": 1.0, "high": crossing["interval"]["low"]}]
    assert found["subject_ahead"] == [{"low": crossing["interval"]["high"], "high": 32768.0}]
    assert found["unclear"] == []


def test_one_round_has_a_crossing_without_an_interval() -> None:
    (found,) = written(*swept_run(seconds(CROSSING), count=1))["sweeps"]
    assert found["crossings"][0]["interval"] is None
    assert found["rounds"] == 1


def test_each_statement_is_told_cell_by_cell_with_what_was_seen() -> None:
    read = written(*example())
    told = [(each["observation"], each["standing"], each["observed"]) for each in read["statements"]]
    assert told.count(("traces", "as stated", [[1, 2]])) == 2
    assert told.count(("traces", "differs", [[1, 3]])) == 1
    names = {cell["name"] for cell in read["cells"]}
    assert {each["cell"] for each in read["statements"]} <= names


def test_a_cell_that_only_observes_is_ok_and_has_its_observations() -> None:
    cells = written(*example())["cells"]
    assert {cell["status"] for cell in cells} == {"ok"}
    (first,) = [cell for cell in cells if (cell["environment"], cell["axes"]) == ("tf1.14", observer("tf1.14").axes)]
    assert first["observations"] == {"traces": [[1, 2]], "kind": ["graph"]}
    assert first["seconds_per_step"] is None
