"""`make schema`: writes docs/schema from the dataclasses, the table of defaults, and the pages of `make reference`."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from bench import reference
from harness.cli import documents
from harness.model import defaults, history, launch, run
from harness.model.scenario import Scenario
from harness.report import judged
from harness.report.format import duration, level, share
from harness.report.formats import json_

FOLDER = Path(__file__).parents[1] / "docs" / "schema"

DEFAULTS_PAGE = reference.CLI_PAGE
_BEGIN, _END = "<!-- the table: make schema -->", "<!-- the end of the table -->"


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of run.json, of a line of launches.jsonl, of a summary and of a report, by file name."""
    documents = {
        f"run.v{run.SCHEMA}.schema.json": ("run.json", run.Run),
        f"launch.v{launch.SCHEMA}.schema.json": ("a line of launches.jsonl", launch.Launch),
        f"summary.v{history.SCHEMA}.schema.json": ("a run's summary in a history", history.Summary),
    }
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    named = {name: (title, TypeAdapter(kind).json_schema()) for name, (title, kind) in documents.items()}
    named["command.v1.schema.json"] = ("the documents of --json", _describe_commands())
    report = TypeAdapter(json_.Document).json_schema(schema_generator=_ReportSchema, mode="serialization")
    named[f"report.v{json_.SCHEMA}.schema.json"] = ("harness report --format json", report)
    return {name: {**draft, **schema, "title": title} for name, (title, schema) in named.items()}


def _describe_commands() -> dict[str, Any]:
    """Return the schema of the documents of --json. Lists, plans and launches have other fields than these."""
    kinds = (documents.ErrorDocument, documents.ResultDocument, judged.JudgedPatch)
    schema = TypeAdapter(kinds[0] | kinds[1] | kinds[2]).json_schema(mode="serialization")
    for kind in kinds:
        schema["$defs"][kind.__name__]["additionalProperties"] = False
    other = {"type": "object", "not": {"anyOf": [{"required": [key]} for key in ("advice", "output", "reasons")]}}
    schema["$defs"]["Other"] = {
        **other,
        "description": "A plan, a launch, a list by name, or a comparison of two runs.",
    }
    rows = {"type": "array", "items": {"type": "object"}, "description": "Rows, such as environments or scenarios."}
    schema["anyOf"] += [{"$ref": "#/$defs/Other"}, rows]
    return schema


class _ReportSchema(GenerateJsonSchema):
    """In a report, a scenario is its name."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return {"type": "string"} if schema["cls"] is Scenario else super().dataclass_schema(schema)


def with_defaults(text: str) -> str:
    """Return the page with the table of all defaults."""
    rows = {
        "`--margin`": share(defaults.MARGIN),
        "the confidence level of all intervals of a table together": level(defaults.LEVEL),
        "`--rounds`": f"{defaults.ROUNDS}",
        "maximum of `--rounds`, with `--precision` or `--budget`": f"{defaults.MOST_ROUNDS}",
        "maximum of `--rounds`, with `--claim`": f"{defaults.MOST_CLAIM_ROUNDS}",
        "the minimum number of rounds for a verdict": f"{defaults.FEWEST_ROUNDS}",
        "`--rounds` of `history confirm`": f"{defaults.CONFIRM_ROUNDS}",
        "`--precision` of claims": f"{share(defaults.CLAIM_PRECISION[0])} to {share(defaults.CLAIM_PRECISION[1])}",
        "`--budget` of `run`": duration(defaults.SCRIPT_BUDGET),
        "`--budget` of `repro`": f"{duration(defaults.ISSUE_BUDGET)} per issue, "
        f"at most {duration(defaults.MOST_ISSUES_BUDGET)}",
        "`--budget` of `bisect`": duration(defaults.BISECT_BUDGET),
        "`--warmup`, by the pilot": f"{defaults.WARMUP[0]:g} to {defaults.WARMUP[1]:g} s",
        "`--measure`, by the pilot": f"{defaults.MEASURE[0]:g} to {defaults.MEASURE[1]:g} s",
        "`--warmup`, `--measure` of `repro`": f"{defaults.CLAIM_WARMUP:g} s, {defaults.CLAIM_MEASURE:g} s",
        "warm-up, measurement in `bisect`": f"{defaults.SEARCH_WARMUP:g} s, {defaults.SEARCH_MEASURE:g} s",
        "`--timeout`": duration(defaults.TIMEOUT),
        "`--timeout` if the driver compiles GPU code first": duration(defaults.FIRST_START_TIMEOUT),
        "`HARNESS_ENGINE_SECONDS`": f"{defaults.ENGINE_TIMEOUT:g}",
        "`--calls` of `profile`": f"{defaults.PROFILED_CALLS}",
    }
    table = ["| option | default |", "| --- | --- |", *(f"| {option} | {value} |" for option, value in rows.items())]
    lines = "\n".join([_BEGIN, *table, _END])
    return re.sub(rf"{_BEGIN}.*{_END}", lambda _: lines, text, flags=re.DOTALL)


if __name__ == "__main__":
    page = DEFAULTS_PAGE.read_text(encoding="utf-8")
    DEFAULTS_PAGE.write_text(with_defaults(page), encoding="utf-8")
    for name, document in schemas().items():
        (FOLDER / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    reference.write()
