"""`harness run`: a plain script from a file to a report."""

import contextlib
import json
import os
import subprocess

import pytest

from tests.cli.conftest import NOWHERE, Harness

SHORT = ("--backend", "local", "--trust", "--rounds", "1", "--seed", "1")
BOTH = ("-e", "old", "-e", "new", *SHORT)


def write(harness: Harness, name: str, text: str) -> str:
    """Write a file beside the project's, and return its name."""
    (harness.root / name).write_text(text)
    return name


@pytest.mark.slow
def test_a_plain_script_is_run_in_each_environment_with_its_arguments_and_files(harness):
    write(harness, "mine.py", "import sys\nprint('args', sys.argv[1:])\nprint('took 7 ms')\nopen('data.csv')\n")
    failed = harness("run", "mine.py", "-e", "old", *SHORT, "--results", "failed")
    assert (failed.returncode, "data.csv" in failed.stderr) == (2, True)
    write(harness, "data.csv", "1,2\n")
    process = harness("run", "mine.py", *BOTH, "--with", "data.csv", "--grep", r"took (\S+) ms", "--", "--epochs", "3")
    assert process.returncode == 0, process.stderr
    assert {launch["cell"]["environment"] for launch in harness.launches} == {"old", "new"}
    for launch in harness.launches:
        assert launch["status"] == "ok"
        assert launch["observations"]["output"]["lines"] == ["args ['--epochs', '3']", "took 7 ms"]
        assert launch["observations"]["printed: took … ms"] == 0.007
        assert launch["phases"]["own work"] > 0
    assert harness.call("matrix", "--resume", str(harness.run)).returncode == 0


def test_scripts_and_scenarios_are_planned_by_run(harness):
    write(harness, "mine.py", "x = 1\n")
    write(harness, "own.py", (harness.root / "scenarios" / "ways.py").read_text())
    for command, cell in ((("run", "mine.py"), "mine new"), (("run", "own.py", "-a", "way=fine"), "own old fine")):
        process = harness.call(*command, *BOTH, "--dry-run")
        assert (process.returncode, cell in process.stdout) == (0, True), process.stderr


@pytest.mark.slow
def test_a_notebook_is_run_as_its_code_cells_and_a_process_variable_is_an_axis(harness):
    sources = ("%matplotlib inline\nimport os", "print(os.environ['MODE'])")
    cells = [{"cell_type": "code", "source": text} for text in sources]
    write(harness, "a.ipynb", json.dumps({"cells": cells}))
    process = harness.call("run", "a.ipynb", "-e", "old", *SHORT, "-a", "MODE=one,other")
    assert process.returncode == 0, process.stderr
    assert "cell 1: `%matplotlib inline`" in process.stderr
    lines = {launch["cell"]["axes"]["MODE"]: launch["observations"]["output"]["lines"] for launch in harness.launches}
    assert lines == {"one": ["one"], "other": ["other"]}


def test_without_an_engine_your_own_script_runs_with_your_rights(harness, instant):
    write(harness, "mine.py", "x = 1\n")
    command = ("run", "mine.py", "-e", "old", "--rounds", "1")
    for backend in ((), ("--backend", "local")):
        for options in (("--dry-run",), ()):
            process = harness.call(*command, *backend, *options, **NOWHERE)
            assert process.returncode == 0, process.stderr
            assert "mine runs without a container, with your rights." in process.stdout + process.stderr
    assert instant.jobs


@pytest.mark.slow
def test_without_an_engine_somebody_elses_script_runs_only_if_it_is_trusted_or_a_user_at_a_terminal_says_so(
    harness, instant
):
    write(harness, "issue.md", "It is slow:\n```python\nx = 1\n```\n")
    command = ("run", "issue.md", "-e", "old", "--rounds", "1")
    refusals = [harness.call(*command, *backend, **NOWHERE) for backend in ((), ("--backend", "local"))]
    assert [(process.returncode, "--trust" in process.stderr) for process in refusals] == [(4, True), (2, True)]
    assert harness.call(*command, "--dry-run", **NOWHERE).returncode == 0
    assert not instant.jobs
    assert harness.call(*command, "--trust", **NOWHERE).returncode == 0
    assert instant.jobs
    for answer, code in (("y", 0), ("", 2)):
        keyboard, terminal = os.openpty()
        os.write(keyboard, f"{answer}\n".encode())
        results = harness.root / f"results {answer}"
        process = subprocess.Popen(
            harness.command(*command, "--backend", "local", "--results", str(results)),
            cwd=harness.root,
            env=harness.environ,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
        )
        os.close(terminal)
        output = b""
        with process, contextlib.suppress(OSError):  # a terminal without a program raises it
            while chunk := os.read(keyboard, 65536):
                output += chunk
        os.close(keyboard)
        assert (process.returncode, b"[y/N]" in output, results.exists()) == (code, True, code == 0), output.decode()
