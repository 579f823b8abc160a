import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import time, pathlib, pytest

def waits(name):
    pathlib.Path(name).touch()
    time.sleep(600)

@pytest.mark.docker
def test_container():
    pass

def test_number():
    pass

def test_cli():
    pass

@pytest.mark.docker
@pytest.mark.tensorflow
def test_step_fails():
    assert False

def test_number_fails():
    assert False

@pytest.mark.docker
def test_slow_container():
    waits("container")

@pytest.mark.docker
@pytest.mark.tensorflow
def test_slow_step():
    waits("step")

def test_slow_cli():
    waits("cli")
"""


@pytest.fixture
def whole(tmp_path):
    """The command for all parts of a small set of tests, and the folder to run it in."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  docker: engine\\n  tensorflow: real\n")
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stdout": subprocess.PIPE, "text": True}
    return [sys.executable, "-m", "tests.parts"], options


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-k", "not fails and not slow"], 0, ["1 passed", "8 deselected", "1 passed", "1 passed"]),
        (["-k", "step_fails"], 1, ["8 deselected", "1 failed", "8 deselected", "8 deselected"]),
        (["-k", "not slow", "-m", "not docker"], 1, ["1 passed", "8 deselected", "8 deselected", "1 failed, 1 passed"]),
        (["-k", "nothing"], 5, ["8 deselected"] * 4),
    ],
)
def test_each_part_is_run_and_any_fails_the_whole(whole, arguments, code, said):
    command, options = whole
    done = subprocess.run([*command, *arguments], check=False, **options)
    parts = re.split(r"\n(?:Tests|Other tests).*:\n", done.stdout)
    assert done.returncode == code
    assert [words in part for part, words in zip(parts, said, strict=True)] == [True] * 4, parts


def test_all_end_when_the_whole_is_ended(whole, tmp_path):
    command, options = whole
    with subprocess.Popen([*command, "-k", "slow"], **options) as running:
        while not all((tmp_path / name).exists() for name in ("container", "step", "cli")):
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.communicate()[0].count("! KeyboardInterrupt !") == 3
    assert running.returncode == 2
