import ast
import mmap
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenario_files
from harness.catalog.scripts import format_literal
from harness.model.errors import UsageError
from harness.upstream.standalone import make_standalone
from tests.conftest import ROOT
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


def made(text: str = TEXT, of: str = "step", **changes: Any) -> str:
    sides = [{**side, "arguments": {}} for side in SIDES] if changes.get("script") else SIDES
    return make_standalone(scenario(**changes), text, KIT, sides, of=of, about='What """it""" is.')


def imported(text: str, folder: Path) -> SimpleNamespace:
    path = folder / "repro.py"
    path.write_text(text)
    return SimpleNamespace(**runpy.run_path(str(path), run_name="repro"))


def test_it_runs_both_sides_in_turn_as_it_is_and_prints_times_and_ratio(tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text(made())
    # nothing of this project is there
    command = [sys.executable, "-I", "repro.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    *rounds, last = done.stdout.splitlines()
    assert [line.split(" (")[0] for line in rounds[:4]] == [
        "round 1: slow",
        "round 1: fast",
        "round 2: fast",
        "round 2: slow",
    ]
    assert len(rounds) == 10
    assert all(line.endswith(" ms") for line in rounds)
    assert last.startswith("slow takes ")
    assert "times as much as fast" in last


def test_one_side_alone_and_interpreters_of_two_environments(tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text(made(of="traces"))
    command = [sys.executable, "repro.py", "--only", "1", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all(line.startswith(f"round {number}: fast") for number, line in enumerate(lines, 1))
    assert all(line.endswith("traces: 15") for line in lines)


def test_a_side_that_fails_ends_it_with_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text(made(TEXT.replace('"1" if', '"2" if')))
    command = [sys.executable, "repro.py", "--only", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "NotAvailable: its environment is another one" in done.stderr
    assert "fast: exit status 1" in done.stderr


def test_its_bench_measures_what_the_kit_measures(tmp_path: Path) -> None:
    repro = imported(
        made().replace("WARM_UP, MEASURE, SAMPLE = 0.5, 1.5, 0.02", "WARM_UP, MEASURE, SAMPLE = 0, 0, 0"), tmp_path
    )
    bench, kept, calls = repro.Bench({}), [], []

    def keep() -> None:
        # a map is memory that the process never had: what is freed before would else be given out again
        kept.append(mmap.mmap(-1, 1 << 20))
        kept[-1].write(bytes(1 << 20))

    assert bench.measure(lambda: calls.append(1), steps=3) == len(calls) * 3
    assert 0.0 < bench.numbers["step"] < 1.0
    assert bench.memory(keep, 50) == 55
    assert bench.numbers["memory growth"] == pytest.approx(1 << 20, rel=0.2)
    assert bench.once(lambda: "result") == "result"
    bench.fetch({"a": [SimpleNamespace(numpy=calls.clear)]})
    assert calls == []


def test_what_a_scenario_takes_of_the_kit_is_written_into_it_and_no_more() -> None:
    text = made()
    assert "def version(text):" in text
    assert "import re\n" in text
    assert "eager_tensorflow" not in text
    assert "from kit" not in text
    assert "/// script" not in text
    assert ast.get_docstring(ast.parse(text)) == "What '''it''' is.\n\nSums of so many numbers."


@pytest.mark.parametrize("path", find_scenario_files(Project(ROOT)), ids=lambda path: path.stem)
def test_every_scenario_becomes_one_file_for_its_oldest_python(path: Path) -> None:
    tree = ast.parse(made(path.read_text(encoding="utf-8")), feature_version=(3, 6))
    names = {entry.id for entry in ast.walk(tree) if isinstance(entry, ast.Name)}
    assert "scenario" in names


def script_scenario(plain: str, options: str = "") -> str:
    return (
        f"from kit.script import run_script\n\nSCRIPT = {format_literal(plain)}\n\n\n"
        f"def scenario(bench):\n    run_script(bench, 'plain.py', SCRIPT{options})\n"
    )


def test_a_plain_script_is_executed_whole_and_gets_its_arguments_and_its_standard_input(tmp_path: Path) -> None:
    plain = """\
import sys

if __name__ == "__main__":
    with open(__file__) as own:
        print("it's done:", sys.argv, input(), own.readline(), file=sys.stderr)
    sys.exit({})
"""
    options = ", arguments=['--epochs', '3'], grep=[['(.*)', ['printed: it']]], stdin='stdin-a.txt'"
    files = ["helper.py", "stdin-a.txt"]
    (tmp_path / "stdin-a.txt").write_text("typed\n")
    command = [sys.executable, "-I", "repro.py"]
    document = made(script_scenario(plain.format("0"), options), script="plain.py", files=files)
    assert "aren't in the bundle: helper.py and stdin-a.txt. Copy them" in document
    (tmp_path / "repro.py").write_text(document)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert "slow takes " in done.stdout
    assert done.stderr.count("it's done: ['plain.py', '--epochs', '3'] typed import sys") == 10
    (tmp_path / "repro.py").write_text(made(script_scenario(plain.format("3"), options), script="plain.py"))
    failed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "slow: exit status 3" in failed.stderr


def test_a_text_that_harness_did_not_generate_is_not_a_plain_script() -> None:
    with pytest.raises(UsageError, match="isn't the text that harness generates"):
        made("SCRIPT = 'print()'\n", script="plain.py")


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_characters_at_which_only_texts_are_split_move_no_line(line_break: str) -> None:
    text = TEXT.replace("import os\n", "import os\n\n# pages:\f and lines:\u2028.\n")
    document = made(text.replace("\n", line_break))
    assert "lines:\u2028." in document
    assert "from kit" not in document
    assert "/// script" not in document
    assert document.count('if __name__ == "__main__":') == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("from kit import version as v, main", "under another name"),
        ("from kit import something, main", "kit's something"),
        ("from kit import main\n\n\ndef child():\n    pass\n", "both define child"),
    ],
)
def test_what_cannot_be_one_file_is_told(change: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        made(TEXT.replace("from kit import NotAvailable, main, version", change))
