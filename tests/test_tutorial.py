"""The tutorial, the troubleshooting page and the glossary: commands are accepted, and screens and messages are real."""

import ast
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bench.examples import EXAMPLES, LAUNCHES
from harness import session
from harness.cli import launch_counter
from tests.commands import run_harness
from tests.documents import check_accepted, find_blocks, split_command

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: What a page shows in place of lines, or of a part of a message.
LEFT_OUT = "…"
#: How much of a message with values in it has to be the program's own words.
OWN_WORDS = 0.4


def blocks(page: str, language: str) -> list[str]:
    return find_blocks((DOCS / page).read_text(), language)


def commands(page: str) -> list[str]:
    return [line.removeprefix(".venv/bin/") for block in blocks(page, "sh") for line in block.splitlines()]


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
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    shutil.copytree(ROOT / "images", tmp_path / "images")
    return tmp_path


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with tarfile.open(EXAMPLES / "quick" / LAUNCHES) as archive:
        archive.extractall(tmp_path, filter="data")
        name = session.read(tmp_path).run.id
        folder = tmp_path / "results" / name
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("page", ["tutorial.md", "how-to/troubleshooting.md"])
def test_every_command_is_accepted(page, monkeypatch):
    assert len(commands(page)) > 6
    lines = []
    for command in commands(page):
        program, *words = shlex.split(command)
        if program == "make":
            process = subprocess.run(["make", "--dry-run", *words], cwd=ROOT, capture_output=True, check=False)
            assert process.returncode == 0, process.stderr
            (arguments,) = [word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")]
            lines.append(f"harness {words[0]} {arguments}")
        elif words != ["--version"]:
            lines.append(command)
    check_accepted(map(split_command, lines), monkeypatch)


@pytest.mark.slow
def test_the_plans_of_the_tutorial_are_what_the_commands_print(project):
    plan, _, new, checked = blocks("tutorial.md", "text")
    assert is_shown(plan, run(project, "matrix", "--suite", "quick", "--dry-run").stdout)
    printed = []
    for command in [command for command in commands("tutorial.md") if "my_step" in command]:
        words = shlex.split(command)[1:]
        measures = words[0] == "matrix" and "--dry-run" not in words
        process = run(project, *words, *(["--dry-run"] if measures else []))
        # 4: this machine lacks an engine, which the last line of a plan says
        assert process.returncode in (0, 4), f"{command}\n{process.stderr}"
        printed.append(process.stdout + process.stderr)
    assert is_shown(new, printed[0])
    assert is_shown(checked, printed[1] + printed[2])


@pytest.mark.slow
def test_the_measurement_of_the_tutorial_is_a_stored_run(stored):
    screen = blocks("tutorial.md", "text")[1]
    *_, last = re.findall(r"^\[.*\n", screen, flags=re.MULTILINE)
    rest = screen.partition(last)[2]
    process = run(stored.parents[1], "report", str(stored.relative_to(stored.parents[1])))
    assert is_shown(rest, process.stdout + process.stderr)


def test_the_launches_of_the_tutorial_are_those_of_the_stored_run(stored):
    results = session.read(stored)
    stored_lines = {
        f"{f'round {launch.round}' if launch.round else launch.role.value}: {launch.cell.environment} "
        f"{launch.cell.axes['mode']}: {launch_counter.describe(launch)}"
        for launch in results.launches
    }
    page_lines = re.findall(r"^\[[\d/]+\] (.*?)(?: \(\d+ s left\))?$", blocks("tutorial.md", "text")[1], re.MULTILINE)
    assert len(page_lines) > 3
    assert set(page_lines) <= stored_lines


def test_the_sentences_of_the_tutorial_are_in_its_report():
    report = flat((EXAMPLES / "quick" / "report.md").read_text())
    quoted = re.findall(r"^- `(.+)`$", (DOCS / "tutorial.md").read_text().replace(" On a", "\nOn a"), re.MULTILINE)
    assert len(quoted) == 2
    assert all(entry in report for entry in quoted)


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
    joined = [re.sub(r"\n(?=the environment)", " ", block) for block in blocks("how-to/troubleshooting.md", "text")]
    lines = [flat(line).removeprefix("harness: ") for block in joined for line in block.splitlines()]
    assert len(lines) > 15
    constants, patterns = texts()
    reports = "\n".join(flat(path.read_text()) for path in EXAMPLES.glob("*/report.md"))
    for line in lines:
        assert line in constants or line in reports or any(pattern.fullmatch(line) for pattern in patterns), line
