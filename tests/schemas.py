"""`make schema`: writes docs/schema from the dataclasses, and the table of defaults in the docs."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.model import defaults, history, launch, run
from harness.report.format import duration, level, share
from harness.report.formats import json_

FOLDER = Path(__file__).parents[1] / "docs" / "schema"

DEFAULTS_PAGE = FOLDER.parent / "explanation" / "how-it-measures.md"
_BEGIN, _END = "<!-- the table: make schema -->", "<!-- the end of the table -->"


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


def with_defaults(text: str) -> str:
    """The page with the table of all defaults."""
    of = defaults
    rows = {
        "`--margin`": share(of.MARGIN),
        "the confidence level of all intervals of a table together": level(of.LEVEL),
        "`--rounds`": f"{of.ROUNDS}",
        "maximum of `--rounds`, with `--precision` or `--budget`": f"{of.MOST_ROUNDS}",
        "maximum of `--rounds`, with `--claim`": f"{of.MOST_CLAIM_ROUNDS}",
        "the minimum number of rounds for a verdict": f"{of.FEWEST_ROUNDS}",
        "`--rounds` of `history confirm`": f"{of.CONFIRM_ROUNDS}",
        "`--precision` of claims": f"{share(of.CLAIM_PRECISION[0])} to {share(of.CLAIM_PRECISION[1])}",
        "`--budget` of `run`": duration(of.SCRIPT_BUDGET),
        "`--budget` of `repro`": f"{duration(of.ISSUE_BUDGET)} per issue, at most {duration(of.MOST_ISSUES_BUDGET)}",
        "`--budget` of `bisect`": duration(of.BISECT_BUDGET),
        "`--warmup`, by the pilot": f"{of.WARMUP[0]:g} to {of.WARMUP[1]:g} s",
        "`--measure`, by the pilot": f"{of.MEASURE[0]:g} to {of.MEASURE[1]:g} s",
        "`--warmup`, `--measure` of `repro`": f"{of.CLAIM_WARMUP:g} s, {of.CLAIM_MEASURE:g} s",
        "warm-up, measurement in `bisect`": f"{of.SEARCH_WARMUP:g} s, {of.SEARCH_MEASURE:g} s",
        "`--timeout`": duration(of.TIMEOUT),
        "`--timeout` if the driver compiles GPU code first": duration(of.FIRST_START_TIMEOUT),
        "`HARNESS_ENGINE_SECONDS`": f"{of.ENGINE_TIMEOUT:g}",
        "`--calls` of `profile`": f"{of.PROFILED_CALLS}",
    }
    table = ["| option | default |", "| --- | --- |", *(f"| {option} | {value} |" for option, value in rows.items())]
    made = "\n".join([_BEGIN, *table, _END])
    return re.sub(rf"{_BEGIN}.*{_END}", lambda _: made, text, flags=re.DOTALL)


if __name__ == "__main__":
    page = DEFAULTS_PAGE.read_text(encoding="utf-8")
    DEFAULTS_PAGE.write_text(with_defaults(page), encoding="utf-8")
    for name, document in {**schemas(), **json_.make_schemas()}.items():
        (FOLDER / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
