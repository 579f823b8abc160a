import json

import jsonschema
import pytest

from bench.schemas import FOLDER, schemas
from harness.analysis.results import Results
from harness.history.summary import summarize
from harness.store.codec import dump
from tests.runs import launch, run


def test_what_is_written_keeps_the_schemas_in_the_docs():
    written = {name: json.loads((FOLDER / name).read_text()) for name in schemas()}
    assert written == schemas(), "make schema writes them again"
    values = {"run": run(), "launch": launch(), "summary": summarize(Results(run(), [launch()]))}
    documents = {name.partition(".")[0]: document for name, document in schemas().items()}
    for kind, value in values.items():
        jsonschema.validate(json.loads(dump(value)), documents[kind])
    json.loads(dump(launch(observations={"loss": float("nan")})), parse_constant=pytest.fail)
