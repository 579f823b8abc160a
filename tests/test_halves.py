import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import time, pathlib, pytest

@pytest.mark.docker
def test_a_container():
    pass

def test_a_number():
    pass

@pytest.mark.docker
def test_a_container_that_fails():
    assert not "in a container"

def test_a_number_that_fails():
    assert not "a number"

@pytest.mark.docker
def test_slow_container():
    pathlib.Path("slow-container").touch()
    time.sleep(600)

def test_slow_number():
    pathlib.Path("slow-number").touch()
    time.sleep(600)
"""


@pytest.fixture
def whole(tmp_path):
    """The command for both halves of a small set of tests, and the folder to run it in."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  docker: needs an engine\n")
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stdout": subprocess.PIPE, "text": True}
    return [sys.executable, "-m", "tests.halves"], options


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-k", "test_a and not fails"], 0, ["1 passed", "1 passed"]),
        (["-k", "container and fails"], 1, ["6 deselected", "1 failed"]),
        (["-k", "test_a_number", "-m", "not docker"], 1, ["1 failed, 1 passed", "6 deselected"]),
        (["-k", "nothing"], 5, ["6 deselected", "6 deselected"]),
    ],
)
def test_both_halves_are_run_and_either_fails_the_whole(whole, arguments, code, said):
    command, options = whole
    done = subprocess.run([*command, *arguments], check=False, **options)
    others, containers = done.stdout.split("Tests that need a Docker Engine:")
    assert done.returncode == code
    assert said[0] in others
    assert said[1] in containers


def test_both_end_when_the_whole_is_ended(whole, tmp_path):
    command, options = whole
    with subprocess.Popen([*command, "-k", "slow"], **options) as halves:
        while not all((tmp_path / name).exists() for name in ("slow-container", "slow-number")):
            assert halves.poll() is None
        halves.send_signal(signal.SIGTERM)
        assert halves.communicate()[0].count("! KeyboardInterrupt !") == 2
    assert halves.returncode == 2
