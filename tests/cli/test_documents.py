"""`--json`: each command prints documents of docs/schema/command.v1.schema.json, also if it fails."""

import json
import shlex
from typing import Any

import jsonschema

from tests.cli.conftest import NOWHERE, stored
from tests.cli.test_errors import COMMANDS
from tests.cli.test_help import COMMANDS as TREE
from tests.conftest import ROOT
from tests.two_runs import first, second

CHECK = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schema/command.v1.schema.json").read_text())).validate

#: Command lines that launch nothing, each with its exit code behind `#` if it isn't 0.
LINES = """
    run mine.py -e new --backend local --dry-run; matrix -s ways -a way=fine --backend local --dry-run
    profile -s ways -a way=fine --backend local --dry-run; repro T#1002 # 2; ask memory; report ONE
    report ONE --format json; compare ONE TWO; bundle ONE # 2; merge ONE ONE # 2
    bisect -s ways --good old --bad new --dry-run # 2; doctor --cpus 0 # 2; images list; images build # 4
    scenarios list; scenarios show ways; scenarios check ways; scenarios new fresh; completion bash
    history add ONE # 1; history list; history show # 3; history note 2026-11-22 text
    history report --output h.html; history alarm; fleet name office; clean none
"""


def read(text: str) -> list[Any]:
    """Return the documents of an output: one JSON text, or one per line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def test_each_command_has_json_and_prints_documents_of_the_schema(harness):
    missing = [
        name
        for name, command in TREE.items()
        if not hasattr(command, "commands") and not any("--json" in option.opts for option in command.params)
    ]
    assert missing == []
    harness.environ |= {**NOWHERE, "HARNESS_DATA_DIR": str(harness.root / "data")}
    (harness.root / "mine.py").write_text("x = 1\n")
    places = {"ONE": str(stored(harness.root / "r", *first())), "TWO": str(stored(harness.root / "r", *second()))}
    codes, results = {}, {}
    for line in LINES.replace("\n", ";").strip(" ;").split(";"):
        command, _, code = line.strip().partition(" # ")
        process = harness.call(*[places.get(word, word) for word in shlex.split(command)], "--json")
        codes[command] = (process.returncode, int(code or 0))
        for document in results.setdefault(command, read(process.stdout)):
            CHECK(document)
    assert {command: pair for command, pair in codes.items() if pair[0] != pair[1]} == {}
    assert results["scenarios check ways"][0]["output"] == ["1 scenario, no problem."]
    assert results["report ONE"][0]["files"][0].endswith("report.md")
    # a report that is JSON is data in the document
    assert results["report ONE --format json"][0]["output"]["schema"] == 3


def test_an_error_is_a_document_with_the_exit_code(harness):
    lines = [line.strip() for lines in COMMANDS.values() for line in lines.strip().splitlines()]
    lines = [line for line in lines if not line.startswith("help") and " -- " not in line and "LONG" not in line]
    seen = 0
    for line in lines[::5]:
        process = harness.call(*shlex.split(line), "--json", **NOWHERE)
        if not process.returncode:
            continue
        (document,) = read(process.stdout)
        CHECK(document)
        assert (document["exit"], bool(document["error"])) == (process.returncode, True), line
        assert document["error"].splitlines()[0] in process.stderr, line
        seen += 1
    assert seen >= 20
    # a script's own --json isn't one of harness
    assert harness.call("run", "none.py", "-e", "new", "--", "--json").stdout == ""
