"""`harness run`: a plain script from a file to a report."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

SHORT = ("-e", "old", "-e", "new", "--backend", "local", "--trust", "--rounds", "1", "--seed", "1")


@pytest.fixture
def write(harness):
    """Write a file beside the project's."""

    def written(name: str, text: str) -> Path:
        path = harness.root / name
        path.write_text(text)
        return path

    return written


def test_a_plain_script_is_run_in_each_environment_with_its_arguments(harness, write):
    write("mine.py", "import sys\nprint('args', sys.argv[1:])\nprint('took 7 ms')\n")
    done = harness("run", "mine.py", *SHORT, "--grep", r"took (\S+) ms", "--", "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert {launch["cell"]["environment"] for launch in harness.launches} == {"old", "new"}
    for launch in harness.launches:
        assert launch["status"] == "ok"
        assert launch["observations"]["output"]["lines"] == ["args ['--epochs', '3']", "took 7 ms"]
        assert launch["observations"]["printed: took … ms"] == 0.007
        assert launch["phases"]["own work"] > 0
    assert harness("matrix", "--resume", str(harness.run)).returncode == 0


def test_repro_of_a_script_is_the_same_command(harness, write):
    write("mine.py", "x = 1\n")
    done = harness("repro", "mine.py", *SHORT, "--dry-run")
    assert (done.returncode, "mine new" in done.stdout) == (0, True), done.stderr


def test_a_file_that_is_a_scenario_runs_as_one(harness, write):
    path = write("own.py", (harness.root / "scenarios" / "ways.py").read_text())
    done = harness("run", str(path), *SHORT, "-a", "way=fine", "--dry-run")
    assert (done.returncode, "own old fine" in done.stdout) == (0, True), done.stderr
    refused = harness("run", str(path), *SHORT, "--", "x")
    assert (refused.returncode, "is a scenario (its header has [tool.harness])" in refused.stderr) == (2, True)


def test_a_script_that_reads_a_file_that_is_not_there_ends_with_its_own_error_and_1(harness, write):
    write("mine.py", "open('data.csv')\n")
    done = harness("run", "mine.py", *SHORT)
    assert done.returncode == 1
    assert "No such file or directory: 'data.csv' (mine.py, line 1). To pass the file: --with data.csv" in done.stderr
    write("data.csv", "1,2\n")
    assert harness("run", "mine.py", *SHORT, "--with", "data.csv").returncode == 0


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("x = 1", ["mine.py", "--rounds", "1"], "Example: harness run mine.py -e tf2.12 -e tf2.13"),
        ("x = 1", ["absent.py", *SHORT], "The script absent.py cannot be read: No such file or directory."),
        ("x = = 1", ["mine.py", *SHORT], "mine.py:1: This is not valid Python: invalid syntax."),
        (
            "x = 1",
            ["mine.py", *SHORT, "-a", "n=1"],
            "mine.py is a plain script, and -a n needs a scenario with this axis.",
        ),
        ("x = 1", ["mine.py", *SHORT, "--grep", "("], "--grep '(' is not a valid regular expression"),
        ("x = 1", ["mine.py", *SHORT, "--function", "f"], "It neither defines nor calls a function `f`"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(harness, write, text, arguments, told):
    write("mine.py", text)
    done = harness("run", *arguments)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert not (harness.root / "results").exists()


def test_a_notebook_is_run_as_its_code_cells_and_what_is_left_out_is_told(harness, write):
    cells = [{"cell_type": "code", "source": text} for text in ("%matplotlib inline\nx = 1", "print(x)")]
    write("a.ipynb", json.dumps({"cells": cells}))
    done = harness("run", "a.ipynb", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "cell 1: `%matplotlib inline` is omitted" in done.stderr
    assert harness.launches[0]["observations"]["output"]["lines"] == ["1"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 4, "Such files need a container."),
        (["--backend", "local"], 2, "they can read and change your files, and use the network"),
        (["--trust"], 0, "Backend: local environments"),
    ],
    ids=["auto", "local", "trusted"],
)
def test_without_an_engine_or_a_terminal_a_script_runs_only_if_it_is_trusted(harness, write, options, code, words):
    write("mine.py", "x = 1\n")
    done = harness("run", "mine.py", "-e", "old", "--rounds", "1", *options, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert "--trust" in done.stderr or not code


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2)])
def test_on_a_terminal_the_user_is_asked_before_a_script_runs_without_a_container(harness, write, answer, code):
    write("mine.py", "x = 1\n")
    keyboard, terminal = os.openpty()
    os.write(keyboard, f"{answer}\n".encode())
    command = harness.command("run", "mine.py", "-e", "old", "--rounds", "1", "--backend", "local")
    running = subprocess.Popen(
        command, cwd=harness.root, env=harness.environ, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    with running, contextlib.suppress(OSError):  # a terminal without a program raises it
        while chunk := os.read(keyboard, 65536):
            shown += chunk
    os.close(keyboard)
    assert (running.returncode, b"Run this code anyway? [y/N]" in shown) == (code, True), shown.decode()
    assert (harness.root / "results").exists() is (code == 0)


def test_a_process_variable_is_an_axis_of_a_script(harness, write):
    write("mine.py", "import os\nprint(os.environ['MODE'])\n")
    done = harness("run", "mine.py", "-e", "old", *SHORT[4:], "-a", "MODE=one,other")
    assert done.returncode == 0, done.stderr
    lines = {launch["cell"]["axes"]["MODE"]: launch["observations"]["output"]["lines"] for launch in harness.launches}
    assert lines == {"one": ["one"], "other": ["other"]}
