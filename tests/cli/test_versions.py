"""`harness matrix --base`: two versions of a scenario of one's own, from git."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Harness
from tests.commands import git

SHORT = ("--backend", "local", "--trust", "-e", "new", "-a", "way=fine")
LENGTHS = ("--rounds", "4", "--warmup", "1ms", "--measure", "60ms")


@pytest.fixture
def mine(harness: Harness) -> Path:
    """A scenario of one's own in two commits: in the second, the step does thirty times the work."""
    path = harness.root / "mine.py"
    text = (harness.root / "scenarios" / "ways.py").read_text()
    git(harness.root, "init", "-q", "-b", "main")
    for name, version in (("one", text), ("two", text.replace("range(1000 if", "range(30000 if"))):
        path.write_text(version)
        git(harness.root, "add", ".")
        git(harness.root, "commit", "-qm", name)
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
def test_the_newer_version_is_measured_against_the_older_one_and_fails_the_gate_where_it_is_slower(harness):
    # other work on the machine can make identical cells differ, and with the usual margin, that takes a run's verdicts
    options = ("-s", "mine.py", *SHORT, *LENGTHS, "--clock", "cpu", "--margin", "50%", "--fail-on", "slower")
    process = harness("matrix", "--base", "HEAD~", "--head", "HEAD", *options)
    assert process.returncode == 5, process.stderr + process.stdout
    assert "head takes" in process.stdout
    assert {launch["cell"]["axes"]["side"] for launch in harness.launches} == {"base", "head"}
    # the run is read again, with the files of both versions
    assert harness.call("report", str(harness.run)).returncode == 0
    # it goes on, and the last document is the verdict, as in the run itself: slower, or unclear on a busy machine
    resumed = harness.call("matrix", "--resume", str(harness.run), "--rounds", "5", "--json")
    assert json.loads(resumed.stdout.splitlines()[-1])["ratio"] > 5, resumed.stderr
    # what was changed back is no regression
    reversed_sides = harness.call("matrix", "--base", "HEAD", "--head", "HEAD~", *options)
    assert reversed_sides.returncode == 0, reversed_sides.stderr + reversed_sides.stdout


def test_without_head_it_is_the_file_as_it_lies_there_and_what_did_not_change_or_is_new_is_left_out(
    harness, mine, snapshot
):
    mine.write_text(mine.read_text().replace("30000 if", "40000 if"))
    process = harness.call("matrix", "--base", "HEAD", "-s", "mine.py", *SHORT, "--dry-run")
    assert (process.returncode, "mine_side_by_side new fine fast head" in process.stdout) == (0, True), process.stderr
    git(harness.root, "checkout", "-q", "mine.py")
    (harness.root / "added.py").write_text(mine.read_text())
    git(harness.root, "add", "added.py")
    git(harness.root, "commit", "-qm", "three")
    scenarios = ("-s", "added.py", "-s", "mine.py", "-s", "Ways")
    process = harness.call("matrix", "--base", "HEAD~", "--head", "HEAD", *scenarios, "--dry-run")
    assert process.returncode == 3
    assert process.stderr.replace(str(harness.root), "PROJECT") == snapshot


@pytest.mark.usefixtures("mine")
def test_what_is_wrong_is_told_before_anything_runs(harness, snapshot):
    errors = {}
    for line in (
        "--base HEAD~",
        "--head HEAD -s mine.py",
        "-s mine.py --history-rounds --on ssh://one",
        "--base nowhere -s mine.py",
        "--base --upload-pack=x -s mine.py",
        "--base HEAD~ -s absent.py",
        "--base HEAD~ -s abs*nt",
        "--base HEAD~ -s mine.py -a side=base",
    ):
        process = harness.call("matrix", *line.split(), "--dry-run")
        assert process.returncode == 2
        errors[line] = process.stderr.replace(str(harness.root), "PROJECT")
    assert errors == snapshot
