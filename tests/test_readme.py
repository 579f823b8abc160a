"""Every command in the README runs, and every file it links to is there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]


def test_the_two_commands_come_first() -> None:
    assert COMMANDS[:2] == ["make matrix", "make test"]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_the_targets_of_make_exist(command: str) -> None:
    # .ci/run does them; here a test would run itself
    done = subprocess.run(["make", "--dry-run", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith("make ")])
def test_the_other_commands_run(command: str) -> None:
    # what a shell is to read is looked at too
    program, *arguments = shlex.split(re.sub(r"^source <\((.*)\)$", r"\1", command))
    assert program == ".venv/bin/harness"
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_table_is_a_real_reports() -> None:
    report = (ROOT / "docs" / "examples" / "headline" / "report.md").read_text()
    table = [line for line in README.splitlines() if line.startswith("|") and "× (" in line.replace("\u00a0", " ")]
    assert table
    for line in [*table, next(line[2:] for line in README.splitlines() if line.startswith("> "))]:
        assert line in report


def test_every_link_to_a_file_finds_it() -> None:
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_no_registry_and_no_path_of_a_machine_is_in_the_repository() -> None:
    hosts = "|".join(["py" + "pi", "python" + "hosted", "deb" + "ian", "npm" + "js"])
    pattern = re.compile(rf"https?://[a-z.-]*({hosts})\.(org|com)|/(root|home/[a-z]+)/\.py" + "env")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file():
            found = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{name}: {found[0] if found else ''}"
