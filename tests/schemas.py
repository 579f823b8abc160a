"""`make schema`: writes docs/schema from the dataclasses."""

import json
from pathlib import Path

from harness.report.formats import json_
from harness.store import codec

FOLDER = Path(__file__).parents[1] / "docs" / "schema"

if __name__ == "__main__":
    for name, document in {**codec.schemas(), **json_.schemas()}.items():
        (FOLDER / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
