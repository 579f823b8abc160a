"""Screens, scripts and messages of the README, the tutorial and the how-to guides are real."""

import ast
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.cli import launch_counter
from tests.commands import run_harness
from tests.conftest import ROOT, copy_part
from tests.documents import find_blocks

#: What a page shows in place of lines, or of a part of a message.
LEFT_OUT = "…"
#: How much of a message with values in it has to be the program's own words.
OWN_WORDS = 0.4


def blocks(page: str, language: str) -> list[str]:
    return find_blocks((ROOT / page).read_text(), language)


def flat(text: str) -> str:
    return " ".join(text.split())


def is_shown(screen: str, printed: str) -> bool:
    """Whether the parts of a screen that are not left out are printed, in their order."""
    parts = [flat(part) for part in re.split(rf"^{LEFT_OUT}$", screen, flags=re.MULTILINE)]
    return re.search(".*".join(map(re.escape, filter(None, parts))), flat(printed)) is not None


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_harness(*arguments, cwd=folder, HARNESS_PROJECT=str(folder), COLUMNS="80")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "docker-bake.hcl", tmp_path)
    copy_part("scenarios", tmp_path)
    copy_part("images", tmp_path)
    return tmp_path


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with tarfile.open(EXAMPLES / "script" / LAUNCHES) as archive:
        archive.extractall(tmp_path, filter="data")
        name = session.read(tmp_path).run.id
        folder = tmp_path / "results" / name
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/how-to/run-a-script.md"])
def test_the_screen_of_a_page_is_what_the_stored_run_prints(page, stored):
    command = "$ harness run train.py -e tf2.15,tf2.16\n"
    (screen,) = [text for kind in ("console", "text") for text in blocks(page, kind) if "peak memory" in text]
    launches = re.findall(r"^\[[\d/]+\] .*\n", screen, flags=re.MULTILINE)
    rest = screen.rpartition(launches[-1] if launches else command)[2]
    process = run(stored.parents[1], "report", str(stored.relative_to(stored.parents[1])))
    assert is_shown(rest, process.stdout + process.stderr)


def test_the_launches_of_the_tutorial_are_those_of_the_stored_run(stored):
    results = session.read(stored)
    stored_lines = {
        f"{f'round {launch.round}' if launch.round else launch.role.value}: {launch.cell.environment}: "
        f"{launch_counter.describe(launch)}"
        for launch in results.launches
    }
    (screen,) = [text for text in blocks("docs/tutorial.md", "text") if "pilot" in text]
    page_lines = re.findall(r"^\[[\d/]+\] (.*?)(?: \([^()]+ left\))?$", screen, re.MULTILINE)
    assert len(page_lines) > 3
    assert set(page_lines) <= stored_lines


@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/how-to/run-a-script.md"])
def test_the_script_of_a_page_is_the_measured_one(page):
    assert (EXAMPLES / "script" / "train.py").read_text() in blocks(page, "python")


@pytest.mark.slow
def test_the_plan_of_the_tutorial_is_what_the_command_prints(project):
    (plan,) = [text for text in blocks("docs/tutorial.md", "text") if "malloc=keep" in text]
    assert is_shown(plan, run(project, "matrix", "--suite", "quick", "--dry-run").stdout)


def texts() -> tuple[str, list[re.Pattern[str]]]:
    constants, patterns = [], []
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.append(flat(node.value))
            elif isinstance(node, ast.JoinedStr):
                text = "".join(str(value.value) if isinstance(value, ast.Constant) else "\0" for value in node.values)
                constants.append(flat(text).replace("\0", LEFT_OUT))
                values = f".{{0,{round(len(text) * (1 / OWN_WORDS - 1))}}}"
                patterns.append(re.compile(values.join(map(re.escape, flat(text).split("\0")))))
    return "\n".join(constants), patterns


@pytest.mark.slow
def test_every_message_of_the_troubleshooting_page_is_in_the_sources():
    joined = [
        re.sub(r"\n(?=the environment)", " ", block) for block in blocks("docs/how-to/troubleshooting.md", "text")
    ]
    lines = [flat(line).removeprefix("harness: ") for block in joined for line in block.splitlines()]
    assert len(lines) > 15
    constants, patterns = texts()
    reports = "\n".join(flat(path.read_text()) for path in EXAMPLES.glob("*/report.md"))
    for line in lines:
        assert line in constants or line in reports or any(pattern.fullmatch(line) for pattern in patterns), line
