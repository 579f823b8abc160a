"""Every command in README.md, in the help's examples and in the pages of PAGES runs; quoted numbers are real."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from harness.cli import advice, app
from harness.cli.examples import EXAMPLES
from harness.model.run import Stop, StopReason
from tests import two_runs
from tests.cli.conftest import stored
from tests.fleet import test_merge as shards

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
#: Pages whose `sh` blocks run, and whose `console` blocks are commands that exist.
PAGES = [
    (ROOT / "docs" / name).read_text()
    for name in (
        "how-to/reproduce-an-issue.md",
        "how-to/measure-a-pull-request.md",
        "how-to/measure-in-a-ci-container.md",
        "how-to/compare-cores-and-backends.md",
        "explanation/small-steps.md",
    )
]
#: Installs harness, in pages and in their workflows; tests/docker/test_job_container.py runs it.
INSTALL = "python3 -m pip install ./harness-checkout"
#: Commands that measure, build or download: only their examples with `--dry-run` and `list` run.
WORK = ("matrix", "run", "repro", "bisect", "profile", "images", "fleet check", "history confirm")
#: Words of examples that need a GPU, or a file that the tests don't have.
ELSEWHERE = ("--gpu", "one/RUN", "--from exported", "mine.py", "issues.json")
REPORT = ROOT / "docs" / "examples" / "headline"


def blocks(text: str, language: str) -> list[list[str]]:
    """Return the commands of each code block in a language, without comments."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
    lines = ([line.split("  #")[0].strip() for line in block.replace("\\\n", " ").splitlines()] for block in found)
    return [[line for line in block if line and not line.startswith("#")] for block in lines]


def words(command: str) -> list[str]:
    """Return the arguments of a `harness` command; in `source <(…)`, of the command in the parentheses."""
    program, *arguments = shlex.split(re.sub(r"^source <\((.*)\)$", r"\1", command.removeprefix("$ ")))
    assert program in ("harness", ".venv/bin/harness")
    return arguments


def runs_here(line: str) -> bool:
    """Return whether an example runs in a test."""
    is_work = line.startswith(tuple(f"harness {entry}" for entry in WORK))
    return not any(entry in line for entry in ELSEWHERE) and (not is_work or "--dry-run" in line or " list" in line)


LINES = [re.split(r" +[#>] ", line)[0] for text in EXAMPLES.values() for line in text.strip().splitlines()]
COMMANDS = [command for block in blocks(README, "sh") for command in block]
RUN = [block for page in PAGES for block in blocks(page, "sh")]
RUN += [[line] for line in dict.fromkeys(LINES) if runs_here(line) and "history" not in line]
RUN += [["harness history add --all", *filter(runs_here, [line for line in LINES if "history" in line])]]
STARTED = [command for page in PAGES for block in blocks(page, "console") for command in block]
#: Commands of workflows of other CI systems.
STEPS = [
    re.sub(r"^- (run: )?", "$ ", line)
    for page in PAGES
    for block in blocks(page, "yaml")
    for line in block
    if re.match(r"- (run: |python3|harness)", line)
]


def test_the_two_commands_come_first() -> None:
    assert COMMANDS[:2] == ["make matrix", "make test"]


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 8_000


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_the_targets_of_make_exist(command: str) -> None:
    # .ci/run does them; here a test would run itself
    done = subprocess.run(["make", "--dry-run", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder with the script and the runs that the examples name."""
    made = tmp_path / "here"
    results = made / "results"
    results.mkdir(parents=True)
    (made / "train.py").write_text("def train_step():\n    pass\n")
    shutil.copytree(ROOT / ".github", made / ".github")
    with tarfile.open(REPORT / "launches.tar.xz") as archive:
        archive.extractall(results / "RUN", filter="data")
    for name, (run, launches) in {"MONDAY": two_runs.first(), "TUESDAY": two_runs.second()}.items():
        ended = {group.name: Stop(StopReason.ROUNDS, 5) for group in run.plan.groups}
        stored(results, replace(run, stops=ended), launches).rename(results / name)
    if "SHARD" not in str(request.node.callspec.params["commands"]):
        return made
    parts = [shards.run(calls=(call,)) for call in shards.CALLS]
    names = [part.plan.groups[0].name for part in parts]
    for at, part in enumerate(parts):
        shard = shards.sharded(part, at + 1, 2, {names[1 - at]: 2 - at})
        stored(results, shard, shards.launches(part, seed=at)).rename(results / f"SHARD-{at + 1}")
    return made


@pytest.mark.parametrize(
    "commands",
    [*([command] for command in COMMANDS if not command.startswith("make ")), *RUN],
    ids=lambda commands: words(commands[0])[0],
)
def test_the_other_commands_run(commands: list[str], folder: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    for command in commands:
        arguments = words(command)
        # keep the containers of other runs on this machine
        engine = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"} if arguments[0] == "clean" else {}
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=folder,
            env={**environ, **engine},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        is_silent = arguments[:2] == ["history", "note"] or {"-o", "--output"} & {*arguments}
        assert done.stdout or done.stderr or is_silent, command


@pytest.mark.parametrize("command", [command for command in [*STARTED, *STEPS] if command != f"$ {INSTALL}"])
def test_the_commands_that_measure_or_build_can_be_typed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.startswith("$ harness ")
    reached = []
    monkeypatch.setattr(advice.Command, "invoke", lambda _, context: reached.append(context.command_path))
    CliRunner().invoke(app, words(command), prog_name="harness", catch_exceptions=False)
    assert reached, f"{command} is not read"


def test_workflows_of_pages_can_be_read_and_install_before_they_measure() -> None:
    assert STEPS[0] == f"$ {INSTALL}"
    for page in PAGES:
        for block in re.findall(r"^```yaml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
            assert yaml.safe_load(block)


def test_the_table_is_a_real_reports() -> None:
    report = (REPORT / "report.md").read_text().splitlines()
    table = [line for line in README.splitlines() if line.startswith("|")]
    assert any("× (" in line.replace("\u00a0", " ") for line in table)
    quoted = [line.removeprefix("> ") for line in README.splitlines() if line.startswith("> ")]
    assert quoted
    for line in [*table, *quoted]:
        assert line in report


@pytest.mark.parametrize("name", ["how-to/reproduce-an-issue.md", "explanation/small-steps.md"])
def test_quoted_ratios_are_in_a_stored_report(name: str) -> None:
    found = re.findall(r"[\d.]+× \([\d.]+ to [\d.]+\)", " ".join((ROOT / "docs" / name).read_text().split()))
    assert found
    reports = [path.read_text() for path in (ROOT / "docs" / "examples").glob("*/report.md")]
    for ratio in found:
        assert any(ratio in report.replace("\u00a0", " ") for report in reports), f"{ratio} is in no report"


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
