"""github-action-benchmark's custom format."""

import json

import jsonschema
import pytest

from harness.analysis.results import Results
from harness.report.formats.benchmark_action import render
from tests.report.formats.examples import example, hostile, one_launch

#: BenchmarkResult of src/extract.ts in benchmark-action/github-action-benchmark 1.22.0, without what it converts to
#: strings by itself; an empty list is an error of extractResult there.
SCHEMA = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["name", "unit", "value"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "unit": {"type": "string", "minLength": 1},
            "value": {"type": "number"},
            "range": {"type": "string", "minLength": 1},
            "extra": {"type": "string"},
        },
        "additionalProperties": False,
    },
}


def test_the_action_reads_milliseconds_per_step_with_the_interval():
    for stored in (example, hostile, one_launch):
        entries = json.loads(render(Results(*stored())), parse_constant=pytest.fail)
        jsonschema.validate(entries, SCHEMA)
        # the action finds the number before by its name, which cannot leave the cell that it puts it in
        assert len({entry["name"] for entry in entries}) == len(entries)
        assert not any(set("|`\n") & set(entry["name"]) for entry in entries)
    first = json.loads(render(Results(*example())))[0]
    assert (first["name"], first["unit"]) == ("step tf1.14 cpu call=fit dtype=float32 mode=graph", "ms/step")
    low, high = map(float, first["range"].split(" to "))
    assert low <= first["value"] <= high
    assert first["value"] == pytest.approx(10.0, rel=0.01)
    assert "TensorFlow 1.14.0 + Keras 2.2.5\nrounds: 5" in first["extra"]
    (only,) = json.loads(render(Results(*one_launch())))
    assert "range" not in only
