"""The guide to scenarios: its example runs, and the output that it shows is what the commands print."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, copy_part
from tests.documents import find_blocks
from tests.workflow import run_script

GUIDE = (ROOT / "docs" / "how-to" / "write-a-scenario.md").read_text()


def blocks(language: str = "") -> list[str]:
    return find_blocks(GUIDE, language)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real environments, the kit, and the guide's example as its one scenario."""
    shutil.copy(ROOT / "docker-bake.hcl", tmp_path)
    copy_part("scenarios/kit", tmp_path)
    (example,) = blocks("python")
    (tmp_path / "scenarios" / "squares.py").write_text(example)
    return tmp_path


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return run_script(sys.executable, *command, cwd=project, HARNESS_PROJECT=project)


@pytest.mark.slow
def test_the_example_and_the_suite_pass_the_check(project):
    (suites,) = [text for text in blocks("toml") if "[nightly]" in text]
    (project / "scenarios" / "suites.toml").write_text(suites)
    process = run(project, "-m", "harness", "scenarios", "check")
    assert (process.returncode, process.stdout, process.stderr) == (0, "1 scenario, no problem.\n", "")


@pytest.mark.slow
def test_the_example_runs_by_hand(project):
    for way, kind in (("loop", "list"), ("array", "ndarray")):
        process = run(project, "scenarios/squares.py", "--way", way, "--size", "10", "--seconds", "0.05")
        assert process.returncode == 0, process.stderr
        assert re.search(r"^step +mean ", process.stdout, flags=re.MULTILINE)
        assert re.search(rf"^type +{kind}$", process.stdout, flags=re.MULTILINE)
        assert "squares 10, total 2.5" in process.stdout


@pytest.mark.slow
def test_what_check_prints_is_what_the_guide_shows(project):
    path = project / "scenarios" / "squares.py"
    text = path.read_text().replace("# title ", "# titel ").replace('plus    = "array"', 'plus    = "arrays"')
    path.write_text(text.replace(', size="100"):', "):"))
    process = run(project, "-m", "harness", "scenarios", "check", "squares")
    assert process.returncode == 2
    assert process.stderr in blocks()
