"""`make schema`: writes docs/schema from the dataclasses."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.model import history, launch, run
from harness.report.formats import json_

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas of run.json, of a line of launches.jsonl and of a summary, by file name."""
    documents = {
        f"run.v{run.SCHEMA}.schema.json": ("run.json", run.Run),
        f"launch.v{launch.SCHEMA}.schema.json": ("a line of launches.jsonl", launch.Launch),
        f"summary.v{history.SCHEMA}.schema.json": ("a run's summary in a history", history.Summary),
    }
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: {**draft, **TypeAdapter(kind).json_schema(), "title": title} for name, (title, kind) in documents.items()
    }


if __name__ == "__main__":
    for name, document in {**schemas(), **json_.schemas()}.items():
        (FOLDER / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
