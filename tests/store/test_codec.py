import json

import jsonschema
import pytest

from harness.store.codec import dump
from tests.runs import launch, run
from tests.schemas import FOLDER, schemas


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_schemas_in_the_docs_are_those_of_the_dataclasses(name: str) -> None:
    assert json.loads((FOLDER / name).read_text()) == schemas()[name], "make schema writes them again"


def test_what_is_written_keeps_the_schema() -> None:
    for name, document in schemas().items():
        value = run() if name.startswith("run") else launch()
        jsonschema.validate(json.loads(dump(value)), document)


def test_numbers_that_are_not_finite_stay_json() -> None:
    json.loads(dump(launch(observations={"loss": float("nan")})), parse_constant=pytest.fail)
