"""Each test runs in a tier, the last line says which tests were left out, and a quick test is quick."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.conftest import ROOT
from tests.tiers import SLOW, find_reason, format_left_out


def test_markers_decide_in_which_tiers_a_test_runs():
    markers = [set(), {"slow"}, {"docker"}, {"docker", "main_path"}, {"browser", "slow"}, {"docker", "campaign"}]
    runs = {
        tier: [" ".join(sorted(names)) for names in markers if not find_reason(names, tier)]
        for tier in ("quick", "rest", "all", "campaign", "named")
    }
    everything = ["", "slow", "docker", "docker main_path", "browser slow"]
    assert runs == {
        "quick": ["", "docker main_path"],
        "rest": ["slow", "docker", "browser slow"],
        "all": everything,
        "campaign": ["campaign docker"],
        "named": [*everything, "campaign docker"],
    }
    assert {find_reason({name}, "quick") for name in SLOW} == set(SLOW)


def test_the_last_line_has_the_commands_that_run_what_was_left_out():
    line = format_left_out(Counter(slow=3, docker=12, campaign=40))
    assert line == "Left out: 12 with Docker Engine, 3 slow (make test-all), 40 of the campaign (make campaign)"
    assert format_left_out(Counter(campaign=1)) == "Left out: 1 of the campaign (make campaign)"


@pytest.mark.slow
def test_in_ci_an_unmarked_test_of_more_than_a_second_of_cpu_time_fails(tmp_path):
    spin = "end = time.process_time() + {}\n    while time.process_time() < end:\n        pass\n"
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.tiers"]\n')
    (tmp_path / "test_spin.py").write_text(
        "import time\nimport pytest\n\n\n"
        f"def test_quick():\n    {spin.format(0.01)}\n\ndef test_dear():\n    {spin.format(5)}\n\n"
        f"@pytest.mark.slow\ndef test_marked():\n    {spin.format(5)}"
    )
    environ = {**os.environ, "HARNESS_REQUIRE_ALL": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "markers=slow", "test_spin.py"]
    process = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed" in process.stdout
    assert "test_dear" in process.stdout
    assert "@pytest.mark.slow" in process.stdout
