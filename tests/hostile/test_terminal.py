"""A header and a script whose every string holds what a terminal acts upon: no output of any command has it."""

import json
import re
from pathlib import Path

from tests.cli.conftest import Harness

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
    found = ACTS.search(text)
    assert not found, text[max(0, found.start() - 200) : found.end() + 200]
    assert not [line for line in text.splitlines() if line.startswith("forged")], text


def test_nothing_that_is_shown_acts_on_the_terminal(harness: Harness) -> None:
    (harness.root / "scenarios" / "ways.py").unlink()
    Path(harness.root / "scenarios" / "bad.py").write_text(SCRIPT)
    commands = [
        ("scenarios", "list"),
        ("scenarios", "show", "bad"),
        ("scenarios", "check", "bad"),
        ("matrix", "-s", "bad", "-e", "old", "--backend", "local", "--dry-run"),
    ]
    for command in commands:
        done = harness(*command)
        assert done.returncode == 0, done.stderr
        check(done.stdout + done.stderr)
    done = harness.matrix("-s", "bad", "-e", "old", "--rounds", "1")
    assert done.returncode == 1
    assert "forged: [9/9] done" in done.stderr  # it is shown, as a part of a line
    check(done.stdout + done.stderr)
    done = harness("report", str(harness.run))
    check(done.stdout + done.stderr)
    # JSON has the same strings, in characters that a terminal shows
    done = harness("matrix", "--resume", str(harness.run), "--json")
    check(done.stdout + done.stderr)
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert printed == [json.loads(line) for line in (harness.run / "launches.jsonl").read_text().split("\n") if line]
    bad = json.loads(f'"{BAD}"')
    assert any(f"seen {bad}" in each["observations"] for each in printed)
    done = harness("report", str(harness.run), "--format", "json")
    check(done.stdout)
    assert json.loads(done.stdout)


def test_what_is_wrong_with_a_header_is_told_in_lines_of_ours(harness: Harness) -> None:
    path = harness.root / "scenarios" / "bad.py"
    path.write_text(SCRIPT.replace("plus =", "minus ="))
    done = harness("scenarios", "check", str(path))
    assert done.returncode == 2
    check(done.stdout + done.stderr)
