"""A header, a script and received runs whose strings hold what a terminal acts upon: no output of a command has it."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.cli.messages import say, tell
from harness.model.errors import HarnessError
from harness.model.launch import Launch, Status
from harness.model.run import Run, Unavailable
from harness.store import codec
from harness.store.checks import check_run, launch_check
from tests import factories
from tests.cli.conftest import stored

#: ESC, OSC 8, CSI in 8 bits, a change of direction, a bell, a carriage return, and a line like one of progress.
BAD = r"\u001b[31m\u001b]8;;http://x\u0007y\u009b2J\u202e\r\nforged: [9/9] done"

SCRIPT = f'''
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "title {BAD}"
# tags = ["tag {BAD}"]
# [tool.harness.axes]
# way = ["fine {BAD}", "wrong {BAD}"]
# [[tool.harness.compare]]
# name = "name {BAD}"
# along = "way"
# plus = "fine {BAD}"
# [[tool.harness.expect]]
# observation = "seen {BAD}"
# value = "{BAD}"
# ///

BAD = "{BAD}"


def scenario(bench, way):
    print(BAD)
    bench.observe("seen " + BAD, BAD)
    if way.startswith("wrong"):
        raise ValueError(BAD)
    bench.measure(lambda: sum(range(1000)))
'''

#: What no output may have: C0 but line feeds and tabs, C1, and what changes the direction of text.
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def check(text: str) -> None:
    match = ACTS.search(text)
    assert not match, text[max(0, match.start() - 200) : match.end() + 200]
    assert not [line for line in text.splitlines() if line.startswith("forged")], text


@pytest.mark.slow
def test_nothing_that_is_shown_acts_on_the_terminal(harness):
    (harness.root / "scenarios" / "ways.py").unlink()
    Path(harness.root / "scenarios" / "bad.py").write_text(SCRIPT)
    commands = [
        ("scenarios", "list"),
        ("scenarios", "show", "bad"),
        ("scenarios", "check", "bad"),
        ("matrix", "-s", "bad", "-e", "old", "--backend", "local", "--dry-run"),
    ]
    for command in commands:
        process = harness(*command)
        assert process.returncode == 0, process.stderr
        check(process.stdout + process.stderr)
    process = harness.matrix("-s", "bad", "-e", "old", "--rounds", "1")
    assert process.returncode == 1
    assert "forged: [9/9] done" in process.stderr  # it is shown, as a part of a line
    check(process.stdout + process.stderr)
    process = harness("report", str(harness.run))
    check(process.stdout + process.stderr)
    # JSON has the same strings, in characters that a terminal shows
    process = harness("matrix", "--resume", str(harness.run), "--json")
    check(process.stdout + process.stderr)
    printed = [json.loads(line) for line in process.stdout.splitlines()]
    assert printed == [json.loads(line) for line in (harness.run / "launches.jsonl").read_text().split("\n") if line]
    bad = json.loads(f'"{BAD}"')
    assert any(f"seen {bad}" in entry["observations"] for entry in printed)
    process = harness("report", str(harness.run), "--format", "json")
    check(process.stdout)
    assert json.loads(process.stdout)


def test_what_is_wrong_with_a_header_is_told_in_lines_of_ours(harness):
    path = harness.root / "scenarios" / "bad.py"
    path.write_text(SCRIPT.replace("plus =", "minus ="))
    process = harness("scenarios", "check", str(path))
    assert process.returncode == 2
    check(process.stdout + process.stderr)


@pytest.mark.parametrize("show", [say, tell])
def test_what_a_command_says_is_escaped(show, capsys):
    show("one \x1b[31m\n\ttwo \x9b\u202e\r")
    assert "".join(capsys.readouterr()) == "one \\x1b[31m\n\ttwo \\x9b\\u202e\\r\n"


#: The same as it is in a file, and as JSON has it there.
BYTES = json.loads(f'"{BAD}"')


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to the texts in a JSON value."""
    if isinstance(value, str):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(inner, (*path, key))


def injected(document: Any, check: Callable[[bytes], object]) -> str:
    """The JSON document with BAD in each text that may be anything, as the check has it."""
    for *way, last in list(leaves(document)):
        inner = document
        for key in way:
            inner = inner[key]
        before, inner[last] = inner[last], inner[last] + BYTES
        try:
            check(json.dumps(document).encode())
        except (HarnessError, ValueError):
            inner[last] = before
    return json.dumps(document)


def received(day: int) -> Path:
    """A stored run of the day, with BAD in all of its texts, and with failed and unavailable cells."""
    unavailable = Unavailable(factories.cell("tf2.1", call="fit", mode="eager", dtype="float32"), "reason", "advice")
    texts = {"suite": "suite", "scripts": {"step": "x = 1"}, "sources": {"step": "0123"}}
    stored_run = factories.nightly_run(f"2026-11-{day:02}", unavailable=[unavailable], **texts)
    launches = factories.rounds(dict.fromkeys(factories.cells(), 0.01), 5, 0.002, day)
    launches[0] = replace(
        launches[0], status=Status.FAILED, error="error", advice="advice", stderr="stderr", samples=[]
    )
    launches[1] = replace(launches[1], observations={"seen": "value"}, fingerprint={"done": "work"}, not_kept=["lost"])
    folder = stored(Path("results"), stored_run, launches)

    def with_bad_values(path: Path) -> str:
        return re.sub(r"\b(fit|float32|eager)\b", lambda match: match[0] + BAD, path.read_text())

    run = injected(
        json.loads(with_bad_values(folder / "run.json")), lambda data: check_run(codec.load(Run, data, "run"))
    )
    check = launch_check(codec.load(Run, run.encode(), "run"))
    lines = [json.loads(line) for line in with_bad_values(folder / "launches.jsonl").splitlines()]
    texts = [
        injected(line, lambda data: check(codec.load(Launch, data, "launch"))) if number < 2 else json.dumps(line)
        for number, line in enumerate(lines)
    ]
    (folder / "run.json").write_text(run)
    (folder / "launches.jsonl").write_text("\n".join([*texts, ""]))
    return folder


def outputs(commands: Sequence[Sequence[object]]) -> Iterator[str]:
    """What each command prints, or says of an error that is ours."""
    for words in commands:
        result = CliRunner().invoke(app, list(map(str, words)))
        error = result.exception
        assert error is None or isinstance(error, HarnessError | SystemExit), (words, error)
        yield result.output + (str(error) if isinstance(error, HarnessError) else "")


@pytest.mark.slow
def test_nothing_that_is_shown_of_received_runs_acts_on_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    one, other = received(11), received(12)
    assert BAD in (one / "run.json").read_text()
    for text in outputs(
        [
            ("report", one),
            *(("report", one, "--format", name) for name in ("json", "junit")),
            ("compare", one, other),
            ("merge", one, other),
            ("bundle", one),
            ("matrix", "--resume", one),
            ("history", "add", one, other),
            ("history", "note", "2026-11-11", f"words {BYTES}"),
            ("history", "list"),
            ("history", "show"),
            ("history", "show", "--points"),
            ("history", "show", "--json"),
            ("history", "report", "--format", "md"),
            ("history", "confirm"),
        ]
    ):
        check(text)
