"""Every command in README.md, in the help's examples and in the pages of PAGES runs; quoted numbers are real."""

import os
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from harness.cli.advice import load_examples
from tests import two_runs
from tests.cli.conftest import stored
from tests.conftest import ROOT
from tests.documents import check_accepted, find_blocks, find_commands, split_command
from tests.factories import complete
from tests.shards import store_shards

README = (ROOT / "README.md").read_text()
#: Pages whose `sh` blocks run.
PAGES = {
    name: (ROOT / "docs" / name).read_text()
    for name in (
        "how-to/reproduce-an-issue.md",
        "how-to/measure-a-pull-request.md",
        "how-to/measure-in-ci.md",
        "how-to/compare-releases.md",
        "explanation/small-steps.md",
    )
}
#: Commands that measure, build or download: only their examples with `--dry-run` and `list` run.
WORK = ("matrix", "run", "repro", "bisect", "profile", "images", "fleet check", "history confirm")
#: Words of examples that need a GPU, a run of this machine, or a file that the tests don't have.
ELSEWHERE = ("--gpu", "atlas --add", "one/RUN", "--from exported", "mine.py", "issues.json")
REPORT = ROOT / "docs" / "examples" / "headline"


def blocks(text: str, language: str) -> list[list[str]]:
    """Return the commands of each block, without comments."""
    joined = (block.replace("\\\n", " ") for block in find_blocks(text, language))
    lines = ([line.split("  #")[0].strip() for line in block.splitlines()] for block in joined)
    return [[line for line in block if line and not line.startswith("#")] for block in lines]


def runs_here(line: str) -> bool:
    is_work = line.startswith(tuple(f"harness {command}" for command in WORK))
    return not any(word in line for word in ELSEWHERE) and (not is_work or "--dry-run" in line or " list" in line)


LINES = [re.split(r" +[#>] ", line)[0] for lines in load_examples().values() for line in lines]
README_COMMANDS = [command for block in blocks(README, "sh") for command in block]
#: The blocks of commands that run, by page. The examples of `history` are one block.
RUN = {"README.md": [[command] for command in README_COMMANDS if not command.startswith("make ")]}
RUN |= {name: blocks(page, "sh") for name, page in PAGES.items()}
RUN["help"] = [[line] for line in dict.fromkeys(LINES) if runs_here(line) and "history" not in line]
RUN["help"] += [["harness history add --all", *filter(runs_here, [line for line in LINES if "history" in line])]]
#: The pages of the documentation, without stored results.
DOCS = [path for path in (ROOT / "docs").rglob("*.md") if not {"examples", "results"} & {*path.parts}]
MOST_WORDS = 450


def test_the_readme_is_short_and_its_first_commands_are_targets_of_make():
    assert README_COMMANDS[:2] == ["make matrix", "make test"]
    assert len(README.split()) <= MOST_WORDS
    targets = [shlex.split(command)[1:] for command in README_COMMANDS if command.startswith("make ")]
    # .ci/run does them; here a test would run itself
    for target in targets:
        process = subprocess.run(["make", "--dry-run", *target], cwd=ROOT, capture_output=True, check=False)
        assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "here"
    results = folder / "results"
    results.mkdir(parents=True)
    (folder / "train.py").write_text("def train_step():\n    pass\n")
    shutil.copytree(ROOT / ".github", folder / ".github")
    with tarfile.open(REPORT / "launches.tar.xz") as archive:
        archive.extractall(results / "RUN", filter="data")
    for name, (run, launches) in {"MONDAY": two_runs.first(), "TUESDAY": two_runs.second()}.items():
        stored(results, complete(run), launches).rename(results / name)
    shards, _ = store_shards(folder / "shards")
    for number, shard in enumerate(shards, 1):
        shard.rename(results / f"SHARD-{number}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_run(page, folder, tmp_path, forks):
    for number, commands in enumerate(RUN[page]):
        here = tmp_path / str(number)
        here.mkdir()
        for path in ("train.py", ".github"):
            (here / path).symlink_to(folder / path)
        (here / "results").mkdir()
        for path in (folder / "results").iterdir():
            if path.name in " ".join(commands) or not path.name.startswith("SHARD"):
                shutil.copytree(path, here / "results" / path.name)
        for command in commands:
            arguments = split_command(command)
            # keep the containers of other runs on this machine
            engine = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"} if arguments[0] == "clean" else {}
            environ = {**os.environ, "TMPDIR": str(tmp_path), **engine}
            process = forks.run(arguments, environ=environ, folder=here, seconds=120)
            assert process.returncode == 0, f"{command}: {process.stderr}"
            is_silent = arguments[:2] == ["history", "note"] or {"-o", "--output"} & {*arguments}
            assert process.stdout or process.stderr or is_silent, command


def test_every_command_of_the_docs_is_accepted(monkeypatch):
    commands = [line for path in [ROOT / "README.md", *DOCS] for line in find_commands(path.read_text())]
    assert len(commands) > 200
    check_accepted(map(split_command, commands), monkeypatch)


def test_quoted_ratios_are_in_a_stored_report():
    reports = [path.read_text().replace("\u00a0", " ") for path in (ROOT / "docs" / "examples").glob("*/report.md")]
    for name in (
        "README.md",
        "docs/tutorial.md",
        "docs/how-to/reproduce-an-issue.md",
        "docs/explanation/small-steps.md",
    ):
        ratios = re.findall(r"[\d.]+× \([\d.]+ to [\d.]+\)", " ".join((ROOT / name).read_text().split()))
        assert ratios
        for ratio in ratios:
            assert any(ratio in report for report in reports), f"{ratio} is in no report"


def test_no_registry_and_no_path_of_a_machine_is_in_the_repository():
    hosts = "|".join(["py" + "pi", "python" + "hosted", "deb" + "ian", "npm" + "js"])
    pattern = re.compile(rf"https?://[a-z.-]*({hosts})\.(org|com)|/(root|home/[a-z]+)/\.py" + "env")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file():
            match = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not match, f"{name}: {match[0] if match else ''}"
