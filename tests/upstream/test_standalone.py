import ast
import mmap
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.project import Project
from harness.scenarios.catalog import find_scenario_files
from harness.scenarios.scripts import format_literal
from harness.upstream.standalone import make_standalone
from tests.conftest import ROOT
from tests.errors import read_refusal
from tests.factories import scenario

KIT = ROOT / "scenarios" / "kit"
SIDES = [
    {"label": "slow", "arguments": {"size": "2000"}, "environ": {}},
    {"label": "fast", "arguments": {"size": "10"}, "environ": {"SOME_VARIABLE": "1"}},
]

TEXT = '''\
# /// script
# requires-python = ">=3.6"
# ///
"""Sums of so many numbers."""

import os

from kit import NotAvailable, main, version


def scenario(bench, size="10"):
    if os.environ.get("SOME_VARIABLE") != ("1" if size == "10" else None):
        raise NotAvailable("its environment is another one")
    with bench.phase("build"):
        numbers = list(range(int(size) * 1000))
    bench.once(lambda: sum(numbers))
    bench.observe("traces", version("2.15.1")[1])
    bench.fingerprint(total=sum(numbers))


if __name__ == "__main__":
    main(scenario)
'''


def make(text: str = TEXT, of: str = "step", **changes: Any) -> str:
    sides = [{**side, "arguments": {}} for side in SIDES] if changes.get("script") else SIDES
    return make_standalone(scenario(**changes), text, KIT, sides, of=of, about='What """it""" is.')


def run_text(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "repro.py").write_text(text)
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_it_runs_both_sides_in_turn_as_it_is_and_prints_times_and_ratio(tmp_path):
    process = run_text(make(), tmp_path, "-I", "repro.py")
    assert process.returncode == 0, process.stderr
    *rounds, last = process.stdout.splitlines()
    sides = ["slow", "fast", "fast", "slow"]
    starts = [f"round {1 + place // 2}: {side}" for place, side in enumerate(sides)]
    assert [line.split(" (")[0] for line in rounds[:4]] == starts
    assert len(rounds) == 10
    assert all(line.endswith(" ms") for line in rounds)
    assert last.startswith("slow takes ")
    assert "times as much as fast" in last


@pytest.mark.slow
def test_one_side_runs_in_the_interpreter_of_an_environment_and_fails_with_its_own_error(tmp_path):
    process = run_text(make(of="traces"), tmp_path, "repro.py", "--only", "1", sys.executable)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert len(lines) == 5
    assert all(line.startswith(f"round {number}: fast") for number, line in enumerate(lines, 1))
    assert all(line.endswith("traces: 15") for line in lines)
    process = run_text(make(TEXT.replace('"1" if', '"2" if')), tmp_path, "repro.py", "--only", "1")
    assert process.returncode == 1
    assert "NotAvailable: its environment is another one" in process.stderr
    assert "fast: exit status 1" in process.stderr


def test_its_bench_measures_what_the_kit_measures(tmp_path):
    text = make().replace("WARM_UP, MEASURE, SAMPLE = 0.5, 1.5, 0.02", "WARM_UP, MEASURE, SAMPLE = 0, 0, 0")
    (tmp_path / "repro.py").write_text(text)
    bench, maps, calls = runpy.run_path(str(tmp_path / "repro.py"), run_name="repro")["Bench"]({}), [], []

    def keep() -> None:
        # a map is memory that the process never had: what is freed before would else be given out again
        maps.append(mmap.mmap(-1, 1 << 20))
        maps[-1].write(bytes(1 << 20))

    assert bench.measure(lambda: calls.append(1), steps=3) == len(calls) * 3
    assert 0.0 < bench.numbers["step"] < 1.0
    assert bench.memory(keep, 50) == 55
    assert bench.numbers["memory growth"] == pytest.approx(1 << 20, rel=0.2)
    assert bench.once(lambda: "result") == "result"
    bench.fetch({"a": [SimpleNamespace(numpy=calls.clear)]})
    assert calls == []


def test_what_a_scenario_takes_of_the_kit_is_written_into_it_and_no_more():
    text = make()
    assert "def version(text):" in text
    assert "import re\n" in text
    assert "eager_tensorflow" not in text
    assert "from kit" not in text
    assert "/// script" not in text
    assert ast.get_docstring(ast.parse(text)) == "What '''it''' is.\n\nSums of so many numbers."
    # characters at which only texts are split move no line
    text = TEXT.replace("import os\n", "import os\n\n# pages:\f and lines:\u2028.\n")
    for line_break in ("\n", "\r\n", "\r"):
        document = make(text.replace("\n", line_break))
        assert "lines:\u2028." in document
        assert "from kit" not in document
        assert "/// script" not in document
        assert document.count('if __name__ == "__main__":') == 1


@pytest.mark.slow
def test_every_scenario_becomes_one_file_for_its_oldest_python():
    paths = find_scenario_files(Project(ROOT))
    assert len(paths) > 50
    for path in paths:
        tree = ast.parse(make(path.read_text(encoding="utf-8")), feature_version=(3, 6))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert "scenario" in names, path.stem


def script_scenario(plain: str, options: str = "") -> str:
    return (
        f"from kit.script import run_script\n\nSCRIPT = {format_literal(plain)}\n\n\n"
        f"def scenario(bench):\n    run_script(bench, 'plain.py', SCRIPT{options})\n"
    )


@pytest.mark.slow
def test_a_plain_script_is_executed_whole_and_gets_its_arguments_and_its_standard_input(tmp_path):
    plain = """\
import sys

if __name__ == "__main__":
    with open(__file__) as own:
        print("it's done:", sys.argv, input(), own.readline(), file=sys.stderr)
    sys.exit({})
"""
    options = ", arguments=['--epochs', '3'], grep=[['(.*)', ['printed: it']]], stdin='stdin-a.txt'"
    (tmp_path / "stdin-a.txt").write_text("typed\n")
    files = ["helper.py", "stdin-a.txt"]
    document = make(script_scenario(plain.format("0"), options), script="plain.py", files=files)
    assert ": helper.py and stdin-a.txt. " in document
    process = run_text(document, tmp_path, "-I", "repro.py")
    assert "slow takes " in process.stdout
    assert process.stderr.count("it's done: ['plain.py', '--epochs', '3'] typed import sys") == 10
    document = make(script_scenario(plain.format("3"), options), script="plain.py")
    assert "slow: exit status 3" in run_text(document, tmp_path, "-I", "repro.py").stderr


def test_what_cannot_be_one_file_is_refused(snapshot):
    changes = {
        "another name": "from kit import version as v, main",
        "no such name": "from kit import something, main",
        "a name twice": "from kit import main\n\n\ndef child():\n    pass\n",
    }
    line = "from kit import NotAvailable, main, version"
    refusals = {
        name: read_refusal(lambda change=change: make(TEXT.replace(line, change)))  # type: ignore[misc]
        for name, change in changes.items()
    }
    refusals["no plain script"] = read_refusal(lambda: make("SCRIPT = 'print()'\n", script="plain.py"))
    assert refusals == snapshot
